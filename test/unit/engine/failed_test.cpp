// Collectives that have failed: a transport may still hold their messages, so they are never
// started again, whichever call tries to.
#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/graph/builder.hpp"

namespace ucg {
namespace {

using engine::ExecutionState;
using graph::Builder;
using graph::Schedule;

/// A transport that holds everything that is posted to it; fail_one() fails one message, and the
/// others stay posted. Its flag slots have no room unless they are given some, no other rank shares
/// anything in them, and a failure breaks them.
class Holding final : public transport::Transport, public transport::FlagSlots {
  public:
    void fail_one() {
        held_.front()->state = transport::MessageState::failed;
        break_down();
    }
    void break_down() { broken_ = true; }

    std::string_view name() const override { return "holding"; }
    void post(std::span<transport::Message> messages) override {
        for (transport::Message& message : messages) {
            message.state = transport::MessageState::posted;
            held_.push_back(&message);
            use_memory();
        }
    }
    unsigned progress() override {
        use_memory();
        return 0;
    }
    void abandon() override {
        ++abandoned;
        for (transport::Message* message : held_) {
            message->state = transport::MessageState::failed;
        }
    }
    bool has_failed() const override { return broken_; }
    Status status() const override {
        return broken_ ? Status(Code::unreachable, "the peer is gone") : Status();
    }
    transport::FlagSlots* flag_slots() override { return this; }

    std::uint64_t bytes_max() const override { return 64; }
    bool share(const transport::FlagSlotSequence& /*sequence*/, const std::byte* /*data*/,
               std::uint64_t /*bytes*/) override {
        ++shares;
        return has_room;
    }
    std::size_t poll(const transport::FlagSlotSequence& /*sequence*/,
                     std::span<const transport::FlagSlotRead> /*reads*/,
                     const std::byte** /*places*/) override {
        return 0;
    }
    std::size_t exchange(const transport::FlagSlotExchange& exchange) override {
        const std::size_t seen = exchange_by_parts(exchange);
        use_memory();
        return seen;
    }
    void finish(std::uint64_t /*sequence*/) override {}
    bool broken() const override { return broken_; }

    std::size_t posted() const { return held_.size(); }
    bool has_room = false;
    bool has_memory = true;
    unsigned shares = 0;
    unsigned abandoned = 0;

  private:
    void use_memory() const {
        if (!has_memory) {
            throw std::bad_alloc();
        }
    }

    std::vector<transport::Message*> held_;
    bool broken_ = false;
};

graph::Request request_of(graph::Collective collective, std::uint64_t bytes) {
    graph::Request request;
    request.collective = collective;
    request.rank_count = 2;
    request.bytes = bytes;
    request.element_bytes = 8;
    return request;
}

/// The schedule of rank 0, which sends to rank 1 and receives from it.
Schedule by_messages() {
    Builder builder(request_of(graph::Collective::alltoall, 8), 0, "messages");
    builder.send(1, builder.input(8, 8));
    builder.recv(1, builder.output(8, 8));
    builder.copy(builder.input(0, 8), builder.output(0, 8));
    return builder.finish();
}

Schedule by_flag_slots() {
    Builder builder(request_of(graph::Collective::barrier, 0), 0, "flag_slots");
    builder.flag_slots();
    builder.share(builder.input(0, 0));
    builder.await_share(1);
    return builder.finish();
}

struct Rank0 {
    explicit Rank0(const Schedule& schedule)
        : program(engine::lower(schedule, routes).value()), execution(program) {
        execution.bind({input.data(), output.data(), {}});
    }

    Holding transport;
    std::array<transport::Transport*, 2> routes = {nullptr, &transport};
    std::array<std::byte, 16> input = {};
    std::array<std::byte, 16> output = {};
    engine::Program program;
    engine::Execution execution;
    engine::Engine engine{{&transport}};
};

/// A transport whose peers reach all buffers in place. What they read there may be outdated.
class Exposing final : public transport::Transport, public transport::PeerMemory {
  public:
    std::string_view name() const override { return "exposing"; }
    void post(std::span<transport::Message> /*messages*/) override {}
    unsigned progress() override { return 0; }
    void abandon() override { abandoned = true; }
    Status status() const override { return {}; }
    transport::PeerMemory* peer_memory() override { return this; }

    std::span<std::byte> staging() override { return {}; }
    bool is_mapped_by_peers(const std::byte* /*data*/, std::uint64_t /*bytes*/) const override {
        return true;
    }
    bool expose(std::uint32_t /*sequence*/, const transport::SharedBuffers& /*buffers*/,
                std::uint64_t /*staging_bytes*/) override {
        return true;
    }
    transport::SharedBuffer peer_buffer(Rank /*owner*/, graph::BufferKind /*buffer*/,
                                        std::uint32_t /*sequence*/) const override {
        return {};
    }
    bool intact() override { return is_intact; }

    bool is_intact = true;
    bool abandoned = false;
};

} // namespace

TEST_CASE("engine: a collective that may have read what a failed peer wrote fails",
          "[engine][failed]") {
    Exposing transport;
    const std::array<transport::Transport*, 2> routes = {nullptr, &transport};
    Builder builder(request_of(graph::Collective::alltoall, 8), 0, "exposed");
    builder.expose();
    builder.copy(builder.input(0, 8), builder.output(0, 8));
    const engine::Program program = engine::lower(builder.finish(), routes).value();
    std::array<std::byte, 16> input = {};
    std::array<std::byte, 16> output = {};
    engine::Engine engine{{&transport}};
    engine::Execution execution(program);
    execution.bind({input.data(), output.data(), {}});
    engine.start(execution);
    CHECK(execution.state() == ExecutionState::done);
    transport.is_intact = false;
    engine.start(execution);
    CHECK(execution.state() == ExecutionState::failed);
    CHECK(transport.abandoned);
    CHECK(engine.idle());
}

TEST_CASE("engine: only a schedule of flag slots takes sequence numbers of the flag slots",
          "[engine]") {
    CHECK(Rank0(by_flag_slots()).program.flag_slots != nullptr);
    CHECK(Rank0(by_messages()).program.flag_slots == nullptr);
}

TEST_CASE("engine: a collective whose messages have failed posts none again", "[engine][failed]") {
    Rank0 rank(by_messages());
    rank.engine.start(rank.execution);
    REQUIRE(rank.execution.in_progress());
    const std::size_t posted = rank.transport.posted();
    REQUIRE(posted > 0);
    rank.transport.fail_one();
    rank.engine.progress();
    REQUIRE(rank.execution.state() == ExecutionState::failed);
    CHECK(rank.transport.abandoned > 0); // The transport has let go of the buffers.
    for (int i = 0; i < 3; ++i) {
        rank.engine.start(rank.execution);
        CHECK(rank.execution.state() == ExecutionState::failed);
        CHECK(rank.engine.idle());
    }
    CHECK(rank.transport.posted() == posted);
    CHECK(rank.engine.status().code() == Code::unreachable);
}

TEST_CASE("engine: where a transport gets no memory, nothing stays posted", "[engine][failed]") {
    Rank0 rank(by_messages());
    const bool at_start = GENERATE(true, false);
    rank.transport.has_memory = !at_start;
    rank.engine.start(rank.execution);
    if (!at_start) {
        REQUIRE(rank.execution.in_progress());
        rank.transport.has_memory = false;
        rank.engine.progress();
    }
    CHECK(rank.execution.state() == ExecutionState::failed);
    CHECK(rank.engine.idle());
    CHECK(rank.transport.abandoned > 0);
    CHECK(rank.engine.status().code() == Code::out_of_memory);
    rank.transport.has_memory = true;
    const std::size_t posted = rank.transport.posted();
    engine::Execution later(rank.program);
    later.bind({rank.input.data(), rank.output.data(), {}});
    rank.engine.start(later);
    CHECK(later.state() == ExecutionState::failed);
    CHECK(rank.transport.posted() == posted);
}

TEST_CASE("engine: a group that was given up ends what is in progress and starts nothing",
          "[engine][failed]") {
    Rank0 rank(by_messages());
    const bool broken = GENERATE(false, true);
    rank.engine.start(rank.execution);
    REQUIRE(rank.execution.in_progress());
    int listener = 0;
    rank.execution.tell_end(&listener);
    if (broken) {
        rank.transport.break_down();
    }
    CHECK(rank.engine.lose(Code::disagreement) != broken);
    CHECK(rank.transport.abandoned > 0);
    rank.engine.progress();
    CHECK(rank.execution.state() == ExecutionState::failed);
    CHECK(rank.engine.take_ended() == &rank.execution);
    CHECK(rank.engine.idle());
    const std::size_t posted = rank.transport.posted();
    engine::Execution later(rank.program);
    later.bind({rank.input.data(), rank.output.data(), {}});
    rank.engine.start(later);
    rank.engine.progress();
    CHECK(later.state() == ExecutionState::failed);
    CHECK((broken || rank.transport.posted() == posted));
    // The first reason is the one that is told.
    CHECK(!rank.engine.lose(Code::out_of_memory));
    CHECK(rank.engine.status().code() == (broken ? Code::unreachable : Code::disagreement));
}

TEST_CASE("engine: an exchange that has failed shares nothing again", "[engine][failed]") {
    Rank0 rank(by_flag_slots());
    REQUIRE(rank.program.exchange);
    rank.engine.start(rank.execution);
    REQUIRE(rank.execution.in_progress());
    CHECK(rank.transport.shares == 1); // There was no room, so progress() tries again.
    rank.engine.progress();
    CHECK(rank.transport.shares == 2);
    rank.transport.break_down();
    rank.engine.progress();
    REQUIRE(rank.execution.state() == ExecutionState::failed);
    CHECK(rank.transport.abandoned > 0);
    const unsigned shares = rank.transport.shares;
    for (int i = 0; i < 3; ++i) {
        rank.engine.start(rank.execution);
        CHECK(rank.execution.state() == ExecutionState::failed);
        CHECK(rank.engine.idle());
    }
    CHECK(rank.transport.shares == shares);
}

TEST_CASE("engine: an exchange that has shared fails when the flag slots break",
          "[engine][failed]") {
    Rank0 rank(by_flag_slots());
    rank.transport.has_room = true;
    rank.engine.start(rank.execution);
    REQUIRE(rank.execution.in_progress());
    rank.engine.progress();
    REQUIRE(rank.execution.in_progress());
    CHECK(rank.transport.shares == 1);
    rank.transport.break_down();
    rank.engine.progress();
    CHECK(rank.execution.state() == ExecutionState::failed);
    CHECK(rank.transport.abandoned > 0);
}

TEST_CASE("engine: an exchange that fails where it starts is given up by all transports",
          "[engine][failed]") {
    Rank0 rank(by_flag_slots());
    rank.transport.break_down();
    rank.engine.start(rank.execution);
    CHECK(rank.execution.state() == ExecutionState::failed);
    CHECK(rank.engine.idle());
    CHECK(rank.transport.abandoned > 0);
}

TEST_CASE("engine: an exchange for which a transport gets no memory fails with the group",
          "[engine][failed]") {
    Rank0 rank(by_flag_slots());
    rank.transport.has_room = true;
    rank.transport.has_memory = false;
    rank.engine.start(rank.execution);
    CHECK(rank.execution.state() == ExecutionState::failed);
    CHECK(rank.engine.idle());
    CHECK(rank.transport.abandoned > 0);
    CHECK(rank.transport.shares == 1);
    CHECK(rank.engine.status().code() == Code::out_of_memory);
}

TEST_CASE("engine: who waits for one rank hears that another has failed", "[engine][failed]") {
    graph::Request request = request_of(graph::Collective::alltoall, 8);
    request.rank_count = 3;
    Builder builder(request, 0, "messages");
    builder.send(1, builder.input(8, 8));
    builder.recv(2, builder.output(16, 8));
    builder.copy(builder.output(16, 8), builder.output(8, 8));
    Holding first;
    Holding second;
    const std::array<transport::Transport*, 3> routes = {nullptr, &first, &second};
    const engine::Program program = engine::lower(builder.finish(), routes).value();
    std::array<std::byte, 24> input = {};
    std::array<std::byte, 24> output = {};
    engine::Engine engine{{&first, &second}};
    engine::Execution execution(program);
    execution.bind({input.data(), output.data(), {}});
    engine.start(execution);
    engine.progress();
    REQUIRE(execution.in_progress());
    SECTION("by a message that it does not wait for yet") {
        first.fail_one();
    }
    SECTION("by none of its messages") {
        first.break_down();
    }
    engine.progress();
    CHECK(execution.state() == ExecutionState::failed);
    CHECK(second.abandoned > 0);
    CHECK(engine.idle());
}

TEST_CASE("engine: what was read of a failed peer does not leave the host", "[engine][failed]") {
    Exposing host;
    Holding network;
    const std::array<transport::Transport*, 3> routes = {nullptr, &host, &network};
    graph::Request request = request_of(graph::Collective::alltoall, 8);
    request.rank_count = 3;
    Builder builder(request, 0, "exposed");
    builder.expose();
    builder.copy(builder.input(0, 8), builder.output(0, 8));
    builder.send(2, builder.output(0, 8));
    const engine::Program program = engine::lower(builder.finish(), routes).value();
    std::array<std::byte, 24> input = {};
    std::array<std::byte, 24> output = {};
    engine::Engine engine{{&host, &network}};
    engine::Execution execution(program);
    execution.bind({input.data(), output.data(), {}});
    host.is_intact = false;
    engine.start(execution);
    CHECK(execution.state() == ExecutionState::failed);
    CHECK(network.posted() == 0);
    CHECK(host.abandoned);
}

} // namespace ucg
