// The two directions between the own rank and one peer: what is queued for the peer's ring, and how
// what comes out of the own ring finds the message that waits for it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shm/doorbell.hpp"
#include "shm/peer_read.hpp"
#include "shm/ring.hpp"
#include "ucg_coll/transport/shm/message_queue.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// To one peer. Messages leave in the order of their posts.
class Outbox {
  public:
    Outbox() = default;
    /// Messages of at least `single_copy_bytes_min` bytes stay where they are, for a receiver that
    /// can read them there. `bell`: the peer's.
    Outbox(std::byte* ring, const std::byte* reverse, const shm::RingShape& shape,
           shm::Doorbell& bell, std::uint64_t single_copy_bytes_min)
        : ring_(ring, reverse, shape), bell_(&bell), depth_(shape.depth),
          single_copy_bytes_min_(single_copy_bytes_min) {}

    /// True when the message has left; otherwise it is queued and flush() continues it.
    bool post(Message& message) {
        if (queue_.empty()) {
            switch (push(message)) {
            case Pushed::whole: return true;
            case Pushed::announced: return false;
            case Pushed::part: break;
            }
        }
        queue_.push(message);
        return false;
    }

    bool idle() const { return queue_.empty() && announced_.empty(); }

    /// Returns how many messages left or moved on.
    unsigned flush();

    /// Fails what is queued; returns how many.
    unsigned fail_all();

  private:
    enum class Pushed : std::uint8_t { whole, part, announced };
    Pushed push(Message& message);

    shm::RingSender ring_;
    shm::Doorbell* bell_ = nullptr;
    MessageQueue queue_;
    MessageQueue announced_; ///< `moved` is the turn at which the receiver has read them.
    std::uint32_t depth_ = 0;
    std::uint64_t single_copy_bytes_min_ = 0;
};

/// From one peer. A message that nobody waits for stays in the ring, where it holds the sender
/// back; only if another message of the peer is awaited, which may be behind it, it is moved out of
/// the way to the early arrivals. So these are bounded by what the peer sends in the collectives
/// that the engine lets be outstanding.
class Inbox {
  public:
    Inbox() = default;
    /// `sender`: whose memory to read; all zero if that is not to be done. `bell`: the peer's.
    Inbox(std::byte* ring, std::byte* reverse, const shm::RingShape& shape, shm::Doorbell& bell,
          const shm::ReadTicket& sender)
        : ring_(ring, reverse, shape), bell_(&bell), depth_(shape.depth), sender_(sender) {
        if (sender.process != 0) {
            ring_.offer_reading();
        }
    }

    /// True when the message has come; otherwise it waits and drain() completes it.
    bool post(Message& message);

    /// Nothing is awaited and no message is half received.
    bool idle() const { return current_ == nullptr && posted_.empty(); }

    /// Takes fragments out of the ring. Returns how many.
    unsigned drain();

    /// Why nothing more can be received: disagreement (a message came with another length than the
    /// awaited one, or of another plan for the same collective), out_of_memory (for an early
    /// arrival) or io_error (the sender's memory could not be read); else ok.
    Code broken() const { return broken_; }

    /// Fails what is awaited; returns how many.
    unsigned fail_all();

    std::size_t early_count() const { return early_.size(); }

  private:
    /// A message that nobody had asked for; `message` is the transport's own, its data is `data`.
    struct Early {
        Message message;
        std::uint64_t tag = 0;
        std::unique_ptr<std::byte[]> data;
    };

    bool begin_message();
    bool move_fragment();
    bool read_elsewhere(const std::byte* data);
    void end_message();
    Message* begin_early(std::uint64_t tag, std::uint64_t bytes);
    bool take_early(Message& message);
    bool contradicted(Message& message);

    shm::RingReceiver ring_;
    shm::Doorbell* bell_ = nullptr;
    MessageQueue posted_;
    Message* current_ = nullptr;    ///< The message whose fragments come next; in no queue.
    bool current_is_early_ = false; ///< Then `current_` is that of early_.back().
    Code broken_ = Code::ok;
    std::uint32_t depth_ = 0;
    shm::ReadTicket sender_;
    std::vector<std::unique_ptr<Early>> early_; ///< In order of arrival.
};

} // namespace ucg::transport
