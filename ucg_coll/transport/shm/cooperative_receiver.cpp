#include "ucg_coll/transport/shm/cooperative_receiver.hpp"

#include <algorithm>
#include <sched.h>

#include "ucg_coll/transport/shm/remote_bytes.hpp"
#include "ucg_coll/transport/shm/vain_wait.hpp"

namespace ucg::transport {

/// What the sender writes stays in its cache. On shared processors only receivers ask that want
/// help in any case, for long messages.
bool CooperativeReceiver::asks_for_help(const Message& message) const {
    const bool asks = own_processors_ ? message.sender_help != SenderHelp::unwanted
                                      : message.sender_help == SenderHelp::wanted &&
                                            message.bytes >= kWantedHelpBytesMin;
    return asks && message.bytes >= bytes_min_ && shm::CooperativeCopy::serves(message.bytes);
}

void CooperativeReceiver::open(const Message& message, const shm::RemoteBytes& target,
                               shm::RingReceiver& ring) {
    UCG_ASSERT(message_ == nullptr);
    message_ = &message;
    ring.cooperative().open(ring.sequence(), name_of(message), target);
}

void CooperativeReceiver::open_ahead(const Message& message, shm::RingReceiver& ring) {
    if (!offered_.mapped || !asks_for_help(message)) {
        return;
    }
    const shm::RemoteBytes target = remote_bytes(*heap_, message.data, message.bytes);
    if (offered_.reaches(target)) {
        go(State::closed, State::ahead);
        open(message, target, ring);
    }
}

bool CooperativeReceiver::begin(const Message& message, shm::RingReceiver& ring) {
    offered_ = ring.help();
    const bool asks = asks_for_help(message);
    const shm::RemoteBytes target =
        asks ? remote_bytes(*heap_, message.data, message.bytes) : shm::RemoteBytes();
    if (!asks || !offered_.reaches(target)) {
        close_ahead(ring);
        return false;
    }
    if (message_ == &message) {
        go(State::ahead, State::open);
    } else {
        close_ahead(ring);
        go(State::closed, State::open);
        open(message, target, ring);
    }
    looks_ = 0;
    return true;
}

void CooperativeReceiver::close_unclaimed(shm::RingReceiver& ring) {
    UCG_ASSERT(state_ == State::ahead);
    const bool closed = close(ring);
    UCG_ASSERT(closed && claimed_ == 0);
}

/// A look takes about as long as copying 1024 bytes: a receiver that waits in vain is done in twice
/// the time, or, with a long message, before it would fall asleep.
bool CooperativeReceiver::leaves_time() {
    constexpr std::uint64_t kBytesPerLook = 1024;
    constexpr std::uint64_t kLooksMax = 1024;
    UCG_ASSERT(message_ != nullptr);
    // On shared processors only a root that gathers asks for help.
    return own_processors_ && looks_++ < std::min(message_->bytes / kBytesPerLook, kLooksMax);
}

std::optional<shm::Piece> CooperativeReceiver::claim(shm::RingReceiver& ring) {
    return ring.cooperative().claim(shm::CopyEnd::receiver, ring.sequence(), name_of(*message_));
}

void CooperativeReceiver::end(shm::RingReceiver& ring) {
    go(State::open, State::closed);
    ring.cooperative().close(ring.sequence(), message_->bytes);
    message_ = nullptr;
}

bool CooperativeReceiver::close(shm::RingReceiver& ring) {
    UCG_ASSERT(state_ != State::closed);
    if (state_ != State::closing) {
        claimed_ = ring.cooperative().close(ring.sequence(), message_->bytes);
        state_ = State::closing;
    }
    if (ring.cooperative().pushed().bytes < claimed_) {
        return false;
    }
    go(State::closing, State::closed);
    message_ = nullptr;
    return true;
}

void CooperativeReceiver::close_and_wait(shm::RingReceiver& ring, const shm::PeerReach& sender) {
    constexpr unsigned kYieldsPerQuestion = 64; // A yield may take microseconds or time slices.
    if (state_ == State::closed) {
        return;
    }
    const bool askable = shm::tells_end(sender);
    VainWait unasked;
    for (unsigned i = 0; !close(ring); ++i) {
        if (i % kYieldsPerQuestion == 0 && (askable ? shm::has_ended(sender) : unasked.is_long())) {
            go(State::closing, State::closed);
            message_ = nullptr;
            return;
        }
        ::sched_yield();
    }
}

} // namespace ucg::transport
