// Two ends that time messages between them, over a transport that the test drives or breaks.
#include <cstddef>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/wireup/latency_probe.hpp"
#include "ucg_coll/transport/loopback/loopback.hpp"

namespace ucg::capi {
namespace {

using State = LatencyProbe::State;
using transport::Delivery;
using transport::Message;
using transport::MessageState;

constexpr auto kNever = LatencyProbe::Clock::time_point::max();

TEST_CASE("latency probe: who asks knows how long messages take, and nothing is left in flight") {
    const Delivery delivery =
        GENERATE(Delivery::immediate, Delivery::reordered, Delivery::synchronous);
    transport::LoopbackFabric fabric(2, delivery);
    LatencyProbe asks(fabric.transport(0), 1, true, 5);
    LatencyProbe answers(fabric.transport(1), 0, false, 5);
    bool over = false;
    for (int turn = 0; turn < 10000 && !over; ++turn) {
        const bool asked = asks.look(kNever) == State::over;
        over = answers.look(kNever) == State::over && asked;
    }
    CHECK(over);
    CHECK(fabric.quiet());
    CHECK(asks.seen_ns() > 0);
    CHECK(answers.seen_ns() == 0);
}

/// A transport that keeps what is posted until the test completes it or the transport is abandoned.
class Held final : public transport::Transport {
  public:
    std::string_view name() const override { return "held"; }
    void post(std::span<Message> messages) override {
        if (held_.size() == held_max) {
            throw std::bad_alloc();
        }
        for (Message& message : messages) {
            message.state = MessageState::posted;
            held_.push_back(&message);
        }
    }
    unsigned progress() override { return 0; }
    Status status() const override { return {}; }
    void abandon() override {
        abandoned = true;
        for (Message* message : held_) {
            message->state = MessageState::failed;
        }
    }

    std::size_t count() const { return held_.size(); }
    void end(std::size_t which, MessageState state) { held_[which]->state = state; }

    std::size_t held_max = 100;
    bool abandoned = false;

  private:
    std::vector<Message*> held_;
};

TEST_CASE("latency probe: after a failure it ends once the transport has given back everything") {
    Held transport;
    LatencyProbe asks(transport, 1, true, 5);
    CHECK(asks.look(kNever) == State::waits);
    REQUIRE(transport.count() == 2);
    transport.end(0, MessageState::failed);
    CHECK(asks.look(kNever) == State::waits);
    transport.end(1, MessageState::done);
    CHECK(asks.look(kNever) == State::failed);
    CHECK(transport.count() == 2);
    CHECK_FALSE(transport.abandoned);
}

TEST_CASE("latency probe: a peer that does not answer in time is given up") {
    Held transport;
    LatencyProbe answers(transport, 1, false, 5);
    CHECK(answers.look(kNever) == State::waits);
    CHECK(answers.look(LatencyProbe::Clock::time_point::min()) == State::failed);
    CHECK(transport.abandoned);
}

TEST_CASE("latency probe: where memory runs out no message stays in flight") {
    Held transport;
    transport.held_max = GENERATE(std::size_t{0}, std::size_t{1});
    LatencyProbe asks(transport, 1, true, 5);
    CHECK(asks.look(kNever) == State::failed);
    CHECK(transport.abandoned);
}

} // namespace
} // namespace ucg::capi
