// Two ends that time messages between them, over a transport that the test drives or breaks.
#include <cstddef>
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

TEST_CASE("latency probe: who asks knows how long messages take, and nothing is left in flight") {
    const Delivery delivery =
        GENERATE(Delivery::immediate, Delivery::reordered, Delivery::synchronous);
    transport::LoopbackFabric fabric(2, delivery);
    LatencyProbe asks(fabric.transport(0), 1, true);
    LatencyProbe answers(fabric.transport(1), 0, false);
    bool over = false;
    for (int turn = 0; turn < 10000 && !over; ++turn) {
        const bool asked = asks.look() == State::over;
        over = answers.look() == State::over && asked;
    }
    CHECK(over);
    CHECK(fabric.quiet());
    CHECK(asks.seen_ns() > 0);
    CHECK(answers.seen_ns() == 0);
}

/// Keeps what is posted, until the test ends it.
class Held final : public transport::Transport {
  public:
    std::string_view name() const override { return "held"; }
    void post(std::span<Message> messages) override {
        for (Message& message : messages) {
            message.state = MessageState::posted;
            held_.push_back(&message);
        }
    }
    unsigned progress() override { return 0; }
    Status status() const override { return {}; }

    std::size_t count() const { return held_.size(); }
    void end(std::size_t which, MessageState state) { held_[which]->state = state; }

  private:
    std::vector<Message*> held_;
};

TEST_CASE("latency probe: after a failure it ends once the transport has given back everything") {
    Held transport;
    LatencyProbe asks(transport, 1, true);
    REQUIRE(transport.count() == 2);
    transport.end(0, MessageState::failed);
    CHECK(asks.look() == State::waits);
    transport.end(1, MessageState::done);
    CHECK(asks.look() == State::over);
    CHECK(asks.seen_ns() == 0);
    CHECK(transport.count() == 2);
}

} // namespace
} // namespace ucg::capi
