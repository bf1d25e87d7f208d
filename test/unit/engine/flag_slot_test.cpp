// Collectives by flag slots of few or of many slots: a rank may be as far ahead of its peers as
// these have slots, which may be more than collectives may be outstanding.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/engine/operators.hpp"
#include "ucg_coll/graph/builder.hpp"
#include "ucg_coll/transport/loopback/loopback.hpp"

namespace ucg {
namespace {

using engine::ExecutionState;
using graph::Builder;
using graph::Schedule;
using transport::Delivery;

constexpr std::size_t kCalls = 4 * std::size_t{engine::kOutstandingMax} + 3;
constexpr std::uint64_t kBytes = sizeof(std::int64_t);

graph::Request request_of(graph::Collective collective) {
    graph::Request request;
    request.collective = collective;
    request.rank_count = 2;
    request.bytes = kBytes;
    request.element_bytes = kBytes;
    return request;
}

/// Only rank 0 shares something.
Schedule one_way(Rank rank) {
    Builder builder(request_of(graph::Collective::bcast), rank, "one_way");
    builder.flag_slots();
    if (rank == 0) {
        builder.share(builder.input(0, kBytes));
    } else {
        builder.copy(Builder::flag_slot(0, 0, kBytes), builder.output(0, kBytes));
    }
    return builder.finish();
}

Schedule both_ways(Rank rank) {
    Builder builder(request_of(graph::Collective::allreduce), rank, "both_ways");
    builder.flag_slots();
    builder.share(builder.input(0, kBytes));
    builder.reduce(std::array{builder.input(0, kBytes), Builder::flag_slot(1 - rank, 0, kBytes)},
                   builder.output(0, kBytes));
    return builder.finish();
}

/// A rank and all its calls of one collective.
class Side {
  public:
    Side(transport::LoopbackFabric& fabric, const Schedule& schedule)
        : routes_(fabric.routes(schedule.rank)), program_(engine::lower(schedule, routes_).value()),
          engine_({&fabric.transport(schedule.rank)}), calls_(kCalls) {
        for (std::size_t i = 0; i < kCalls; ++i) {
            calls_[i].in = static_cast<std::int64_t>(10 * i) + schedule.rank;
            calls_[i].execution = std::make_unique<engine::Execution>(program_);
        }
    }

    void start(std::size_t index) {
        Call& call = calls_[index];
        engine_.start(*call.execution, {reinterpret_cast<std::byte*>(&call.in),
                                        reinterpret_cast<std::byte*>(&call.out),
                                        {engine::find_operator(engine::OperatorKind::sum,
                                                               engine::ElementType::int64),
                                         nullptr}});
    }
    void progress() { engine_.progress(); }

    std::size_t done() const {
        return static_cast<std::size_t>(std::ranges::count_if(calls_, [](const Call& call) {
            return call.execution->state() == ExecutionState::done;
        }));
    }
    std::int64_t result(std::size_t index) const { return calls_[index].out; }

  private:
    struct Call {
        std::int64_t in = 0;
        std::int64_t out = 0;
        std::unique_ptr<engine::Execution> execution;
    };

    std::vector<transport::Transport*> routes_;
    engine::Program program_;
    engine::Engine engine_;
    std::vector<Call> calls_;
};

void run(std::array<Side, 2>& sides) {
    for (int round = 0; round < 100'000 && sides[0].done() + sides[1].done() < 2 * kCalls;
         ++round) {
        sides[0].progress();
        sides[1].progress();
    }
    CHECK(sides[0].done() == kCalls);
    CHECK(sides[1].done() == kCalls);
}

std::size_t any_depth() {
    return GENERATE(as<std::size_t>(), 2, 4, engine::kOutstandingMax, 2 * engine::kOutstandingMax);
}

Delivery any_delivery() {
    return GENERATE(Delivery::immediate, Delivery::reordered, Delivery::synchronous);
}

} // namespace

TEST_CASE("engine: who only shares is as far ahead as there are slots", "[engine][flag_slots]") {
    const std::size_t depth = any_depth();
    transport::LoopbackFabric fabric(2, any_delivery(), 7, depth);
    std::array<Side, 2> sides = {Side(fabric, one_way(0)), Side(fabric, one_way(1))};
    for (std::size_t i = 0; i < kCalls; ++i) {
        sides[0].start(i);
        sides[0].progress();
    }
    CHECK(sides[0].done() == depth);
    for (std::size_t i = 0; i < kCalls; ++i) {
        sides[1].start(i);
    }
    run(sides);
    for (std::size_t i = 0; i < kCalls; ++i) {
        CHECK(sides[1].result(i) == static_cast<std::int64_t>(10 * i));
    }
}

TEST_CASE("engine: exchanges beyond slots and window end in the end", "[engine][flag_slots]") {
    const std::size_t depth = any_depth();
    const bool in_turn = GENERATE(false, true);
    transport::LoopbackFabric fabric(2, any_delivery(), 7, depth);
    std::array<Side, 2> sides = {Side(fabric, both_ways(0)), Side(fabric, both_ways(1))};
    for (std::size_t i = 0; i < 2 * kCalls; ++i) {
        sides[in_turn ? i % 2 : i / kCalls].start(in_turn ? i / 2 : i % kCalls);
    }
    run(sides);
    for (const Side& side : sides) {
        for (std::size_t i = 0; i < kCalls; ++i) {
            CHECK(side.result(i) == static_cast<std::int64_t>(20 * i) + 1);
        }
    }
}

} // namespace ucg
