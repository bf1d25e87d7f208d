// Inbox: messages that stay in their senders' memory. They are read there, by this end or by both;
// later, where others come first; or sent by the ring after all, where the kernel no longer copies.
#include <algorithm>
#include <optional>

#include "ucg_coll/transport/shm/link.hpp"

namespace ucg::transport {
namespace {

/// The most bytes that one call reads of a sender's memory, so that other peers need not wait for
/// the whole message.
constexpr std::uint64_t kReadBytes = std::uint64_t{1} << 20;

} // namespace

unsigned Inbox::drain_cooperatively(bool may_copy) {
    return drain(may_copy && cooperation_.leaves_time() ? Pull::end : Pull::now);
}

/// Reads a piece of the first early arrival of which only the RTS came and that is awaited by now.
/// Returns how many things happened: 0 or 1.
unsigned Inbox::read_remembered() {
    if (stopped()) {
        return 0;
    }
    const Remembered& first = remembered_.first();
    Message& message = *first.message;
    const shm::Piece piece = {message.moved, std::min(kReadBytes, message.bytes - message.moved)};
    if (!sender_.readable(first.elsewhere) || !fetch(message, first.elsewhere, piece)) {
        if (stopped()) {
            return 0;
        }
        decline_rts();
        return 1;
    }
    message.moved += piece.length;
    if (message.moved == message.bytes) {
        if (!sender_.still_sent()) {
            return 0;
        }
        ring_.take(first.later);
        bell_->ring(shm::Awaits::room);
        message.state = MessageState::done;
        remembered_.pop();
    }
    return 1;
}

void Inbox::open_long_ahead(const Message& message) {
    if (broken_ == Code::ok && !incoming_.begun() && posted_.begins_with(message)) {
        cooperation_.open_ahead(message, ring_);
        check();
    }
}

/// Copies a piece of the message from its sender. If it returns false, the inbox is broken, or the
/// message is not readable any more.
bool Inbox::fetch(Message& message, const shm::RemoteBytes& data, const shm::Piece& piece) {
    const Code code = sender_.fetch(message, data, piece);
    ring_.taking_slowly(sender_.slow());
    if (code != Code::ok && code != Code::unsupported) {
        broken_ = code;
    }
    return code == Code::ok;
}

/// Copies a piece of the message whose RTS is at the ring's head. Returns whether anything has
/// moved.
bool Inbox::read_elsewhere(Pull pull) {
    const bool both = cooperative();
    if (both && pull == Pull::later) {
        return false;
    }
    const shm::RemoteBytes data = *ring_.elsewhere();
    if (sender_.readable(data) && (both ? read_cooperatively(data, pull) : read_alone(data))) {
        return true;
    }
    return !sender_.readable(data) && decline_incoming();
}

bool Inbox::read_alone(const shm::RemoteBytes& data) {
    Message& message = incoming_.message();
    if (incoming_.lend(sender_.mapped(data, message))) {
        return true;
    }
    const shm::Piece piece = {message.moved, std::min(kReadBytes, message.bytes - message.moved)};
    if (!fetch(message, data, piece)) {
        return false;
    }
    if (message.moved + piece.length == message.bytes) {
        if (!sender_.still_sent()) {
            return false;
        }
        ring_.take();
    }
    message.moved += piece.length;
    return true;
}

/// Copies the next piece that the sender has not claimed; when all are claimed, looks whether the
/// sender is done with its own. Returns whether anything has moved.
bool Inbox::read_cooperatively(const shm::RemoteBytes& data, Pull pull) {
    Message& message = incoming_.message();
    std::optional<shm::Piece> piece;
    if (pull == Pull::now) {
        piece = cooperation_.claim(ring_);
    }
    if (piece) {
        if (!fetch(message, data, *piece)) {
            return false;
        }
        message.moved += piece->length;
    }
    const shm::CooperativeCopy::Pushed pushed = ring_.cooperative().pushed();
    if (pushed.failed) {
        return copy_alone();
    }
    if (message.moved + pushed.bytes < message.bytes) {
        return piece || await_sender();
    }
    if (!sender_.still_sent()) {
        return false;
    }
    cooperation_.end(ring_);
    incoming_.go_alone();
    message.moved = message.bytes;
    ring_.take();
    return true;
}

/// Goes on without the sender, which cannot write after all or is not to: the rest is pulled as
/// soon as it tries no more. What this end has copied is the message's start. Returns false while
/// the sender is at a piece.
bool Inbox::copy_alone() {
    if (!cooperation_.close(ring_)) {
        return await_sender();
    }
    incoming_.go_alone();
    return true;
}

/// Returns false: nothing moved. If the sender's process has ended, nothing more will move, and the
/// inbox is broken.
bool Inbox::await_sender() {
    if (sender_.is_gone()) {
        broken_ = Code::io_error;
    }
    return false;
}

/// Declines the message whose RTS is at the ring's head: it will come by the ring. If it was opened
/// ahead, its sender first pushes what it has claimed of it: no later message may be opened until
/// then.
Inbox::Begun Inbox::decline_head() {
    sender_.give_up_private(); // For good, as the next look has to go on here.
    if (cooperation_.message() != nullptr && !cooperation_.close(ring_)) {
        await_sender();
        return Begun::no;
    }
    declined_.add_head(ring_);
    decline_rts();
    return Begun::rts_taken;
}

/// Declines the incoming message, which is half read. No part of a private message was given out,
/// so it may begin anew. Returns false while the sender is at a piece of it.
bool Inbox::decline_incoming() {
    UCG_ASSERT(incoming_.message().taken == 0);
    if (cooperative() && !copy_alone()) {
        return false;
    }
    declined_.add_head(ring_);
    Message& message = incoming_.drop();
    message.moved = 0;
    posted_.push(message);
    decline_rts();
    return true;
}

/// Declines all remembered messages in the sender's private memory, and tells the sender.
void Inbox::decline_rts() {
    remembered_.erase_private([this](const Remembered& each) {
        declined_.add(tag_of(*each.message), each.later);
        posted_.push(*each.message);
    });
    early_.erase_private(
        [this](const EarlyArrival& early) { declined_.add(early.tag, early.later); });
    sender_.give_up_private();
    ring_.decline();
    bell_->ring(shm::Awaits::room);
    check();
}

/// Sends the FIN of the message at the ring's head, if it is one that was declined, so that its
/// mark may be used again.
void Inbox::end_declined(std::uint64_t tag) {
    if (const auto later = declined_.take(tag)) {
        ring_.take(*later);
    }
}

} // namespace ucg::transport
