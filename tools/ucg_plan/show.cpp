// ucg_plan show: prints schedules as text, JSON or pictures.
#include "tools/cli.hpp"
#include "tools/ucg_plan/commands.hpp"
#include "tools/ucg_plan/profile_option.hpp"
#include "tools/ucg_plan/question.hpp"
#include "tools/ucg_plan/topology_option.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::tools {

namespace {

class ShowCommand final : public Command {
  public:
    explicit ShowCommand(CLI::App& parent)
        : Command(*parent.add_subcommand("show", "Show the schedule of one rank or of all")) {
        options_.add_options(app_, QuestionOptions::Needs::collective);
        app_.add_option("--rank", rank_, "Show the schedule of this rank (default: of all)")
            ->transform(whole_number(0, kRanksMax - 1))
            ->type_name("RANK");
        app_.add_option("--algorithm", algorithm_,
                        "As \"ucg_plan list\" names it (default: the planner chooses)")
            ->type_name("NAME");
        profile_.add_option(app_, &options_);
        topology_.add_option(app_);
        add_format_option(app_, format_, {Format::text, Format::json, Format::dot});
        app_.add_flag("--lowered", lowered_,
                      "Show the steps that engine and simulator go through, with what each waits "
                      "for, as text");
        app_.parse_complete_callback([this] {
            options_.check();
            if (lowered_ && format_ != Format::text) {
                throw CLI::ValidationError(
                    "--lowered", fmt::format("there is text alone, not {}", name(format_)));
            }
        });
        app_.footer(
            "The text and the JSON are what \"ucg_plan verify --file\" reads.\n"
            "Examples:\n"
            "  ucg_plan show --collective allreduce --ranks 6 --bytes 8 --rank 0\n"
            "  ucg_plan show --collective allreduce --ranks 6 --bytes 8 --rank 0 --lowered\n"
            "  ucg_plan show --collective bcast --hosts 2 --ranks-per-host 4 --bytes 1M --root 5\n"
            "  ucg_plan show --collective allgatherv --ranks 3 --blocks 8,0,16 --format json\n"
            "  ucg_plan show --collective allreduce --algorithm ring --ranks 4 --bytes 4k \\\n"
            "    --format dot | dot -Tsvg > ring.svg");
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
        if (rank_ >= placement->rank_count()) {
            return failure(Code::invalid_argument, "--rank: expected a rank in 0 .. {}, found {}",
                           placement->rank_count() - 1, rank_);
        }
        const Result<std::unique_ptr<const plan::Network>> network = topology_.network(*placement);
        if (!network) {
            return network.status();
        }
        const plan::Facts facts = profile_.facts(*placement, *profile, network->get());
        const Rank first = rank_ == kNoRank ? 0 : rank_;
        const Rank last = rank_ == kNoRank ? placement->rank_count() : rank_ + 1;
        return format_ == Format::dot ? draw(facts, first, last) : print(facts, first, last);
    }

  private:
    Result<graph::Schedule> schedule(const plan::Facts& facts, Rank rank) const {
        const Question question = options_.question(facts.placement, facts.network != nullptr);
        return plan::plan(facts, request_of(question, rank), rank, algorithm_);
    }

    /// Draws a picture, which shows all ranks together.
    Status draw(const plan::Facts& facts, Rank first, Rank last) const {
        std::vector<graph::Schedule> schedules;
        for (Rank rank = first; rank < last; ++rank) {
            Result<graph::Schedule> made = schedule(facts, rank);
            if (!made) {
                return made.status();
            }
            schedules.push_back(std::move(*made));
        }
        return write_output("-", graph::to_dot(schedules));
    }

    static std::string lowered_text(const graph::Schedule& schedule) {
        const std::string text = graph::to_text(schedule);
        return text.substr(0, text.find('\n') + 1) + graph::to_text(graph::lower(schedule).value());
    }

    /// Prints rank by rank, so that memory holds only one schedule.
    Status print(const plan::Facts& facts, Rank first, Rank last) const {
        const bool is_array = format_ == Format::json && rank_ == kNoRank;
        for (Rank rank = first; rank < last; ++rank) {
            const Result<graph::Schedule> made = schedule(facts, rank);
            if (!made) {
                return made.status();
            }
            std::string text;
            if (lowered_) {
                text = (rank == first ? "" : "\n") + lowered_text(*made);
            } else if (format_ == Format::json) {
                text = is_array ? (rank == first ? "[\n" : ",\n") : "";
                text += graph::to_json(*made);
            } else {
                text = (rank == first ? "" : "\n") + graph::to_text(*made);
            }
            while (!text.empty() && text.back() == '\n') {
                text.pop_back();
            }
            text += rank + 1 == last && is_array ? "\n]\n" : is_array ? "" : "\n";
            if (Status status = write_output("-", text); !status.ok()) {
                return status;
            }
        }
        return {};
    }

    QuestionOptions options_;
    ProfileOption profile_;
    TopologyOption topology_;
    std::string algorithm_;
    Rank rank_ = kNoRank;
    Format format_ = Format::text;
    bool lowered_ = false;
};

} // namespace

std::unique_ptr<Command> make_show_command(CLI::App& parent) {
    return std::make_unique<ShowCommand>(parent);
}

} // namespace ucg::tools
