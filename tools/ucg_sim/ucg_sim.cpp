// ucg_sim: prices the planner's schedules under a model, and draws what happens.
#include <limits>
#include <memory>

#include "tools/cli.hpp"
#include "tools/ucg_plan/profile_option.hpp"
#include "tools/ucg_plan/question.hpp"
#include "tools/ucg_plan/topology_option.hpp"
#include "tools/ucg_sim/agreement_command.hpp"
#include "tools/ucg_sim/prices_option.hpp"
#include "tools/ucg_sim/report.hpp"
#include "tools/ucg_sim/units.hpp"
#include "ucg_coll/plan/plan.hpp"
#include "ucg_coll/sim/simgrid/simgrid_pricing.hpp"

namespace ucg::tools {

namespace {

enum class View { text, timeline, json, svg, dot, tasks };

std::string_view name(View view) {
    static constexpr std::array<std::string_view, 6> kNames = {"text", "timeline", "json",
                                                               "svg",  "dot",      "tasks"};
    return kNames[static_cast<std::size_t>(view)];
}

/// More calls in a row are a mistake: the simulation takes time and memory for each.
constexpr std::uint32_t kInARowMax = 1000;

/// Where the prices of messages come from.
enum class PricingKind { own, simgrid };

std::string_view name(PricingKind kind) {
    return kind == PricingKind::own ? "own" : "simgrid";
}

/// The most ranks in a picture. With more nobody can read it, and a viewer may not even open it.
constexpr Rank kDrawnRanksMax = 256;

constexpr const char* kFooter =
    "What is priced is the very schedule that UCG executes: ops in their order, each once what it\n"
    "depends on is done. A rank is done when its last message has left or arrived.\n"
    "\n"
    "Models (--model) and the parameters they need; others are 0 where they are not given:\n"
    "  profile             LogGP for each level of the machine, from --profile or built in\n"
    "  network.minimum,    the pipelining postal model and the reductions of that profile, as\n"
    "  network.median      \"ucg_tune network\" measures them\n"
    "  pipelining-postal   --alpha-p --alpha-r [--beta --gamma --compute --copy]: messages of a\n"
    "                      sender leave alpha-r + n beta apart and arrive alpha-p after that\n"
    "  postal              --alpha [--beta --gamma --compute --copy]\n"
    "  logp, logfp, loggp  --latency --overhead --gap [--gamma --compute --copy], --free,\n"
    "                      --gap-per-byte\n"
    "\n"
    "What ranks of one host read of one another's memory, and the lines of flag slots, cost what "
    "the\n"
    "memory model of --profile says, whatever the model; a share is issued as an empty message "
    "is,\n"
    "once for all readers. --shared-heap: publishing copies nothing.\n"
    "\n"
    "With --topology messages share the links between hosts, one after another on each, and the\n"
    "planner knows them, as that of a job does by UCG_TOPOLOGY.\n"
    "\n"
    "With --pricing simgrid messages are flows over the links of --platform, which share their\n"
    "bandwidth; of the model remain the processors' parts and the messages within a host. Hosts "
    "are\n"
    "the platform's in the order of their names (n2 before n10).\n"
    "\n"
    "Delays (--noise, --compute-noise, --skew): none, uniform:LOW,HIGH, exponential:MEAN,\n"
    "normal:MEAN,DEVIATION (drawn anew until not negative), pareto:SCALE,SHAPE. They are "
    "functions\n"
    "of --seed, so a command line prints the same numbers each time; repetition i has seed + i.\n"
    "\n"
    "Formats: text and json report times; json has completion_ns and ranks of the first\n"
    "repetition, and with --details every activity, message, flag slot that is read and op.\n"
    "timeline and svg show what each rank did when; dot and tasks are the program graph: start "
    "(S),\n"
    "proxy, sleep (Z), compute (C), put (P), and share on a flag slot.\n"
    "\n"
    "Examples:\n"
    "  ucg_sim run --collective allreduce --ranks 8 --algorithm recursive_doubling --bytes 8 \\\n"
    "    --model pipelining-postal --alpha-p 400ns --alpha-r 100ns --beta 0.4ns --compute 10ns\n"
    "  ucg_sim run --collective barrier --ranks 8 --late 3=2us --format svg > late.svg\n"
    "  ucg_sim run --collective allreduce --hosts 12 --ranks-per-host 1 --bytes 8 \\\n"
    "    --profile cluster.toml --model network.median\n"
    "  ucg_sim run --collective bcast --hosts 4 --ranks-per-host 8 --bytes 64k --host-link 0.4ns "
    "\\\n"
    "    --format svg > bcast.svg\n"
    "  ucg_sim run --collective alltoall --hosts 16 --ranks-per-host 4 --bytes 64k \\\n"
    "    --pricing simgrid --platform cluster.xml\n"
    "  ucg_sim run --collective alltoall --hosts 16 --ranks-per-host 1 --bytes 64k \\\n"
    "    --topology /etc/slurm/topology.conf --algorithm pairwise\n"
    "  ucg_sim run --collective allreduce --ranks 64 --bytes 8 --noise exponential:100ns \\\n"
    "    --repetitions 100 --seed 7 --format json\n"
    "  ucg_sim run --collective allreduce --ranks 6 --bytes 8 --format dot | dot -Tsvg > graph.svg";

class RunCommand {
  public:
    explicit RunCommand(CLI::App& parent)
        : app_(*parent.add_subcommand("run", "Simulate one collective call of all ranks")) {
        question_.add_options(app_, QuestionOptions::Needs::collective);
        app_.add_option("--algorithm", algorithm_,
                        "As \"ucg_plan list\" names it (default: the planner chooses)")
            ->type_name("NAME");
        profile_.add_option(app_, &question_);
        topology_.add_option(app_);
        prices_.add_options(app_);
        add_choice_option(app_, "--pricing", pricing_, {PricingKind::own, PricingKind::simgrid},
                          "What messages cost on their way: by --model, or as flows that share the "
                          "links of --platform");
        platform_option_ = app_.add_option("--platform", platform_,
                                           "Hosts and links, SimGrid's XML (--pricing simgrid)")
                               ->type_name("FILE");
        app_.add_option("--in-a-row", options_.in_a_row,
                        "So many calls follow one another on each rank; times are those of all "
                        "of them (default: 1). \"ucg_plan explain\" says for how many its "
                        "prices are")
            ->transform(whole_number(1, kInARowMax))
            ->type_name("COUNT");
        add_delays();
        add_choice_option(app_, "--format", view_,
                          std::vector<View>{View::text, View::timeline, View::json, View::svg,
                                            View::dot, View::tasks},
                          "Output");
        app_.add_flag(
            "--details", details_,
            "In JSON, what each rank did when, each message and each flag slot that is read");
        app_.parse_complete_callback([this] {
            question_.check();
            prices_.check();
            check_pricing();
            check_in_a_row();
        });
        app_.footer(kFooter);
    }

    Status run() const {
        const Result<topo::Placement> placement = question_.placement();
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
        const plan::Facts facts =
            plan::facts_for(profile_.facts(*placement, *profile, network->get()),
                            question_.question(*placement).collective);
        sim::Options options = options_;
        prices_.apply(facts, options);
        if (*network != nullptr && pricing_ == PricingKind::own) {
            options.links = (*network)->links();
        }
        if (Status status = add_late(placement->rank_count(), options); !status.ok()) {
            return status;
        }
        if (Status status = check(options, placement->rank_count()); !status.ok()) {
            return status;
        }
        options.memory = sim::memory_of(*profile, plan::surroundings(facts));
        return view_ == View::dot || view_ == View::tasks ? print_tasks(facts, options)
                                                          : simulate(facts, options);
    }

  private:
    void add_delays() {
        CLI::App& group = *app_.add_option_group("Delays", "Random ones, and late ranks");
        add_parsed_option(group, "--noise", options_.message_noise, parse_distribution, "DELAY",
                          "Added to the flight of each message (default: none)");
        add_parsed_option(group, "--compute-noise", options_.compute_noise, parse_distribution,
                          "DELAY", "Added to each copy and reduction (default: none)");
        add_parsed_option(group, "--skew", options_.skew, parse_distribution, "DELAY",
                          "When each rank enters (default: none, all at 0)");
        add_parsed_option(group, "--arrivals", options_.arrival_ns, parse_times_ns, "TIME,...",
                          "When each rank enters, one time for each, added to --skew");
        add_parsed_option(group, "--late", late_, parse_late_ranks, "RANK=TIME,...",
                          "How much later than otherwise these ranks enter");
        group.add_option("--seed", seed_, "What random delays are drawn by (default: 1)")
            ->transform(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
            ->type_name("NUMBER");
        group
            .add_option("--repetitions", repetitions_,
                        "Simulate so often, with rising seeds, and report the minimum, median and "
                        "maximum (default: 1)")
            ->transform(whole_number(1, std::numeric_limits<int>::max()))
            ->type_name("COUNT");
    }

    void check_pricing() const {
        const bool needs = pricing_ == PricingKind::simgrid;
        if (needs && platform_option_->count() == 0) {
            throw CLI::RequiredError("--platform (for --pricing simgrid)");
        }
        if (!needs && platform_option_->count() > 0) {
            throw CLI::ValidationError("--platform", "is for --pricing simgrid");
        }
        if (needs && repetitions_ > 1) {
            throw CLI::ValidationError("--repetitions", "SimGrid simulates once in a process");
        }
    }

    void check_in_a_row() const {
        if (options_.in_a_row > 1 && (view_ == View::dot || view_ == View::tasks)) {
            throw CLI::ValidationError("--in-a-row", "the program graph is that of one call");
        }
    }

    Status add_late(Rank rank_count, sim::Options& options) const {
        const bool given = !options.arrival_ns.empty();
        for (const LateRank& late : late_) {
            if (late.rank >= rank_count) {
                return failure(Code::invalid_argument, "--late: there is no rank {} among {}",
                               late.rank, rank_count);
            }
            if (!given) {
                options.arrival_ns.resize(static_cast<std::size_t>(rank_count));
            }
            const auto index = static_cast<std::size_t>(late.rank);
            if (index < options.arrival_ns.size()) { // Else refused with the times of arrival.
                options.arrival_ns[index] += late.ns;
            }
        }
        return {};
    }

    Status check(const sim::Options& options, Rank rank_count) const {
        const bool draws = view_ == View::svg || view_ == View::dot;
        if (draws && rank_count > kDrawnRanksMax) {
            return failure(Code::invalid_argument,
                           "--format {}: draws at most {} ranks, found {}; --format json --details "
                           "has no limit",
                           name(view_), kDrawnRanksMax, rank_count);
        }
        return sim::check(options, rank_count);
    }

    Question question_of(const plan::Facts& facts) const {
        return question_.question(facts.placement, facts.network != nullptr);
    }

    /// Plans for one rank. `algorithm` is set to what the planner chose, so that later calls use
    /// the same one.
    Result<graph::Schedule> schedule(const plan::Facts& facts, Rank rank,
                                     std::string& algorithm) const {
        Result<graph::Schedule> made =
            plan::plan(facts, request_of(question_of(facts), rank), rank, algorithm);
        if (made) {
            algorithm = made->algorithm;
        }
        return made;
    }

    Status print_tasks(const plan::Facts& facts, const sim::Options& options) const {
        std::vector<graph::Schedule> schedules;
        std::string algorithm = algorithm_;
        for (Rank rank = 0; rank < facts.placement.rank_count(); ++rank) {
            Result<graph::Schedule> made = schedule(facts, rank, algorithm);
            if (!made) {
                return made.status();
            }
            schedules.push_back(std::move(*made));
        }
        const sim::TaskGraph graph = sim::task_graph(schedules, options);
        return write_output("-", view_ == View::dot ? sim::to_dot(graph) : sim::to_text(graph));
    }

    /// Simulates schedules rank by rank, so that memory holds only one schedule.
    Status simulate(const plan::Facts& facts, const sim::Options& options) const {
        const Result<std::unique_ptr<sim::Pricing>> pricing = pricing_of(facts.placement, options);
        if (!pricing) {
            return pricing.status();
        }
        Subject subject = subject_of(facts);
        subject.algorithm = algorithm_;
        for (Rank rank = 0; rank < facts.placement.rank_count(); ++rank) {
            const Result<graph::Schedule> made = schedule(facts, rank, subject.algorithm);
            if (!made) {
                return made.status();
            }
            (*pricing)->add(*made);
        }
        subject.title += ": " + subject.algorithm;
        const bool traces =
            view_ == View::svg || view_ == View::timeline || (view_ == View::json && details_);
        sim::Trace trace;
        Runs runs;
        for (int i = 0; i < repetitions_; ++i) {
            Result<sim::Outcome> outcome = (*pricing)->run(seed_ + static_cast<std::uint64_t>(i),
                                                           traces && i == 0 ? &trace : nullptr);
            if (!outcome) {
                return outcome.status();
            }
            runs.completions.push_back(outcome->completion());
            if (i == 0) {
                runs.first = std::move(*outcome);
            }
        }
        const bool shares = runs.first.share_count > 0 || runs.first.peer_bytes > 0;
        if (shares && prices_.model() != Model::profile) {
            subject.prices += "; copies of shared memory by the profile";
        }
        return write_output("-", report(subject, runs, trace, facts.placement));
    }

    Result<std::unique_ptr<sim::Pricing>> pricing_of(const topo::Placement& placement,
                                                     const sim::Options& options) const {
        if (pricing_ == PricingKind::simgrid) {
            return sim::simgrid_pricing(placement, options, platform_);
        }
        return std::unique_ptr<sim::Pricing>(std::make_unique<sim::Simulator>(placement, options));
    }

    Subject subject_of(const plan::Facts& facts) const {
        const Question question = question_of(facts);
        Subject subject;
        subject.collective = graph::name(question.collective);
        subject.title = fmt::format("{} ({})", describe(question), describe(facts.placement));
        subject.prices = prices_.describe(facts.profile);
        if (facts.network != nullptr && pricing_ == PricingKind::own) {
            subject.prices += fmt::format("; links of {}", topology_.path());
        }
        if (pricing_ == PricingKind::simgrid) {
            subject.prices += fmt::format("; links by SimGrid, {}", platform_);
        }
        subject.in_a_row = options_.in_a_row;
        subject.seed = seed_;
        return subject;
    }

    std::string report(const Subject& subject, const Runs& runs, const sim::Trace& trace,
                       const topo::Placement& placement) const {
        switch (view_) {
        case View::timeline: return sim::timeline_text(runs.first, trace);
        case View::json: return json_report(subject, runs, details_ ? &trace : nullptr);
        case View::svg:
            return sim::timeline_svg(runs.first, trace, placement, {subject.title, subject.prices});
        case View::text:
        case View::dot:
        case View::tasks: break;
        }
        return text_report(subject, runs);
    }

    CLI::App& app_;
    QuestionOptions question_;
    ProfileOption profile_;
    TopologyOption topology_;
    PricesOptions prices_;
    sim::Options options_; ///< Delays; the prices come from `prices_`.
    PricingKind pricing_ = PricingKind::own;
    std::string platform_;
    const CLI::Option* platform_option_ = nullptr;
    std::string algorithm_;
    std::vector<LateRank> late_;
    std::uint64_t seed_ = 1;
    int repetitions_ = 1;
    View view_ = View::text;
    bool details_ = false;
};

} // namespace

} // namespace ucg::tools

int main(int argc, char* argv[]) {
    using namespace ucg::tools;
    CLI::App app("Simulates the schedules that UCG's planner makes, under a model of the network.",
                 "ucg_sim");
    app.require_subcommand(1);
    app.footer("Exit status: 0 done, 1 failed, 2 wrong usage. \"ucg_sim run --help\" has models, "
               "formats and examples.");
    const RunCommand command(app);
    const AgreementCommand agreement(app);
    return run(app, argc, argv,
               [&] { return agreement.is_chosen() ? agreement.run() : command.run(); });
}
