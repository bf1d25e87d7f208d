// ucg_plan explain: why the planner chooses what it chooses.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "tools/cli.hpp"
#include "tools/ucg_plan/commands.hpp"
#include "tools/ucg_plan/profile_option.hpp"
#include "tools/ucg_plan/question.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::tools {

namespace {

using Json = nlohmann::ordered_json;

struct Verdict {
    std::vector<plan::Candidate> candidates; ///< Cheapest first; the first is chosen.
    std::vector<const plan::Algorithm*> ineligible;
};

Verdict judge(const plan::Facts& facts, const graph::Request& request) {
    Verdict verdict{plan::candidates(facts, request), {}};
    for (const plan::Algorithm& row : plan::algorithms()) {
        if (row.collective == request.collective && !row.eligible(facts, request)) {
            verdict.ineligible.push_back(&row);
        }
    }
    return verdict;
}

std::string text(const Question& question, const topo::Placement& placement,
                 const Verdict& verdict) {
    std::string text = fmt::format("{} ({})\n", describe(question), describe(placement));
    std::size_t width = 0;
    for (const plan::Candidate& candidate : verdict.candidates) {
        width = std::max(width, candidate.algorithm->name.size());
    }
    for (const plan::Algorithm* row : verdict.ineligible) {
        width = std::max(width, row->name.size());
    }
    const double best_ns = verdict.candidates.front().cost_ns;
    for (std::size_t i = 0; i < verdict.candidates.size(); ++i) {
        const auto& [algorithm, cost_ns] = verdict.candidates[i];
        text += fmt::format("  {:<{}}  {:>12.3f} us", algorithm->name, width, cost_ns / 1000);
        if (i == 0) {
            text += "  chosen";
        } else {
            text += i == 1 ? "  runner-up" : "           ";
            text += best_ns > 0 ? fmt::format(", {:.2f} times the cost", cost_ns / best_ns) : "";
        }
        text += '\n';
    }
    for (const plan::Algorithm* row : verdict.ineligible) {
        text += fmt::format("  {:<{}}  not eligible: needs {}\n", row->name, width, row->needs);
    }
    return text;
}

std::string json(const Question& question, const topo::Placement& placement,
                 const Verdict& verdict) {
    Json candidates = Json::array();
    for (const plan::Candidate& candidate : verdict.candidates) {
        candidates.push_back({{"algorithm", candidate.algorithm->name},
                              {"predicted_ns", candidate.cost_ns},
                              {"summary", candidate.algorithm->summary}});
    }
    Json ineligible = Json::array();
    for (const plan::Algorithm* row : verdict.ineligible) {
        ineligible.push_back({{"algorithm", row->name}, {"needs", row->needs}});
    }
    const Json object = {{"collective", graph::name(question.collective)},
                         {"ranks", placement.rank_count()},
                         {"hosts", placement.host_count()},
                         {"bytes", question.bytes},
                         {"root", question.root},
                         {"in_place", question.in_place},
                         {"commutative", question.commutative},
                         {"chosen", verdict.candidates.front().algorithm->name},
                         {"candidates", std::move(candidates)},
                         {"not_eligible", std::move(ineligible)}};
    return object.dump(2) + "\n";
}

class ExplainCommand final : public Command {
  public:
    explicit ExplainCommand(CLI::App& parent)
        : Command(*parent.add_subcommand(
              "explain", "Tell which algorithm the planner chooses and what the others are "
                         "predicted to cost")) {
        options_.add_options(app_, QuestionOptions::Needs::collective);
        profile_.add_option(app_);
        add_format_option(app_, format_, {Format::text, Format::json});
        app_.parse_complete_callback([this] { options_.check(); });
        app_.footer(
            "Examples:\n"
            "  ucg_plan explain --collective allreduce --ranks 64 --bytes 1M\n"
            "  ucg_plan explain --collective bcast --hosts 16 --ranks-per-host 48 --bytes 64k\n"
            "  ucg_topo placement --hosts 4 --ranks-per-host 8 | \\\n"
            "    ucg_plan explain --collective barrier --placement -");
    }

    Status run() const override {
        const Result<topo::Placement> placement = options_.placement();
        if (!placement) {
            return placement.status();
        }
        const Result<cost::Profile> profile = profile_.load();
        if (!profile) {
            return profile.status();
        }
        const Question question = options_.question(*placement);
        const Rank rank = graph::rooted(question.collective) ? question.root : 0;
        const graph::Request request = request_of(question, rank);
        if (Status status = graph::validate(request, rank); !status.ok()) {
            return status;
        }
        const Verdict verdict = judge(profile_.facts(*placement, *profile), request);
        return write_output("-", format_ == Format::json ? json(question, *placement, verdict)
                                                         : text(question, *placement, verdict));
    }

  private:
    QuestionOptions options_;
    ProfileOption profile_;
    Format format_ = Format::text;
};

} // namespace

std::unique_ptr<Command> make_explain_command(CLI::App& parent) {
    return std::make_unique<ExplainCommand>(parent);
}

} // namespace ucg::tools
