#include "ucg_coll/capi/wireup/latency_probe.hpp"

#include <algorithm>
#include <new>

namespace ucg::capi {

using transport::Direction;
using transport::Message;
using transport::MessageState;

namespace {

MessageState state_of(Message& message) {
    return static_cast<MessageState>(
        transport::shared_state(message).load(std::memory_order_acquire));
}

} // namespace

LatencyProbe::State LatencyProbe::look(Clock::time_point deadline) {
    try {
        transport_.progress();
        const State state = go_on();
        return state == State::waits && Clock::now() > deadline ? give_up() : state;
    } catch (const std::bad_alloc&) {
        return give_up();
    }
}

bool LatencyProbe::waits() {
    return state_of(send_) == MessageState::posted || state_of(recv_) == MessageState::posted;
}

LatencyProbe::State LatencyProbe::go_on() {
    while (!waits()) {
        if (state_of(send_) == MessageState::failed || state_of(recv_) == MessageState::failed) {
            return State::failed;
        }
        if (round_trip_ == round_trips_) {
            return State::over;
        }
        if (round_trip_ >= 0 && !asks_ && !answered_) {
            answered_ = true;
            post(send_, Direction::send, &sent_);
            continue;
        }
        end_round_trip();
        if (round_trip_ < round_trips_) {
            begin_round_trip();
        }
    }
    return State::waits;
}

void LatencyProbe::begin_round_trip() {
    answered_ = false;
    begin_ = Clock::now();
    post(recv_, Direction::recv, &received_);
    if (asks_) {
        post(send_, Direction::send, &sent_);
    }
}

/// The shortest round trip counts: the first one also connects, and any of the others may be
/// disturbed.
void LatencyProbe::end_round_trip() {
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin_;
    if (asks_ && round_trip_ >= 0) {
        seen_ns_ = round_trip_ == 0 ? took.count() / 2 : std::min(seen_ns_, took.count() / 2);
    }
    ++round_trip_;
}

void LatencyProbe::post(Message& message, Direction direction, std::byte* data) {
    message = {.data = data,
               .bytes = 1,
               .peer = peer_,
               .sequence = kSequence,
               .step = static_cast<std::uint16_t>(round_trip_),
               .direction = direction};
    transport_.post({&message, 1});
}

/// Gives the transport up, so that messages in flight come back to this process.
LatencyProbe::State LatencyProbe::give_up() {
    transport_.abandon();
    return State::failed;
}

} // namespace ucg::capi
