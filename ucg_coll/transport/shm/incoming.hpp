// What an inbox receives at the moment, and the way by which it comes.
#pragma once

#include <cstdint>
#include <span>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// The one message of which the next fragment, or the RTS, is at the ring's head or comes there
/// next; it is in no queue. This is the only place that changes the way, and the states of such a
/// message:
///
///   none -- begin -> ring, aside, alone, both
///   aside -- adopt -> ring
///   ring -- lend -> ring_lent -- take_back -> ring
///   alone -- lend -> alone_lent -- take_back -> alone
///   both -- go_alone -> alone
///   ring, aside, alone -- end -> none, when all bytes are there
///   any -- drop -> none
class Incoming {
  public:
    enum class Way : std::uint8_t {
        none,  ///< No message has begun.
        ring,  ///< Fragments are copied to a posted message.
        aside, ///< Fragments are copied to an early arrival.
        alone, ///< Its RTS is at the ring's head, and this end reads it at its sender's.
        both,  ///< As `alone`, but its sender copies a part.
        // The next bytes are lent to the caller, which reads them where they are:
        ring_lent,  ///< As `ring`, a fragment.
        alone_lent, ///< As `alone`, the whole message.
    };

    Way way() const { return way_; }
    bool begun() const { return message_ != nullptr; }
    bool lent() const { return way_ >= Way::ring_lent; }

    /// REQUIRES: begun().
    Message& message() const { return *message_; }
    /// Returns whether all bytes of the message are there. REQUIRES: begun().
    bool whole() const { return message_->moved == message_->bytes; }

    void begin(Message& message, Way way) {
        UCG_ASSERT(way_ == Way::none);
        message_ = &message;
        way_ = way;
    }

    /// Goes on with the message that was posted for the early arrival, whose bytes so far it has.
    void adopt(Message& message) {
        go(Way::aside, Way::ring);
        message_ = &message;
    }

    /// Goes on without the sender.
    void go_alone() { go(Way::both, Way::alone); }

    /// Returns whether the caller would read the next bytes where they are. A message of which a
    /// part was copied, as the start of an early arrival, is copied on. REQUIRES: begun().
    bool lendable() const {
        return message_->read_on_arrival && message_->taken == message_->moved;
    }
    /// Lends the caller the next bytes, if there are any and it is lendable(). Returns whether it
    /// has them. REQUIRES: the way is `ring` or `alone`, or not lendable().
    bool lend(std::span<const std::byte> bytes) {
        if (!lendable() || bytes.empty()) {
            return false;
        }
        UCG_ASSERT(way_ == Way::ring || way_ == Way::alone);
        way_ = way_ == Way::ring ? Way::ring_lent : Way::alone_lent;
        message_->part = bytes.data();
        message_->part_bytes = bytes.size();
        message_->state = MessageState::part;
        return true;
    }
    /// Takes the bytes back from the caller, which has read them.
    void take_back() {
        UCG_ASSERT(lent());
        way_ = way_ == Way::ring_lent ? Way::ring : Way::alone;
        message_->state = MessageState::posted;
    }

    /// Completes the message. REQUIRES: whole().
    void end() {
        UCG_ASSERT(!lent() && way_ != Way::both);
        drop().state = MessageState::done;
    }
    /// Leaves the message to the caller, which is to fail it or to await it once more.
    Message& drop() {
        UCG_ASSERT(begun());
        Message& message = *message_;
        message_ = nullptr;
        way_ = Way::none;
        return message;
    }

  private:
    void go(Way from, Way to) {
        UCG_ASSERT(way_ == from);
        way_ = to;
    }

    Message* message_ = nullptr; ///< Null if and only if way_ is none.
    Way way_ = Way::none;
};

} // namespace ucg::transport
