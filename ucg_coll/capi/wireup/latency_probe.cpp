#include "ucg_coll/capi/wireup/latency_probe.hpp"

#include <algorithm>

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

LatencyProbe::LatencyProbe(transport::Transport& transport, Rank peer, bool asks)
    : transport_(transport), asks_(asks), peer_(peer) {
    begin_round_trip();
}

LatencyProbe::State LatencyProbe::look() {
    transport_.progress();
    while (state_of(send_) != MessageState::posted && state_of(recv_) != MessageState::posted) {
        if (round_trip_ == kRoundTrips || state_of(send_) == MessageState::failed ||
            state_of(recv_) == MessageState::failed) {
            return State::over;
        }
        if (!asks_ && !answered_) {
            answered_ = true;
            post(send_, Direction::send, &sent_);
            continue;
        }
        end_round_trip();
        if (round_trip_ < kRoundTrips) {
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

void LatencyProbe::end_round_trip() {
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin_;
    if (asks_) {
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

} // namespace ucg::capi
