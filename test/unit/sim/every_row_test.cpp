// Every row of the planner's table in the simulator, with shared memory and without: every op is
// priced, no op is done before what it depends on, and the engine goes through the same ops at the
// same times.
#include <algorithm>
#include <array>
#include <set>

#include "test/support/catch.hpp"
#include "test/unit/plan/every_row.hpp"
#include "test/unit/sim/replay.hpp"
#include "test/unit/sim/support.hpp"

using namespace ucg;
using namespace ucg::test;
using graph::Collective;
using graph::OpKind;
using plan::test::Case;
using plan::test::Trial;
using plan::test::Trials;

namespace {

sim::Options profile_options(const Trial& trial) {
    sim::Options options;
    options.network = sim::PerLevel(cost::default_profile());
    options.compute = sim::compute_of(cost::default_profile());
    options.memory = {.model = cost::default_profile().memory};
    if (trial.facts.placement.host_count() > 1) {
        options.host_link = sim::HostLink{.per_message_ns = 100, .per_byte_ns = 0.45};
    }
    return options;
}

struct Counts {
    std::uint64_t messages = 0;
    std::uint64_t shares = 0;
    std::uint64_t looks = 0;
};

Counts counts_of(const std::vector<graph::Schedule>& schedules) {
    Counts counts;
    for (const graph::Schedule& schedule : schedules) {
        for (const graph::Op& op : graph::unroll(schedule).ops) {
            counts.messages += op.kind == OpKind::send || op.kind == OpKind::signal ? 1 : 0;
            counts.shares += op.kind == OpKind::share ? 1 : 0;
        }
        for (const graph::Op& op : schedule.ops) { // Flag slots are read outside repeats only.
            counts.looks += graph::flag_slots_read(schedule, op).size();
        }
    }
    return counts;
}

/// The kinds of activity by which a processor spends time on an op.
std::set<sim::Activity::Kind> work_of(const graph::Schedule& schedule, const graph::Op& op) {
    using Kind = sim::Activity::Kind;
    std::set<Kind> kinds;
    if (!graph::flag_slots_read(schedule, op).empty()) {
        kinds.insert(Kind::poll);
    }
    switch (op.kind) {
    case OpKind::send:
    case OpKind::signal: kinds.insert(Kind::issue); break;
    case OpKind::copy:
        if (!graph::only_waits(op)) {
            kinds.insert(Kind::copy);
        }
        break;
    case OpKind::reduce: kinds.insert(Kind::reduce); break;
    case OpKind::publish: kinds.insert(Kind::publish); break;
    case OpKind::share: kinds.insert(Kind::share); break;
    case OpKind::recv:
    case OpKind::await: break; // The op that waits takes the message in.
    }
    return kinds;
}

using Done = std::tuple<Rank, std::uint32_t, sim::Activity::Kind>;

void check_prices(const std::vector<graph::Schedule>& schedules, const sim::Trace& trace) {
    std::set<Done> done;
    for (const sim::Activity& activity : trace.activities) {
        done.insert({activity.rank, activity.op, activity.kind});
    }
    for (const graph::Schedule& schedule : schedules) {
        for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
            for (const sim::Activity::Kind kind : work_of(schedule, schedule.ops[i])) {
                INFO("rank " << schedule.rank << ", op " << i << ": " << sim::name(kind));
                CHECK(done.contains({schedule.rank, i, kind}));
            }
        }
    }
}

/// Does the result of `rank` depend on what `other` contributes?
bool depends(const std::vector<graph::Request>& requests, Rank rank, Rank other) {
    const graph::Request& request = requests[static_cast<std::size_t>(rank)];
    const auto received = [&](Rank from) {
        return request.receive.bytes[static_cast<std::size_t>(from)] > 0;
    };
    const bool at_root = rank == request.root;
    switch (request.collective) {
    case Collective::barrier:
    case Collective::allreduce:
    case Collective::allgather:
    case Collective::alltoall:
    case Collective::reduce_scatter_block: return true;
    case Collective::bcast:
    case Collective::scatter: return other == request.root;
    case Collective::scatterv: return other == request.root && request.bytes > 0;
    case Collective::reduce:
    case Collective::gather: return at_root;
    case Collective::gatherv: return at_root && requests[static_cast<std::size_t>(other)].bytes > 0;
    case Collective::allgatherv:
    case Collective::alltoallv: return received(other);
    case Collective::neighbor_alltoallv: {
        const graph::Blocks& edges = request.receive;
        for (std::size_t i = 0; i < edges.peers.size(); ++i) {
            if (edges.peers[i] == other && edges.bytes[i] > 0) {
                return true;
            }
        }
        return false;
    }
    case Collective::reduce_scatter: return received(rank);
    case Collective::scan:
    case Collective::exscan: return other < rank;
    }
    return false;
}

} // namespace

TEST_CASE("sim: every op of every row is priced", "[sim][every_row]") {
    plan::test::for_every_row({.counts = {4, 7}}, [](const Trial& trial) {
        INFO(trial.describe());
        const auto schedules = trial.schedules();
        const sim::Options options = profile_options(trial);
        sim::Trace trace;
        const sim::Outcome outcome =
            simulated(schedules, trial.facts.placement, options, 1, &trace);
        const Counts counts = counts_of(schedules);
        CHECK(outcome.message_count == counts.messages);
        CHECK(outcome.share_count == counts.shares);
        CHECK(outcome.poll_count == counts.looks);
        CHECK(trace.transfers.size() == counts.messages + counts.looks);
        CHECK(std::all_of(trace.transfers.begin(), trace.transfers.end(), [](const auto& t) {
            return t.begin <= t.left && t.left <= t.arrived && t.arrived <= t.taken;
        }));
        CHECK(simulated(schedules, trial.facts.placement, options).finish == outcome.finish);
        check_prices(schedules, trace);
    });
}

TEST_CASE("sim: nobody is done before those that it depends on have come", "[sim][every_row]") {
    constexpr double kLateNs = 1e6; // This is longer than any collective takes here.
    Trials trials{.counts = {4, 5}, .bytes = {8, 88, 4104}};
    trials.in_place = false;
    plan::test::for_every_row(trials, [&](const Trial& trial) {
        const auto schedules = trial.schedules();
        const Rank count = trial.sample.rank_count;
        std::vector<graph::Request> requests;
        for (Rank rank = 0; rank < count; ++rank) {
            requests.push_back(plan::test::request_of(trial.sample, rank));
        }
        for (Rank late = 0; late < count; ++late) {
            sim::Options options = profile_options(trial);
            options.arrival_ns.assign(static_cast<std::size_t>(count), 0);
            options.arrival_ns[static_cast<std::size_t>(late)] = kLateNs;
            const sim::Outcome outcome = simulated(schedules, trial.facts.placement, options);
            for (Rank rank = 0; rank < count; ++rank) {
                INFO(trial.describe() << ": rank " << rank << " while rank " << late << " is late");
                const sim::Picoseconds done = outcome.finish[static_cast<std::size_t>(rank)];
                const sim::Picoseconds entered = sim::to_picoseconds(kLateNs);
                if (rank == late) {
                    CHECK(done >= entered); // The late rank may have nothing to do.
                } else if (depends(requests, rank, late)) {
                    CHECK(done > entered);
                }
            }
        }
    });
}

TEST_CASE("sim: the engine issues every op of every row when the simulator does",
          "[sim][every_row][replay]") {
    std::uint64_t seed = 0;
    plan::test::for_every_row({.counts = {3, 4, 7}}, [&](const Trial& trial) {
        INFO(trial.describe() << ", seed " << ++seed);
        const std::string difference =
            first_difference(trial.facts.placement, trial.schedules(), seed, seed % 2 == 0);
        CHECK(difference == "");
    });
}

TEST_CASE("sim: waits of many iterations back are the engine's", "[sim][replay]") {
    constexpr std::uint64_t kSegment = 8;
    constexpr std::uint64_t kBytes = 12 * kSegment;
    const auto placement = topo::Placement::one_host(2);
    for (const std::uint32_t distance : {1U, 3U, 4U, 5U, 7U, 15U}) {
        for (const bool further_on : {false, true}) {
            std::vector<graph::Schedule> schedules;
            for (Rank rank = 0; rank < 2; ++rank) {
                graph::Builder builder(allreduce_of(kBytes, 2), rank, "x");
                builder.begin_repeat(kBytes, kSegment);
                const auto recv = [&] {
                    return builder.recv(1 - rank, advance(builder.output(0, kSegment)));
                };
                const graph::OpId before = further_on ? graph::kNoOp : recv();
                const graph::OpId send =
                    builder.send(1 - rank, advance(builder.input(0, kSegment)));
                const graph::OpId after = further_on ? recv() : before;
                builder.after_earlier(send, after, distance);
                builder.end_repeat();
                schedules.push_back(builder.finish());
            }
            INFO("distance " << distance << (further_on ? ", further on" : ""));
            CHECK(first_difference(placement, schedules, distance, false) == "");
        }
    }
}

TEST_CASE("sim: the replay finds what the simulator gets wrong", "[sim][every_row][replay]") {
    const auto placement = topo::Placement::one_host(3);
    const cost::Profile& profile = cost::default_profile();
    const plan::Facts facts{placement, profile,
                            plan::shared_memory(placement, profile, 1 << 20, false, 8 << 10)};
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < 3; ++rank) {
        schedules.push_back(plan::plan(facts, allreduce_of(8, 3), rank, "flag_slots").value());
    }
    REQUIRE(first_difference(placement, schedules, 1, false) == "");
    // One rank's schedule has no share, so the others wait for ever, both in the simulator and in
    // the engine.
    schedules[1].ops.erase(schedules[1].ops.begin());
    CHECK(first_difference(placement, schedules, 1, false) ==
          "rank 0 waits for ever before op 1 for what rank 1 does not share");
}
