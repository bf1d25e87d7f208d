// Messages that a transport holds back: what the transport is told about them. And a caller that
// asked to be told of the end of a collective is told once, in the order in which collectives end.
#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "test/support/catch.hpp"
#include "test/unit/engine/held.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/engine/operators.hpp"
#include "ucg_coll/graph/builder.hpp"

namespace ucg {
namespace {

using engine::Execution;
using engine::ExecutionState;
using test::Held;
using test::receives;

constexpr std::size_t kCount = 5;

/// Rank 1 runs some collectives, each of which waits for one message.
struct Rank1 {
    Rank1() {
        for (std::unique_ptr<Execution>& execution : executions) {
            execution = std::make_unique<Execution>(program);
            engine.start(*execution, {nullptr, output.data(), {}});
        }
        REQUIRE(transport.posted.size() == kCount);
    }

    /// Completes the messages of these collectives before the engine looks at any of them.
    void complete(std::initializer_list<std::size_t> which) {
        for (const std::size_t i : which) {
            transport.posted[i]->state = transport::MessageState::done;
        }
        engine.progress();
    }

    Held transport;
    std::array<transport::Transport*, 2> routes = {&transport, nullptr};
    std::array<std::byte, 8> output = {};
    engine::Program program = engine::lower(receives(), routes).value();
    engine::Engine engine{{&transport}};
    std::array<std::unique_ptr<Execution>, kCount> executions;
};

/// Rank 0 adds what it receives to its own vector.
graph::Schedule adds(std::uint64_t bytes) {
    graph::Request request;
    request.collective = graph::Collective::reduce;
    request.rank_count = 2;
    request.bytes = bytes;
    request.element_bytes = 8;
    graph::Builder builder(request, 0, "adds");
    const std::array<graph::Slice, 2> operands = {builder.input(0, bytes), builder.scratch(bytes)};
    builder.recv(1, operands[1]);
    builder.reduce(operands, builder.output(0, bytes));
    return builder.finish();
}

} // namespace

TEST_CASE("engine: what only a built-in operator reads is given out where it arrives", "[engine]") {
    constexpr std::uint64_t kBytes = 1024;
    const auto given_out = [](const graph::Schedule& schedule, void* context) {
        Held transport;
        const std::array<transport::Transport*, 2> routes = {&transport, &transport};
        const engine::Program program = engine::lower(schedule, routes).value();
        Execution execution(program);
        engine::Engine engine{{&transport}};
        const engine::CombineFn sum =
            engine::find_operator(engine::OperatorKind::sum, engine::ElementType::int64);
        std::vector<std::byte> input(kBytes);
        std::vector<std::byte> output(kBytes);
        engine.start(execution, {input.data(), output.data(), {sum, context}});
        REQUIRE(transport.posted.size() == 1);
        return transport.posted.front()->read_on_arrival;
    };
    int context = 0; // An operator of the program's has a context, and it gets whole vectors only.
    CHECK(given_out(adds(kBytes), nullptr));
    CHECK_FALSE(given_out(adds(kBytes), &context));
    CHECK_FALSE(given_out(adds(kCacheLine), nullptr));
    CHECK_FALSE(given_out(receives(), nullptr));
}

TEST_CASE("engine: ends that are to be told are given out once, in their order", "[engine]") {
    Rank1 rank;
    std::array<int, kCount> listeners = {};
    for (std::size_t i = 0; i < kCount; ++i) {
        if (i != 3) { // Nobody asks for the end of number 3.
            rank.executions[i]->tell_end(&listeners[i]);
        }
    }
    const auto told = [&](std::size_t i) {
        Execution* const ended = rank.engine.take_ended();
        REQUIRE(ended == rank.executions[i].get());
        CHECK(ended->state() == ExecutionState::done);
        CHECK(ended->take_listener() == &listeners[i]);
    };
    CHECK(rank.engine.take_ended() == nullptr);
    rank.complete({1});
    told(1);
    CHECK(rank.engine.take_ended() == nullptr);
    rank.complete({4, 0, 3}); // The engine finds their ends in the order of their starts.
    rank.complete({2});
    told(0);
    told(4);
    told(2);
    CHECK(rank.engine.take_ended() == nullptr);
    CHECK(rank.engine.idle());
}

} // namespace ucg
