#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>

#include "test/support/catch.hpp"
#include "test/support/run_ranks.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/engine/operators.hpp"
#include "ucg_coll/graph/builder.hpp"
#include "ucg_coll/graph/verify.hpp"

namespace ucg {
namespace {

using engine::ExecutionState;
using graph::Builder;
using graph::Collective;
using graph::Request;
using graph::Schedule;
using graph::Slice;
using test::RankSet;
using transport::Delivery;

engine::Reduction sum64() {
    return {engine::find_operator(engine::OperatorKind::sum, engine::ElementType::int64), nullptr};
}

Request allreduce(Rank ranks, std::uint64_t bytes) {
    Request request;
    request.collective = Collective::allreduce;
    request.rank_count = ranks;
    request.bytes = bytes;
    request.element_bytes = 8;
    return request;
}

std::vector<Schedule> all_ranks(Rank ranks, const std::function<Schedule(Rank)>& build) {
    std::vector<Schedule> schedules;
    for (Rank rank = 0; rank < ranks; ++rank) {
        schedules.push_back(build(rank));
    }
    return schedules;
}

/// Two ranks exchange their vectors and add them in rank order.
Schedule exchange_and_add(std::uint64_t bytes, Rank rank) {
    Builder b(allreduce(2, bytes), rank, "exchange");
    const Slice other = b.scratch(bytes);
    b.send(1 - rank, b.input(0, bytes));
    b.recv(1 - rank, other);
    const Slice mine = b.input(0, bytes);
    const std::array<Slice, 2> operands = {rank == 0 ? mine : other, rank == 0 ? other : mine};
    b.reduce(operands, b.output(0, bytes));
    return b.finish();
}

/// A pipelined chain: rank r adds its vector to the one that comes from r - 1, so the last rank has
/// the sum, which travels back. It is cut into segments, with rotating scratch.
Schedule chain_sum(Rank ranks, std::uint64_t bytes, std::uint64_t segment, Rank rank) {
    Builder b(allreduce(ranks, bytes), rank, "chain");
    const bool last = rank == ranks - 1;
    const Slice arrived = b.rotating_scratch(std::min(segment, bytes), 2);
    const Slice partial = b.rotating_scratch(std::min(segment, bytes), 2);
    const auto up = b.begin_repeat(bytes, segment, 2);
    const Slice mine = advance(b.input(0, up.first_segment));
    if (rank == 0) {
        b.send(1, mine);
    } else {
        b.recv(rank - 1, arrived);
        const std::array<Slice, 2> operands = {arrived, mine};
        b.reduce(operands, last ? advance(b.output(0, up.first_segment)) : partial);
        if (!last) {
            b.send(rank + 1, partial);
        }
    }
    b.end_repeat();
    const auto down = b.begin_repeat(bytes, segment);
    const Slice result = advance(b.output(0, down.first_segment));
    if (!last) {
        b.recv(rank + 1, result);
    }
    if (rank > 0) {
        b.send(rank - 1, result);
    }
    b.end_repeat();
    return b.finish();
}

void fill(RankSet& ranks, Rank count) {
    for (Rank rank = 0; rank < count; ++rank) {
        auto& input = ranks.input(rank);
        auto* values = reinterpret_cast<std::int64_t*>(input.data());
        for (std::size_t i = 0; i < input.size() / 8; ++i) {
            values[i] = static_cast<std::int64_t>(i) * 1000 + rank + 1;
        }
    }
}

void check_sums(RankSet& ranks, Rank count, std::uint64_t bytes) {
    for (Rank rank = 0; rank < count; ++rank) {
        REQUIRE(ranks.output(rank).size() == bytes);
        const auto* values = reinterpret_cast<const std::int64_t*>(ranks.output(rank).data());
        for (std::size_t i = 0; i < bytes / 8; ++i) {
            const auto expected = static_cast<std::int64_t>(i) * 1000 * count +
                                  static_cast<std::int64_t>(count) * (count + 1) / 2;
            if (values[i] != expected) {
                FAIL("rank " << rank << " element " << i << ": " << values[i] << " instead of "
                             << expected);
            }
        }
    }
}

Delivery any_delivery() {
    return GENERATE(Delivery::immediate, Delivery::reordered, Delivery::synchronous);
}

TEST_CASE("engine: two ranks exchange and add, again and again", "[engine]") {
    const Delivery delivery = any_delivery();
    RankSet ranks(all_ranks(2, [](Rank rank) { return exchange_and_add(8, rank); }), delivery, 1);
    for (int repetition = 0; repetition < 10; ++repetition) {
        fill(ranks, 2);
        REQUIRE(ranks.run(sum64()));
        check_sums(ranks, 2, 8);
    }
    CHECK(ranks.fabric().quiet());
}

TEST_CASE("engine: an operator of the program is called from outside", "[engine][operator]") {
    const Rank count = 3;
    int context = 0;
    const engine::Reduction foreign = {sum64().combine, &context};
    RankSet ranks(all_ranks(count, [&](Rank rank) { return chain_sum(count, 72, 24, rank); }),
                  any_delivery(), 13);
    fill(ranks, count);
    for (Rank rank = 0; rank < count; ++rank) {
        ranks.execution(rank).keep_operator(rank == 1);
        ranks.start(rank, foreign);
    }
    REQUIRE_FALSE(ranks.drive()); // Each rank stops before its first reduction.
    CHECK(ranks.execution(1).state() == ExecutionState::operator_due);
    // The operator call of rank 1 is kept for the caller that waits.
    CHECK(ranks.engine(1).take_operator() == nullptr);
    CHECK(ranks.engine(0).take_operator() == nullptr); // Rank 0 reduces nothing.
    for (int calls = 0; !ranks.drive(); ++calls) {
        REQUIRE(calls < 6); // Two ranks reduce three segments each.
        const Rank rank = ranks.execution(1).state() == ExecutionState::operator_due ? 1 : 2;
        // Rank 2 does not keep its operator call, so any caller gets it.
        REQUIRE((rank == 1 ? ranks.engine(1).take_operator(ranks.execution(1))
                           : ranks.engine(2).take_operator() == &ranks.execution(2)));
        // A due call is given out once.
        CHECK_FALSE(ranks.engine(rank).take_operator(ranks.execution(rank)));
        ranks.engine(rank).progress(); // Meanwhile progress() leaves the execution alone.
        CHECK(ranks.execution(rank).state() == ExecutionState::in_operator);
        ranks.execution(rank).call_operator();
        ranks.engine(rank).operator_called(ranks.execution(rank));
    }
    check_sums(ranks, count, 72);
}

TEST_CASE("engine: a repeat runs segment by segment", "[engine][repeat]") {
    const Delivery delivery = any_delivery();
    const auto seed = GENERATE(as<std::uint64_t>(), 1, 2, 3, 4, 5);
    const auto bytes = GENERATE(as<std::uint64_t>(), 8, 64, 72, 800);
    const auto segment = GENERATE(as<std::uint64_t>(), 8, 24, 64);
    const Rank count = 4;
    RankSet ranks(
        all_ranks(count, [&](Rank rank) { return chain_sum(count, bytes, segment, rank); }),
        delivery, seed);
    for (int repetition = 0; repetition < 2; ++repetition) {
        fill(ranks, count);
        REQUIRE(ranks.run(sum64()));
        check_sums(ranks, count, bytes);
    }
    CHECK(ranks.fabric().quiet());
}

TEST_CASE("engine: a schedule runs the same when its repeats are written out", "[engine][repeat]") {
    const Rank count = 3;
    const auto build = [&](Rank rank) { return unroll(chain_sum(count, 200, 24, rank)); };
    RankSet ranks(all_ranks(count, build), any_delivery(), 7);
    fill(ranks, count);
    REQUIRE(ranks.run(sum64()));
    check_sums(ranks, count, 200);
}

TEST_CASE("engine: ranks may be collectives apart", "[engine][nonblocking]") {
    // Rank 0 sends many times before rank 1 starts for the first time.
    Request request;
    request.collective = Collective::bcast;
    request.rank_count = 2;
    request.bytes = 8;
    const auto build = [&](Rank rank) {
        Builder b(request, rank, "direct");
        if (rank == 0) {
            b.send(1, b.input(0, 8));
        } else {
            b.recv(0, b.output(0, 8));
        }
        return b.finish();
    };
    RankSet ranks(all_ranks(2, build), Delivery::reordered, 3);
    constexpr int kAhead = 20;
    for (int i = 0; i < kAhead; ++i) {
        std::memcpy(ranks.input(0).data(), &i, sizeof(i));
        ranks.start(0, {});
        while (ranks.execution(0).in_progress()) {
            ranks.engine(0).progress();
        }
    }
    for (int i = 0; i < kAhead; ++i) {
        ranks.start(1, {});
        while (ranks.execution(1).in_progress()) {
            ranks.engine(1).progress();
        }
        int value = -1;
        std::memcpy(&value, ranks.output(1).data(), sizeof(value));
        CHECK(value == i);
    }
}

TEST_CASE("engine: starts beyond the window queue and complete in the end", "[engine][window]") {
    transport::LoopbackFabric fabric(2, Delivery::synchronous, 5);
    const int count = static_cast<int>(engine::kOutstandingMax) * 2 + 3;
    struct Side {
        std::vector<transport::Transport*> routes;
        engine::Program program;
        std::unique_ptr<engine::Engine> engine;
        std::vector<std::unique_ptr<engine::Execution>> executions;
        std::vector<std::array<std::int64_t, 2>> buffers;
    };
    std::array<Side, 2> sides;
    for (Rank rank = 0; rank < 2; ++rank) {
        Side& side = sides[static_cast<std::size_t>(rank)];
        side.routes = fabric.routes(rank);
        side.program = engine::lower(exchange_and_add(8, rank), side.routes).value();
        side.engine = std::make_unique<engine::Engine>(
            std::vector<transport::Transport*>{&fabric.transport(rank)});
        side.buffers.resize(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i) {
            side.executions.push_back(std::make_unique<engine::Execution>(side.program));
            auto& buffer = side.buffers[static_cast<std::size_t>(i)];
            buffer = {i + rank, 0};
            side.engine->start(*side.executions.back(),
                               {reinterpret_cast<std::byte*>(&buffer[0]),
                                reinterpret_cast<std::byte*>(&buffer[1]), sum64()});
        }
        CHECK(side.executions.back()->state() == ExecutionState::queued);
    }
    for (int round = 0; round < 10000 && !(sides[0].engine->idle() && sides[1].engine->idle());
         ++round) {
        sides[0].engine->progress();
        sides[1].engine->progress();
    }
    for (const Side& side : sides) {
        for (int i = 0; i < count; ++i) {
            CHECK(side.executions[static_cast<std::size_t>(i)]->state() == ExecutionState::done);
            CHECK(side.buffers[static_cast<std::size_t>(i)][1] == 2 * i + 1);
        }
    }
}

TEST_CASE("engine: peers' slices are read in place after a signal", "[engine][peer]") {
    const std::uint64_t bytes = 64;
    const auto build = [&](Rank rank) {
        Builder b(allreduce(2, bytes), rank, "direct_read");
        b.staging_buffer(bytes);
        Slice theirs = b.input(0, bytes);
        theirs.owner = 1 - rank;
        b.signal(1 - rank, std::array{b.publish(b.input(0, bytes))});
        const std::array<graph::OpId, 1> ready = {b.await(1 - rank)};
        const Slice mine = b.input(0, bytes);
        const std::array<Slice, 2> operands = {rank == 0 ? mine : theirs,
                                               rank == 0 ? theirs : mine};
        const std::array<graph::OpId, 1> read = {b.reduce(operands, b.output(0, bytes), ready)};
        b.signal(1 - rank, read);
        b.await(1 - rank);
        return b.finish();
    };
    RankSet ranks(all_ranks(2, build), any_delivery(), 11);
    fill(ranks, 2);
    REQUIRE(ranks.run(sum64()));
    check_sums(ranks, 2, bytes);
}

/// Every rank publishes chunks of its input and reads those of all other ranks; two chunks may be
/// under way at once.
Schedule read_all(const Request& request, Rank rank, std::uint64_t chunk) {
    Builder b(request, rank, "read_all");
    b.staging_buffer(2 * chunk);
    const auto segments = b.begin_repeat(request.bytes, chunk, 2);
    const Slice mine = advance(b.input(0, segments.first_segment));
    const graph::OpId published = b.publish(mine);
    std::vector<graph::OpId> signals;
    std::vector<graph::OpId> awaits;
    std::vector<Slice> operands;
    for (Rank peer = 0; peer < request.rank_count; ++peer) {
        Slice theirs = mine;
        theirs.owner = peer;
        operands.push_back(theirs);
        if (peer != rank) {
            signals.push_back(b.signal(peer, std::array{published}));
        }
    }
    for (Rank peer = 0; peer < request.rank_count; ++peer) {
        if (peer != rank) {
            awaits.push_back(b.await(peer));
            b.after_earlier(published, awaits.back(), 1);
        }
    }
    const graph::OpId read =
        b.reduce(operands, advance(b.output(0, segments.first_segment)), awaits);
    for (const graph::OpId signal : signals) {
        b.after_earlier(signal, read, 1);
    }
    b.end_repeat();
    for (Rank peer = 0; peer < request.rank_count; ++peer) {
        if (peer != rank) {
            b.signal(peer, std::array{read});
            b.await(peer);
        }
    }
    return b.finish();
}

TEST_CASE("engine: what is published is read in place or by way of staging buffers",
          "[engine][peer]") {
    const bool in_place = GENERATE(true, false);
    const Rank count = GENERATE(2, 3, 5);
    const std::uint64_t bytes = GENERATE(64, 512, 8 * 77);
    const Request request = allreduce(count, bytes);
    const auto build = [&](Rank rank) { return read_all(request, rank, 128); };
    const std::vector<Schedule> schedules = all_ranks(count, build);
    const auto together = [](Rank, Rank, const void*) { return true; };
    CHECK(graph::verify(schedules, std::array{request}, together).message() == "");
    RankSet ranks(schedules, any_delivery(), 11);
    ranks.fabric().map_buffers(in_place);
    fill(ranks, count);
    REQUIRE(ranks.run(sum64()));
    check_sums(ranks, count, bytes);
}

TEST_CASE("engine: a peer without a route is refused when the schedule is lowered", "[engine]") {
    const Schedule schedule = exchange_and_add(8, 0);
    const std::array<transport::Transport*, 2> none = {nullptr, nullptr};
    const Result<engine::Program> program = engine::lower(schedule, none);
    REQUIRE(!program.ok());
    CHECK(program.status().code() == Code::unreachable);
    CHECK(program.status().message() == "rank 0 has no transport to rank 1");
}

TEST_CASE("engine: what no transport can reach is refused when the schedule is lowered",
          "[engine][peer]") {
    transport::LoopbackFabric fabric(2, Delivery::immediate);
    const auto routes = fabric.routes(0);
    const auto problem = [&](bool exposed, bool staging_buffer, graph::BufferKind buffer) {
        Builder b(allreduce(2, 8), 0, "read");
        b.copy({0, 8, 1, buffer, graph::Stride::fixed}, b.output(0, 8));
        if (staging_buffer) {
            b.staging_buffer(64);
        }
        Schedule schedule = b.finish();
        schedule.exposed = exposed;
        return std::string(engine::lower(schedule, routes).status().message());
    };
    const std::string names = "rank 0, op 0 (copy): names a peer's memory, which needs ";
    CHECK(problem(true, true, graph::BufferKind::input).empty());
    CHECK(problem(true, false, graph::BufferKind::scratch).empty());
    CHECK(problem(false, false, graph::BufferKind::scratch) == names + "its own to be exposed");
    CHECK(problem(true, false, graph::BufferKind::input) == names + "a staging buffer");
}

TEST_CASE("engine: an exchange of two ranks is one post and one reduction", "[engine][lower]") {
    transport::LoopbackFabric fabric(2, Delivery::immediate);
    const auto routes = fabric.routes(0);
    const engine::Program program = engine::lower(exchange_and_add(8, 0), routes).value();
    const std::vector<graph::Step>& steps = program.lowered.steps;
    REQUIRE(steps.size() == 3);
    CHECK(steps[0].kind == graph::StepKind::post);
    CHECK(steps[0].count == 2);
    CHECK(steps[1].kind == graph::StepKind::reduce);
    CHECK(steps[1].wait_count == 1);
    CHECK(steps[2].kind == graph::StepKind::finish);
}

TEST_CASE("engine: senders help a rank that gathers, and none that reduces", "[engine][lower]") {
    using transport::SenderHelp;
    struct Case {
        std::vector<Rank> from;
        bool sends;
        bool reduces;
        SenderHelp expected;
    };
    const Case one = GENERATE(
        Case{{1, 2}, false, false, SenderHelp::wanted}, Case{{1}, false, false, SenderHelp::spare},
        Case{{1, 1}, false, false, SenderHelp::spare}, Case{{1, 2}, true, false, SenderHelp::spare},
        Case{{1, 2}, false, true, SenderHelp::unwanted},
        Case{{1}, true, true, SenderHelp::unwanted});
    Builder b(allreduce(3, 8), 0, "receive");
    if (one.sends) {
        b.send(1, b.input(0, 8));
    }
    std::vector<Slice> operands = {b.input(0, 8)};
    for (const Rank peer : one.from) {
        operands.push_back(b.scratch(8));
        b.recv(peer, operands.back());
    }
    if (one.reduces) {
        b.reduce(operands, b.output(0, 8));
    }
    transport::LoopbackFabric fabric(3, Delivery::immediate);
    const auto routes = fabric.routes(0);
    const engine::Program program = engine::lower(b.finish(), routes).value();
    for (const transport::Message& message : program.slots) {
        if (message.direction == transport::Direction::recv) {
            CHECK(message.sender_help == one.expected);
        }
    }
}

} // namespace
} // namespace ucg
