// ucg_plan explain: shows the planner's choice and its reasons.
#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "tools/cli.hpp"
#include "tools/ucg_plan/commands.hpp"
#include "tools/ucg_plan/profile_option.hpp"
#include "tools/ucg_plan/question.hpp"
#include "tools/ucg_plan/topology_option.hpp"
#include "ucg_coll/base/ascii.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::tools {

namespace {

using Json = nlohmann::ordered_json;

struct Ineligible {
    std::string_view name;
    std::string needs; ///< The first need that is not met.
};

struct Verdict {
    std::vector<plan::Candidate> candidates; ///< Cheapest first; the first is chosen.
    std::vector<Ineligible> ineligible;
    std::string asked_for = {}; ///< The algorithm asked for at this size; empty: none.
    std::string refusal = {};   ///< Why that one is not eligible; empty if it is.
    std::string costs = {};     ///< Whose costs they are.
    bool lengths_known = true;  ///< Whether all ranks know the lengths that were asked about.
    unsigned calls_in_a_row = 1;

    /// Returns the algorithm that will run: the one asked for, if it is eligible.
    std::string_view chosen() const {
        return asked_for.empty() || !refusal.empty() ? candidates.front().algorithm->name
                                                     : std::string_view(asked_for);
    }
};

Verdict judge(const plan::Facts& real, const graph::Request& request, Rank rank,
              std::string_view asked_for) {
    Verdict verdict{plan::candidates(real, request), {}, std::string(asked_for)};
    if (!asked_for.empty()) {
        const auto schedule = plan::plan(real, request, rank, asked_for);
        verdict.refusal = schedule.ok() ? "" : schedule.status().message();
    }
    const plan::Facts facts = plan::facts_for(real, request);
    verdict.calls_in_a_row = plan::calls_in_a_row(facts, request.collective);
    for (const plan::Algorithm& row : plan::algorithms()) {
        if (row.collective == request.collective && !row.eligible(facts, request)) {
            verdict.ineligible.push_back({row.name, row.unmet_text(facts, request)});
        }
    }
    return verdict;
}

/// Returns which entry of the list of algorithms by size applies, and why it is not eligible.
std::string asked_text(const plan::AlgorithmsBySize& asked, const Verdict& verdict) {
    const std::string list = to_text(asked);
    if (list.empty()) {
        return {};
    }
    if (verdict.asked_for.empty()) {
        return fmt::format("asked for {}: nothing for this size\n", list);
    }
    if (!verdict.refusal.empty()) {
        return fmt::format("asked for {}: {}; the planner chooses instead\n", list,
                           verdict.refusal);
    }
    return fmt::format("asked for {}: {} is chosen, whatever it costs\n", list, verdict.asked_for);
}

/// Returns whether the question is about messages with bytes whose lengths only some ranks know.
bool has_unknown_lengths(const Question& question, const graph::Request& request) {
    const std::vector<std::uint64_t>& blocks = question.blocks;
    const bool has_bytes = blocks.empty()
                               ? question.bytes > 0
                               : std::any_of(blocks.begin(), blocks.end(),
                                             [](std::uint64_t bytes) { return bytes > 0; });
    return has_bytes && question.collective != graph::Collective::barrier &&
           plan::uniform_bytes(request) == 0;
}

/// Returns what the prices are of, where that is not one call with the lengths asked about.
std::string prices_text(const Verdict& verdict) {
    std::string text;
    if (!verdict.lengths_known) {
        text += "lengths: not known to all ranks; prices are those of empty messages\n";
    }
    if (verdict.calls_in_a_row > 1) {
        text += fmt::format("prices: of one of {} calls in a row (ucg_sim run --in-a-row {})\n",
                            verdict.calls_in_a_row, verdict.calls_in_a_row);
    }
    return text;
}

std::string text(const Question& question, const topo::Placement& placement,
                 const plan::AlgorithmsBySize& asked, const Verdict& verdict) {
    std::string text =
        fmt::format("{} ({})\ncosts: {}\n", describe(question), describe(placement), verdict.costs);
    text += prices_text(verdict) + asked_text(asked, verdict);
    const bool forced = verdict.chosen() == verdict.asked_for;
    std::size_t width = 0;
    for (const plan::Candidate& candidate : verdict.candidates) {
        width = std::max(width, candidate.algorithm->name.size());
    }
    for (const Ineligible& row : verdict.ineligible) {
        width = std::max(width, row.name.size());
    }
    const double best_ns = verdict.candidates.front().cost_ns;
    for (std::size_t i = 0; i < verdict.candidates.size(); ++i) {
        const auto& [algorithm, cost_ns] = verdict.candidates[i];
        text += fmt::format("  {:<{}}  {:>12.3f} us", algorithm->name, width, cost_ns / 1000);
        if (i == 0) {
            text += forced ? "  cheapest" : "  chosen";
        } else {
            text += best_ns > 0 ? fmt::format("  {:.2f} times the cost", cost_ns / best_ns) : "";
            text += i == 1 ? ", the runner-up" : "";
        }
        text += '\n';
    }
    for (const Ineligible& row : verdict.ineligible) {
        text += fmt::format("  {:<{}}  not eligible: needs {}\n", row.name, width, row.needs);
    }
    return text;
}

std::string json(const Question& question, const topo::Placement& placement,
                 const plan::AlgorithmsBySize& asked, const Verdict& verdict) {
    Json candidates = Json::array();
    for (const plan::Candidate& candidate : verdict.candidates) {
        candidates.push_back({{"algorithm", candidate.algorithm->name},
                              {"predicted_ns", candidate.cost_ns},
                              {"summary", candidate.algorithm->summary}});
    }
    Json ineligible = Json::array();
    for (const Ineligible& row : verdict.ineligible) {
        ineligible.push_back({{"algorithm", row.name}, {"needs", row.needs}});
    }
    const Json object = {{"collective", graph::name(question.collective)},
                         {"ranks", placement.rank_count()},
                         {"hosts", placement.host_count()},
                         {"bytes", question.bytes},
                         {"root", question.root},
                         {"in_place", question.in_place},
                         {"commutative", question.commutative},
                         {"costs", verdict.costs},
                         {"lengths_known", verdict.lengths_known},
                         {"calls_in_a_row", verdict.calls_in_a_row},
                         {"chosen", verdict.chosen()},
                         {"asked_for", to_text(asked)},
                         {"asked_for_this_size", verdict.asked_for},
                         {"refusal", verdict.refusal},
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
        profile_.add_option(app_, &options_);
        topology_.add_option(app_);
        app_.add_option("--algorithm", wanted_,
                        "What is asked for, NAME or NAME:ARGUMENT, maybe by size: "
                        "\"0-4k:NAME;4k-inf:NAME\" (default: the environment's UCG_<COLLECTIVE>)")
            ->type_name("TEXT");
        add_format_option(app_, format_, {Format::text, Format::json});
        app_.parse_complete_callback([this] { options_.check(); });
        app_.footer(
            "Algorithms are compared by what all ranks know: where only some know the lengths "
            "(gatherv, say), by the\nprices of empty messages. Across hosts, prices of collectives "
            "with a root and of scans are those of one of\nseveral calls in a row. The output says "
            "both; in JSON, \"lengths_known\" and \"calls_in_a_row\" do.\n"
            "Examples:\n"
            "  ucg_plan explain --collective allreduce --ranks 64 --bytes 1M\n"
            "  ucg_plan explain --collective allreduce --ranks 32 --bytes 8 \\\n"
            "    --algorithm '0-4k:recursive_multiplying:a8,a4;4k-inf:ring'\n"
            "  ucg_plan explain --collective bcast --hosts 16 --ranks-per-host 48 --bytes 64k\n"
            "  ucg_plan explain --collective alltoall --hosts 16 --ranks-per-host 1 --bytes 64k "
            "\\\n"
            "    --topology /etc/slurm/topology.conf\n"
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
        const Result<std::unique_ptr<const plan::Network>> network = topology_.network(*placement);
        if (!network) {
            return network.status();
        }
        const Question question = options_.question(*placement, *network != nullptr);
        const Rank rank = graph::rooted(question.collective) ? question.root : 0;
        const graph::Request request = request_of(question, rank);
        if (Status status = graph::validate(request, rank); !status.ok()) {
            return status;
        }
        const Result<plan::AlgorithmsBySize> asked = asked_for(question.collective);
        if (!asked) {
            return asked.status();
        }
        Verdict verdict = judge(profile_.facts(*placement, *profile, network->get()), request, rank,
                                asked->algorithm(plan::uniform_bytes(request)));
        verdict.costs = profile_.description();
        verdict.lengths_known = !has_unknown_lengths(question, request);
        return write_output("-", format_ == Format::json
                                     ? json(question, *placement, *asked, verdict)
                                     : text(question, *placement, *asked, verdict));
    }

  private:
    /// Returns the list of algorithms that the option gives, else that of the library's variable.
    Result<plan::AlgorithmsBySize> asked_for(graph::Collective collective) const {
        if (!wanted_.empty()) {
            return plan::parse_algorithms_by_size(collective, wanted_);
        }
        const std::string variable = "UCG_" + ascii_upper(graph::name(collective));
        const char* const value = std::getenv(variable.c_str());
        Result<plan::AlgorithmsBySize> asked =
            plan::parse_algorithms_by_size(collective, value == nullptr ? "" : value);
        return asked ? asked : in_file(variable, asked.status());
    }

    QuestionOptions options_;
    ProfileOption profile_;
    TopologyOption topology_;
    std::string wanted_;
    Format format_ = Format::text;
};

} // namespace

std::unique_ptr<Command> make_explain_command(CLI::App& parent) {
    return std::make_unique<ExplainCommand>(parent);
}

} // namespace ucg::tools
