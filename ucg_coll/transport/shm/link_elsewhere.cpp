// Inbox: messages that stay in their senders' memory. They are read there, by this end or by both;
// later, where others come first; or sent by the ring after all, where the kernel no longer copies.
#include <algorithm>
#include <sched.h>
#include <utility>

#include "ucg_coll/transport/shm/link.hpp"
#include "ucg_coll/transport/shm/vain_wait.hpp"

namespace ucg::transport {
namespace {

/// The most bytes that one call reads of a sender's memory, so that other peers need not wait for
/// the whole message.
constexpr std::uint64_t kReadBytes = std::uint64_t{1} << 20;

} // namespace

unsigned Inbox::drain_cooperatively(bool may_copy) {
    // A look takes about as long as copying so many bytes: a receiver that waits in vain is done in
    // twice the time, or, with a long message, before it would fall asleep.
    constexpr std::uint64_t kBytesPerLook = 1024;
    // On shared processors only a root that gathers asks for help: see asks_for_help().
    const bool waits = own_processors_ && may_copy &&
                       looks_++ < std::min(current_->bytes, kReadBytes) / kBytesPerLook;
    return drain(waits ? Pull::end : Pull::now);
}

/// Reads a piece of the first early arrival of which only the RTS came and that is awaited by now.
/// Returns how many things happened: 0 or 1.
unsigned Inbox::read_remembered() {
    const Remembered& first = remembered_.first();
    Message& message = *first.message;
    const shm::Piece piece = {message.moved, std::min(kReadBytes, message.bytes - message.moved)};
    if (stopped()) {
        return 0;
    }
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

/// Begins a message that lies at its sender: lets the sender copy a part, if that is wanted and it
/// can get at where the message goes.
void Inbox::begin_elsewhere(std::uint64_t bytes) {
    offered_ = ring_.help();
    if (!asks_for_help(*current_)) {
        return;
    }
    const shm::RemoteBytes target = remote_bytes(*heap_, current_->data, bytes);
    if (offered_.reaches(target)) {
        cooperative_ = true;
        looks_ = 0;
        if (opened_ != current_) {
            close_ahead();
            open(*current_, target);
        }
    }
}

void Inbox::open(const Message& message, const shm::RemoteBytes& target) {
    sender_claims_ = 0;
    ring_.cooperative().open(ring_.sequence(), name_of(message), target);
}

/// Returns whether the sender is to copy a part of the message. What the sender writes stays in its
/// cache. On shared processors only receivers ask that want help in any case, for long messages.
bool Inbox::asks_for_help(const Message& message) const {
    const bool asks = own_processors_ ? message.sender_help != SenderHelp::unwanted
                                      : message.sender_help == SenderHelp::wanted &&
                                            message.bytes >= kWantedHelpBytesMin;
    return asks && message.bytes >= cooperative_bytes_ &&
           shm::CooperativeCopy::serves(message.bytes);
}

/// Opens a message ahead if it is the next that is awaited. That is in vain if another message
/// comes or this one comes by the ring; so it does not before the sender has offered to copy
/// others.
void Inbox::open_long_ahead(const Message& message) {
    const bool next = broken_ == Code::ok && current_ == nullptr && posted_.begins_with(message);
    if (!next || !offered_.mapped || !asks_for_help(message)) {
        return;
    }
    const shm::RemoteBytes target = remote_bytes(*heap_, message.data, message.bytes);
    if (offered_.reaches(target)) {
        opened_ = &message;
        open(message, target);
    }
}

/// Closes the message that was opened ahead, if any. Called when another one has come, or this one
/// by the ring, so the sender has claimed nothing.
void Inbox::close_ahead() {
    if (opened_ != nullptr) {
        const std::uint64_t claimed = ring_.cooperative().close(ring_.sequence(), opened_->bytes);
        UCG_ASSERT(claimed == 0);
        opened_ = nullptr;
    }
}

/// Copies a piece of the message from its sender. If it returns false, the inbox is broken, or the
/// message is not readable any more.
bool Inbox::fetch(Message& message, const shm::RemoteBytes& data, const shm::Piece& piece) {
    const Code code = sender_.fetch(message, data, piece);
    if (code != Code::ok && code != Code::unsupported) {
        broken_ = code;
    }
    return code == Code::ok;
}

bool Inbox::read_elsewhere(const shm::RemoteBytes& data) {
    if (give_out(sender_.mapped(data, *current_))) {
        return true;
    }
    const shm::Piece piece = {current_->moved,
                              std::min(kReadBytes, current_->bytes - current_->moved)};
    if (!fetch(*current_, data, piece)) {
        return false;
    }
    if (current_->moved + piece.length == current_->bytes) {
        if (!sender_.still_sent()) {
            return false;
        }
        ring_.take();
    }
    current_->moved += piece.length;
    return true;
}

/// Copies the next piece that the sender has not claimed; when all are claimed, looks whether the
/// sender is done with its own. Returns whether anything has moved.
bool Inbox::read_cooperatively(const shm::RemoteBytes& data, Pull pull) {
    shm::CooperativeCopy& cooperative = ring_.cooperative();
    std::optional<shm::Piece> piece;
    if (pull == Pull::now) {
        piece = cooperative.claim(shm::End::receiver, ring_.sequence(), name_of(*current_));
    }
    if (piece) {
        if (!fetch(*current_, data, *piece)) {
            return false;
        }
        current_->moved += piece->length;
    }
    const shm::CooperativeCopy::Pushed pushed = cooperative.pushed();
    if (pushed.failed) {
        return copy_alone();
    }
    if (current_->moved + pushed.bytes < current_->bytes) {
        return piece || await_sender();
    }
    if (!sender_.still_sent()) {
        return false;
    }
    cooperative.close(ring_.sequence(), current_->bytes);
    current_->moved = current_->bytes;
    cooperative_ = false;
    ring_.take();
    return true;
}

/// Goes on without the sender, which cannot write after all or is not to: the rest is pulled as
/// soon as it tries no more. What this end has copied is the message's start. Returns false while
/// the sender is at a piece.
bool Inbox::copy_alone() {
    sender_claims_ += ring_.cooperative().close(ring_.sequence(), current_->bytes);
    if (ring_.cooperative().pushed().bytes < sender_claims_) {
        return await_sender();
    }
    cooperative_ = false;
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

/// Closes a cooperative copy and waits until the sender is done with what it had claimed, before
/// the caller gets its memory back: nothing may be written there any more. The sender is inside one
/// copy at most, unless its process has ended; where the kernel does not tell that, the sender gets
/// its time.
void Inbox::stop_cooperative_copy(std::uint64_t bytes) {
    constexpr unsigned kYieldsPerQuestion = 64; // A yield may take microseconds or time slices.
    shm::CooperativeCopy& cooperative = ring_.cooperative();
    sender_claims_ += cooperative.close(ring_.sequence(), bytes);
    const bool askable = shm::tells_end(sender_.reach());
    VainWait unasked;
    for (unsigned i = 0; cooperative.pushed().bytes < sender_claims_; ++i) {
        if (i % kYieldsPerQuestion == 0 &&
            (askable ? shm::has_ended(sender_.reach()) : unasked.is_long())) {
            break;
        }
        ::sched_yield();
    }
    cooperative_ = false;
}

/// Declines the message whose RTS is at the ring's head: it will come by the ring. If it was opened
/// ahead, its sender first pushes what it has claimed of it: no later message may be opened until
/// then.
Inbox::Begun Inbox::decline_head() {
    if (opened_ != nullptr) {
        sender_claims_ += ring_.cooperative().close(ring_.sequence(), opened_->bytes);
        if (ring_.cooperative().pushed().bytes < sender_claims_) {
            await_sender();
            return Begun::no;
        }
        opened_ = nullptr;
    }
    declined_.add_head(ring_);
    decline_rts();
    return Begun::remembered;
}

/// Declines current_, which is half read. No part of a private message was given out, so it may
/// begin anew. Returns false while the sender is at a piece of it.
bool Inbox::decline_current() {
    UCG_ASSERT(!current_is_early_ && current_->taken == 0);
    if (cooperative_ && !copy_alone()) {
        return false;
    }
    Message& message = *std::exchange(current_, nullptr);
    declined_.add_head(ring_);
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
}

/// Sends the FIN of the message at the ring's head, if it is one that was declined, so that its
/// mark may be used again.
void Inbox::end_declined(std::uint64_t tag) {
    if (const auto later = declined_.take(tag)) {
        ring_.take(*later);
    }
}

} // namespace ucg::transport
