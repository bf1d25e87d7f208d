// ucg_plan list: prints the planner's table.
#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "tools/ucg_plan/commands.hpp"
#include "tools/ucg_plan/profile_option.hpp"
#include "tools/ucg_plan/question.hpp"
#include "tools/ucg_plan/topology_option.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::tools {

namespace {

using Json = nlohmann::ordered_json;

class ListCommand final : public Command {
  public:
    explicit ListCommand(CLI::App& parent)
        : Command(*parent.add_subcommand("list", "List the algorithms; with --ranks or a "
                                                 "placement, say which may serve the request, and "
                                                 "of each other what it lacks")) {
        options_.add_options(app_, QuestionOptions::Needs::nothing);
        profile_.add_option(app_, &options_);
        topology_.add_option(app_);
        add_format_option(app_, format_, {Format::text, Format::json});
        app_.parse_complete_callback([this] { options_.check(); });
        app_.footer("Examples:\n"
                    "  ucg_plan list\n"
                    "  ucg_plan list --collective allreduce\n"
                    "  ucg_plan list --collective allreduce --ranks 6 --hosts 2 --bytes 8 "
                    "--non-commutative");
    }

    Status run() const override {
        std::optional<topo::Placement> placement;
        if (options_.is_asked()) {
            Result<topo::Placement> made = options_.placement();
            if (!made) {
                return made.status();
            }
            placement = std::move(*made);
        }
        const Result<cost::Profile> profile = profile_.load();
        if (!profile) {
            return profile.status();
        }
        std::unique_ptr<const plan::Network> network;
        if (placement) {
            Result<std::unique_ptr<const plan::Network>> links = topology_.network(*placement);
            if (!links) {
                return links.status();
            }
            network = std::move(*links);
        }
        std::vector<Row> rows;
        for (const plan::Algorithm& algorithm : plan::algorithms()) {
            if (options_.has_collective() && algorithm.collective != options_.collective()) {
                continue;
            }
            Row row{&algorithm, {}, {}};
            if (placement) {
                judge(row, profile_.facts(*placement, *profile, network.get()));
            }
            rows.push_back(row);
        }
        return write_output("-", format_ == Format::json ? json(rows) : text(rows));
    }

  private:
    struct Row {
        const plan::Algorithm* algorithm = nullptr;
        std::optional<bool> eligible; ///< No value unless a request was given.
        std::string unmet;            ///< The needs that are not met, if it is not eligible.
    };

    /// Determines whether the row is eligible. Without --collective, each row is asked about its
    /// own.
    void judge(Row& row, const plan::Facts& facts) const {
        Question question = options_.question(facts.placement, facts.network != nullptr);
        question.collective = row.algorithm->collective;
        const graph::Request request = request_of(question, 0);
        const bool is_valid = graph::validate(request, 0).ok();
        row.eligible = is_valid && row.algorithm->eligible(facts, request);
        if (is_valid && !*row.eligible) {
            row.unmet = row.algorithm->unmet_text(facts, request);
        }
    }

    static std::string text(const std::vector<Row>& rows) {
        std::size_t width = 0;
        for (const Row& row : rows) {
            width = std::max(width, row.algorithm->name.size());
        }
        std::string text;
        std::string_view heading;
        for (const Row& row : rows) {
            const plan::Algorithm& algorithm = *row.algorithm;
            if (const std::string_view name = graph::name(algorithm.collective); name != heading) {
                text += fmt::format("{}{}\n", heading.empty() ? "" : "\n", name);
                heading = name;
            }
            text += fmt::format("  {:<{}}  ", algorithm.name, width);
            if (row.eligible) {
                text += *row.eligible ? "eligible      " : "not eligible  ";
            }
            text += algorithm.summary;
            if (!algorithm.argument.empty()) {
                text += fmt::format("; takes :{}", algorithm.argument);
            }
            if (!algorithm.needs.empty()) {
                text += fmt::format("; needs {}",
                                    row.unmet.empty() ? algorithm.needs_text() : row.unmet);
            }
            text += '\n';
        }
        return text;
    }

    static std::string json(const std::vector<Row>& rows) {
        Json list = Json::array();
        for (const Row& row : rows) {
            Json object = {{"collective", graph::name(row.algorithm->collective)},
                           {"algorithm", row.algorithm->name},
                           {"summary", row.algorithm->summary},
                           {"needs", row.algorithm->needs_text()},
                           {"argument", row.algorithm->argument}};
            if (row.eligible) {
                object["eligible"] = *row.eligible;
                object["unmet"] = row.unmet;
            }
            list.push_back(std::move(object));
        }
        return list.dump(2) + "\n";
    }

    QuestionOptions options_;
    ProfileOption profile_;
    TopologyOption topology_;
    Format format_ = Format::text;
};

} // namespace

std::unique_ptr<Command> make_list_command(CLI::App& parent) {
    return std::make_unique<ListCommand>(parent);
}

} // namespace ucg::tools
