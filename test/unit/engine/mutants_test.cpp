// verify against the engine: planned schedules are changed at random. verify must refuse each
// mutant and name the rank and what is wrong there, or the mutant must run to the right result in
// every mode of message delivery, twice in a row, with ranks that leave as soon as they may. There
// is no third case.
//
// MUTANTS is how many mutants are tried (by default 150 for each row of the planner's table),
// MUTANTS_SEED is the seed of the first. A failure names the seed of its mutant, which MUTANTS=1
// MUTANTS_SEED=<that> repeats.
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <regex>

#include "test/support/catch.hpp"
#include "test/unit/engine/mutation.hpp"
#include "test/unit/engine/reference.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/transport/loopback/loopback.hpp"

namespace ucg {
namespace {

using graph::Collective;
using graph::Request;
using graph::Schedule;
using plan::test::Case;
using plan::test::RankLayout;
using test::Reference;
using transport::Delivery;
using Random = std::mt19937_64;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// The planned schedules of all ranks, and the case that they serve.
struct Plan {
    Case sample;
    std::string algorithm;
    std::unique_ptr<topo::Placement> placement;
    std::vector<Request> requests;
    std::vector<Schedule> schedules;
};

bool same_host(Rank a, Rank b, const void* placement) {
    return static_cast<const topo::Placement*>(placement)->same_host(a, b);
}

Case random_case(const plan::Algorithm& row, Random& random) {
    constexpr std::uint64_t kLengths[] = {8, 16, 64, 200, 520, 1032};
    Case sample;
    sample.collective = row.collective;
    sample.rank_count = static_cast<Rank>(2 + random() % 7);
    sample.root = static_cast<Rank>(graph::rooted(row.collective)
                                        ? random() % static_cast<std::uint64_t>(sample.rank_count)
                                        : 0);
    sample.bytes = row.collective == Collective::barrier ? 0 : kLengths[random() % 6];
    sample.element_bytes = graph::reduces(row.collective) ? test::kElementBytes : 1;
    const bool may_be_in_place = graph::has_in_place(row.collective);
    sample.in_place = may_be_in_place && random() % 3 == 0;
    sample.commutative = random() % 2 == 0;
    return sample;
}

/// A plan by that row for random facts that the row serves. It takes several tries, since rows need
/// some layout, memory or flag slots. Pipelines have segments of a cache line.
Plan random_plan(const plan::Algorithm& row, Random& random) {
    constexpr int kTriesMax = 1000;
    for (int i = 0; i < kTriesMax; ++i) {
        const Case sample = random_case(row, random);
        Plan plan{sample, {}, nullptr, {}, {}};
        plan.placement = std::make_unique<topo::Placement>(plan::test::place(
            plan::test::kLayouts[random() % std::size(plan::test::kLayouts)], sample.rank_count));
        const cost::Profile profile =
            plan::test::profile_for(plan::test::kPrices[1 + random() % 2]);
        const std::uint64_t staging = plan::test::kStagings[random() % 3];
        const auto network = plan::test::network_for(*plan.placement);
        const auto loaded = plan::test::loaded_for(*plan.placement, network.get());
        const plan::Facts facts{
            *plan.placement,
            profile,
            plan::shared_memory(*plan.placement, profile, staging, false, random() % 3 * 512, true),
            1,
            nullptr,
            network.get(),
            loaded.get()};
        if (!row.eligible(facts, plan::test::request_of(sample, 0))) {
            continue;
        }
        for (Rank rank = 0; rank < sample.rank_count; ++rank) {
            plan.requests.push_back(plan::test::request_of(sample, rank));
            plan.schedules.push_back(row.build(facts, plan.requests.back(), rank));
        }
        plan.algorithm = plan.schedules[0].algorithm;
        return plan;
    }
    FAIL("no request for " << graph::name(row.collective) << " " << row.name);
    return {};
}

/// How a mutant is run.
struct Conditions {
    Delivery delivery = Delivery::immediate;
    std::uint64_t seed = 1;
    /// 0: peers read buffers in place; 1: by way of staging buffers; 2: either, at random.
    int reach = 0;
};

/// Runs the schedules twice, one collective after the other. A rank starts the second as soon as it
/// is through the first, with new data in the buffers, so a peer that still reads the old data gets
/// a wrong result.
class Trial {
  public:
    Trial(const Plan& plan, const std::vector<Schedule>& schedules, Conditions conditions)
        : fabric_(plan.sample.rank_count, conditions.delivery, conditions.seed),
          // Another seed than the fabric's, so that the two do not run in step.
          random_(~conditions.seed) {
        fabric_.map_buffers([this, conditions](Rank) {
            return conditions.reach == 2 ? random_() % 2 == 0 : conditions.reach == 0;
        });
        for (Reference& reference : references_) {
            reference = test::make_reference(plan.requests, random_);
        }
        for (const Schedule& schedule : schedules) {
            sides_.push_back(std::make_unique<Side>(schedule, fabric_));
        }
    }

    /// Runs the trial and returns what went wrong; empty if nothing did.
    std::string run() {
        for (const auto& side : sides_) {
            if (!side->lowered.ok()) {
                return fmt::format("was not lowered: {}", side->lowered.message());
            }
        }
        // Delays are random, and the engine may start ops without a completed message, which is not
        // counted as progress: the limit is high.
        constexpr int kIdleMax = 10'000;
        for (int idle = 0; idle < kIdleMax && problem_.empty() && !over();) {
            const std::size_t rank = random_() % sides_.size();
            idle = advance(rank) ? 0 : idle + 1;
        }
        if (problem_.empty() && !over()) {
            return "hangs";
        }
        return !problem_.empty() ? problem_ : fabric_.quiet() ? "" : "leaves messages behind";
    }

  private:
    static constexpr std::size_t kRuns = 2;

    struct Side {
        Side(const Schedule& schedule, transport::LoopbackFabric& fabric)
            : routes(fabric.routes(schedule.rank)), engine({&fabric.transport(schedule.rank)}) {
            Result<engine::Program> result = engine::lower(schedule, routes);
            lowered = result.status();
            if (result.ok()) {
                program = std::move(*result);
                execution = std::make_unique<engine::Execution>(program);
            }
        }

        std::vector<transport::Transport*> routes;
        Status lowered;
        engine::Program program;
        engine::Engine engine;
        std::unique_ptr<engine::Execution> execution;
        test::Bytes input;
        test::Bytes output;
        std::size_t started = 0;
        std::size_t finished = 0;
    };

    /// Lets one rank run once; false if nothing happened.
    bool advance(std::size_t rank) {
        Side& side = *sides_[rank];
        const bool starts = side.started == side.finished && side.started < kRuns;
        if (starts) {
            side.input = references_[side.started].inputs[rank];
            side.output = references_[side.started].outputs[rank];
            ++side.started;
            side.engine.start(*side.execution,
                              {side.input.data(), side.output.data(), {test::compose, nullptr}});
        }
        const unsigned events = side.engine.progress();
        if (side.started > side.finished && !side.execution->in_progress()) {
            check(rank);
            ++side.finished;
            return true;
        }
        return starts || events > 0;
    }

    void check(std::size_t rank) {
        const Side& side = *sides_[rank];
        const Reference& reference = references_[side.finished];
        if (side.execution->state() != engine::ExecutionState::done) {
            problem_ = fmt::format("fails at rank {}", rank);
        } else if (side.input != reference.inputs[rank]) {
            problem_ = fmt::format("changes the input of rank {}", rank);
        } else if (side.output != reference.results[rank]) {
            problem_ = fmt::format("has a wrong result at rank {}, run {}", rank, side.finished);
        }
    }

    bool over() const {
        return std::all_of(sides_.begin(), sides_.end(),
                           [](const auto& side) { return side->finished == kRuns; });
    }

    transport::LoopbackFabric fabric_;
    Random random_;
    std::array<Reference, kRuns> references_;
    std::vector<std::unique_ptr<Side>> sides_;
    std::string problem_;
};

/// What goes wrong in any of the delivery modes; empty if nothing does.
std::string run_all(const Plan& plan, const std::vector<Schedule>& schedules, Random& random) {
    constexpr int kSeeds = 2;
    for (const Delivery delivery :
         {Delivery::immediate, Delivery::reordered, Delivery::synchronous}) {
        for (int i = 0; i < kSeeds; ++i) {
            const Conditions conditions{delivery, random(), static_cast<int>(random() % 3)};
            const std::string problem = Trial(plan, schedules, conditions).run();
            if (!problem.empty()) {
                return fmt::format("{}; delivery {}, seed {}, reach {}", problem,
                                   static_cast<int>(delivery), conditions.seed, conditions.reach);
            }
        }
    }
    return {};
}

/// Does a refusal say at which rank, and at which op, repeat or field of the header?
bool names_place(const std::string& message) {
    static const std::regex op("rank [0-9]+.*(op [0-9]+|no op|repeat [0-9]+)");
    static const std::regex header(
        "rank [0-9]+: ([a-z_]+ is .*|takes (a|no) sequence number of the flag slots.*|"
        "has a flag slot of .*)");
    return std::regex_search(message, op) || std::regex_match(message, header);
}

std::string to_text(const std::vector<Schedule>& schedules) {
    std::string text;
    for (const Schedule& schedule : schedules) {
        text += graph::to_text(schedule);
    }
    return text;
}

struct Count {
    unsigned refused = 0;
    unsigned run = 0;
};

/// Tries one mutant of `plan`, which `seed` determines.
void try_mutant(const Plan& plan, std::uint64_t seed, Count& count) {
    Random random(seed);
    std::vector<Schedule> schedules = plan.schedules;
    std::string changes;
    for (std::uint64_t left = 1 + random() % 3; left > 0; --left) {
        const std::string change = test::mutate(schedules, random);
        changes += change.empty() ? "" : "; " + change;
    }
    INFO(plan::test::describe(plan.sample) << " by " << plan.algorithm << changes);
    const Status status = graph::verify(schedules, plan.requests, same_host, plan.placement.get());
    std::string problem;
    if (status.ok()) {
        ++count.run;
        problem = run_all(plan, schedules, random);
    } else {
        ++count.refused;
        problem = names_place(std::string(status.message()))
                      ? ""
                      : fmt::format("is refused without a place: {}", status.message());
    }
    if (!problem.empty()) {
        FAIL_CHECK(problem << "\n" << to_text(schedules));
    }
}

} // namespace

TEST_CASE("engine: a mutant is refused by verify or runs to the right result",
          "[engine][mutants]") {
    constexpr std::uint64_t kMutantsPerPlan = 5;
    const std::uint64_t first = setting("MUTANTS_SEED", 1);
    const std::span<const plan::Algorithm> rows = plan::algorithms();
    // This is enough for some mutants of each collective to run.
    const std::uint64_t enough = 150 * rows.size();
    const std::uint64_t mutants = setting("MUTANTS", enough);
    std::map<Collective, Count> counts;
    Count all;
    Plan plan;
    std::uint64_t planned = 0;
    for (std::uint64_t seed = first; seed < first + mutants; ++seed) {
        // Neighbouring seeds share a plan, and all rows are covered.
        const std::uint64_t number = seed / kMutantsPerPlan;
        if (plan.schedules.empty() || planned != number) {
            Random random(number);
            plan = random_plan(rows[number % rows.size()], random);
            planned = number;
        }
        INFO("MUTANTS=1 MUTANTS_SEED=" << seed);
        Count count;
        try_mutant(plan, seed, count);
        Count& of = counts[plan.sample.collective];
        of.run += count.run;
        of.refused += count.refused;
        all.run += count.run;
        all.refused += count.refused;
    }
    std::cout << "MUTANTS_SEED=" << first << " MUTANTS=" << mutants << ": " << all.refused
              << " refused, " << all.run << " run\n";
    for (const auto& [collective, count] : counts) {
        INFO(graph::name(collective));
        CHECK((mutants < enough || (count.run > 10 && count.refused > 40)));
    }
}

} // namespace ucg
