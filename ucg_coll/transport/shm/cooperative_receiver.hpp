// The receiver's end of copies that the sender makes, too (shm/cooperative_copy.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "shm/cooperative_copy.hpp"
#include "shm/heap.hpp"
#include "shm/peer_copy.hpp"
#include "shm/ring.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/shm/message_queue.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// The least length, in bytes, from which on a receiver asks its sender for help where ranks share
/// processors: a sender that copies a piece keeps its processor from other ranks.
inline constexpr std::uint64_t kWantedHelpBytesMin = 4 * shm::kPieceMin;

/// Decides whether the sender copies a part of a message, says where to, and knows to which message
/// the sender may still be writing: to one at most, as the words serve one at a time.
///
///   closed  -- open_ahead -> ahead -- begin -> open -- end -> closed
///   closed  -- begin -> open
///   ahead   -- close_ahead -> closed
///   ahead, open -- close -> closing -- close -> closed
///
/// The calls take the inbox's ring. In states `open` and `closing` the message's RTS is at its
/// head; in state `ahead` it is to be the next.
class CooperativeReceiver {
  public:
    CooperativeReceiver() = default;
    /// `heap` is the own one, and must outlive this. `own_processors`: each rank has one for
    /// itself. `bytes_min`: both ends copy messages from this length on.
    CooperativeReceiver(const shm::Heap& heap, bool own_processors, std::uint64_t bytes_min)
        : heap_(&heap), own_processors_(own_processors), bytes_min_(bytes_min) {}

    /// Returns the message to which the sender may be writing; null if closed.
    const Message* message() const { return message_; }

    /// Opens a message, if the sender is to copy a part of it, before its RTS has come: the next
    /// one that is awaited. That is in vain if another message comes or this one comes by the ring;
    /// so it does not before the sender has offered to copy others. REQUIRES: closed.
    void open_ahead(const Message& message, shm::RingReceiver& ring);

    /// To be called when the RTS of an awaited message has come. Returns whether both ends copy it,
    /// which is open then; else closed.
    bool begin(const Message& message, shm::RingReceiver& ring);

    /// To be called when another message has come than the one that was opened ahead, if any, or
    /// when that one comes by the ring: its sender has claimed nothing.
    void close_ahead(shm::RingReceiver& ring) {
        if (message_ != nullptr) {
            close_unclaimed(ring);
        }
    }

    /// Returns whether the receiver should leave the sender time to copy all. To be asked at each
    /// look.
    bool leaves_time();
    /// Claims the next piece for the receiver to copy; none if the sender has claimed the rest, or
    /// if this is not open.
    std::optional<shm::Piece> claim(shm::RingReceiver& ring);
    /// Says that both ends have copied all. REQUIRES: open.
    void end(shm::RingReceiver& ring);

    /// Lets the sender copy nothing more. Returns whether it is done with what it had claimed, so
    /// that this is closed; to be called until then. REQUIRES: not closed.
    bool close(shm::RingReceiver& ring);
    /// Closes this if it is not, and waits until the sender is done or its process has ended,
    /// before the caller gets its memory back: nothing may be written there any more. The sender is
    /// inside one copy at most; where the kernel does not tell the end of its process, it gets its
    /// time.
    void close_and_wait(shm::RingReceiver& ring, const shm::PeerReach& sender);

  private:
    enum class State : std::uint8_t {
        closed,  ///< The sender writes nothing.
        ahead,   ///< It may copy the message as soon as it has sent the RTS.
        open,    ///< Both ends may claim pieces.
        closing, ///< Nobody may any more, but the sender may be inside a piece.
    };

    bool asks_for_help(const Message& message) const;
    void open(const Message& message, const shm::RemoteBytes& target, shm::RingReceiver& ring);
    void close_unclaimed(shm::RingReceiver& ring);
    void go(State from, State to) {
        UCG_ASSERT(state_ == from);
        state_ = to;
    }

    const shm::Heap* heap_ = nullptr;
    const Message* message_ = nullptr; ///< Null if and only if state_ is closed.
    std::uint64_t claimed_ = 0;        ///< By the sender, in bytes. For `closing`.
    std::uint32_t looks_ = 0;          ///< At a message that the sender might copy. For `open`.
    shm::CopyOffer offered_;           ///< What the sender has offered in its last RTS.
    State state_ = State::closed;
    bool own_processors_ = false;
    std::uint64_t bytes_min_ = 0;
};

} // namespace ucg::transport
