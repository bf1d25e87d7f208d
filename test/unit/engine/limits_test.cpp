// Repeats and runs of messages at the limits of what the engine can number: whatever verify accepts
// runs, and whatever cannot run is refused.
#include <array>
#include <cstring>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/run_ranks.hpp"
#include "ucg_coll/graph/graph.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg {
namespace {

using graph::Builder;
using graph::Collective;
using graph::OpId;
using graph::Request;
using graph::Schedule;
using transport::Delivery;

Request bcast(std::uint64_t bytes) {
    Request request;
    request.collective = Collective::bcast;
    request.rank_count = 2;
    request.bytes = bytes;
    return request;
}

constexpr std::uint64_t kSegment = 4;
constexpr std::uint64_t kIterations = 40;

/// Rank 1 permits rank 0 to send a segment once it has the segment of `distance` iterations before.
Schedule permitted(Rank rank, std::uint32_t distance, std::uint32_t rotation) {
    Builder b(bcast(kIterations * kSegment), rank, "permitted");
    b.begin_repeat(kIterations * kSegment, kSegment, rotation);
    if (rank == 0) {
        const std::array<OpId, 1> permit = {b.await(1)};
        b.send(1, advance(b.input(0, kSegment)), permit);
    } else {
        const OpId have = b.recv(0, advance(b.output(0, kSegment)));
        b.after_earlier(b.signal(0), have, distance);
    }
    b.end_repeat();
    return b.finish();
}

/// The same, but rank 1's signal comes before the receive in the schedule, so it depends on an op
/// that stands behind it.
Schedule permitted_first(Rank rank, std::uint32_t distance, std::uint32_t rotation) {
    if (rank == 0) {
        return permitted(rank, distance, rotation);
    }
    Builder b(bcast(kIterations * kSegment), rank, "permitted");
    b.begin_repeat(kIterations * kSegment, kSegment, rotation);
    const OpId permit = b.signal(0);
    b.after_earlier(permit, b.recv(0, advance(b.output(0, kSegment))), distance);
    b.end_repeat();
    return b.finish();
}

void check_bcast(const std::vector<Schedule>& schedules, Delivery delivery) {
    test::RankSet ranks(schedules, delivery, 3);
    for (std::size_t i = 0; i < ranks.input(0).size(); ++i) {
        ranks.input(0)[i] = static_cast<std::byte>(i + 1);
    }
    REQUIRE(ranks.run({}));
    CHECK(ranks.output(1) == ranks.input(0));
    CHECK(ranks.fabric().quiet());
}

/// A transport that completes all messages at once and counts them.
class Counting final : public transport::Transport {
  public:
    std::string_view name() const override { return "counting"; }
    void post(std::span<transport::Message> messages) override {
        for (transport::Message& message : messages) {
            message.state = transport::MessageState::done;
        }
        posted += messages.size();
    }
    unsigned progress() override { return 0; }
    Status status() const override { return {}; }

    std::size_t posted = 0;
};

std::size_t messages_posted(const Schedule& schedule) {
    Counting transport;
    std::vector<transport::Transport*> routes(static_cast<std::size_t>(schedule.rank_count),
                                              &transport);
    const engine::Program program = engine::lower(schedule, routes).value();
    engine::Execution execution(program);
    engine::Engine engine({&transport});
    std::vector<std::byte> input(schedule.input_bytes);
    std::vector<std::byte> output(schedule.output_bytes);
    const auto nothing = [](void*, const std::byte* const*, std::size_t, std::byte*, std::size_t) {
    };
    engine.start(execution, {input.data(), output.data(), {nothing, nullptr}});
    CHECK(execution.state() == engine::ExecutionState::done);
    return transport.posted;
}

/// The reason why a schedule with flag slots cannot run on a transport that has none.
std::string refusal(Builder builder) {
    Counting transport;
    const std::array<transport::Transport*, 2> routes = {nullptr, &transport};
    const Result<engine::Program> program = engine::lower(builder.finish(), routes);
    REQUIRE(!program);
    CHECK(program.status().code() == Code::unsupported);
    return std::string(program.status().message());
}

Builder flag_slots(std::uint64_t shared_bytes) {
    Builder b(bcast(8), 0, "flag_slots");
    b.flag_slots();
    b.share(b.input(0, shared_bytes));
    return b;
}

} // namespace

TEST_CASE("engine: an op may wait for one of any distance before", "[engine][repeat][limits]") {
    const auto build = GENERATE(permitted, permitted_first);
    const auto delivery = GENERATE(Delivery::immediate, Delivery::reordered, Delivery::synchronous);
    for (std::uint32_t distance = 1; distance <= 15; ++distance) {
        for (const std::uint32_t rotation : {1U, 2U, 4U, 7U, 8U, 15U}) {
            CAPTURE(distance, rotation);
            const std::vector<Schedule> schedules = {build(0, distance, rotation),
                                                     build(1, distance, rotation)};
            const Request request = bcast(kIterations * kSegment);
            REQUIRE(graph::verify(schedules, {&request, 1}).message() == "");
            check_bcast(schedules, delivery);
        }
    }
}

TEST_CASE("engine: flag slots that no transport has are refused", "[engine][limits]") {
    CHECK_THAT(refusal(flag_slots(8)),
               ContainsSubstring("shares 8 bytes on a flag slot, there is room for 0"));
    CHECK_THAT(refusal(flag_slots(0)),
               ContainsSubstring("shares on a flag slot, and there is none"));
    Builder reads = flag_slots(0);
    reads.await_share(1);
    CHECK_THAT(refusal(reads),
               ContainsSubstring("reads the flag slot of rank 1, which no transport reaches"));
}

TEST_CASE("engine: messages go by the transports of their peers", "[engine]") {
    Counting one;
    Counting other;
    const std::array<transport::Transport*, 4> routes = {nullptr, &one, &other, &one};
    Request request = bcast(8);
    request.rank_count = 4;
    Builder b(request, 0, "three");
    for (const Rank peer : {1, 2, 3}) {
        b.send(peer, b.input(0, 8));
    }
    const engine::Program program = engine::lower(b.finish(), routes).value();
    CHECK(program.carriers == std::vector<transport::Transport*>{&one, &other});
    engine::Execution execution(program);
    engine::Engine engine({&one, &other});
    std::array<std::byte, 8> input = {};
    engine.start(execution, {input.data(), nullptr, {}});
    CHECK(one.posted == 2);
    CHECK(other.posted == 1);
}

TEST_CASE("engine: a long run of messages is posted whole", "[engine][limits]") {
    constexpr std::uint64_t kMessages = 70'000;
    Builder b(bcast(kMessages), 0, "bytes");
    for (std::uint64_t i = 0; i < kMessages; ++i) {
        b.send(1, b.input(i, 1));
    }
    CHECK(messages_posted(b.finish()) == kMessages);
}

TEST_CASE("engine: a reduction of 40,000 operands posts all its messages", "[engine][limits]") {
    constexpr Rank kRanks = 40'000;
    const topo::Placement placement = topo::Placement::one_host(kRanks);
    const plan::Facts facts{placement, cost::default_profile()};
    Request request;
    request.collective = Collective::allreduce;
    request.rank_count = kRanks;
    request.bytes = 8;
    request.element_bytes = 8;
    const Schedule schedule =
        plan::plan(facts, request, 17, "recursive_multiplying:a40000").value();
    CHECK(messages_posted(schedule) == 2 * (kRanks - 1));
}

} // namespace ucg
