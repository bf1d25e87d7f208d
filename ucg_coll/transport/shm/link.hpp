// The two directions between the own rank and one peer: the Outbox queues what is sent by the
// peer's ring, and the Inbox matches what comes out of the own ring with the posted receives.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "shm/doorbell.hpp"
#include "shm/heap.hpp"
#include "shm/peer_copy.hpp"
#include "shm/readable.hpp"
#include "shm/ring.hpp"
#include "ucg_coll/transport/shm/cooperative_receiver.hpp"
#include "ucg_coll/transport/shm/early_arrivals.hpp"
#include "ucg_coll/transport/shm/incoming.hpp"
#include "ucg_coll/transport/shm/message_queue.hpp"
#include "ucg_coll/transport/shm/remembered.hpp"
#include "ucg_coll/transport/shm/remote_bytes.hpp"
#include "ucg_coll/transport/shm/sender_memory.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// From how many bytes on messages of each use are copied once by the kernel; all ones: never.
class CopyLengths {
  public:
    /// All uses have this length.
    constexpr CopyLengths(std::uint64_t bytes) {
        bytes_.fill(bytes);
    } // NOLINT: lengths are numbers.
    static constexpr CopyLengths never() { return {~std::uint64_t{0}}; }

    std::uint64_t& operator[](MessageUse use) { return bytes_[static_cast<std::size_t>(use)]; }
    std::uint64_t operator[](MessageUse use) const { return bytes_[static_cast<std::size_t>(use)]; }
    std::uint64_t least() const { return *std::ranges::min_element(bytes_); }

    bool operator==(const CopyLengths&) const = default;

  private:
    std::array<std::uint64_t, kMessageUseCount> bytes_;
};

/// From how many bytes on a message stays in its sender's memory and is copied once (rendezvous),
/// instead of being sent through the ring (eager); all ones: never.
struct SingleCopyLimits {
    std::uint64_t mapped_bytes = ~std::uint64_t{0};   ///< If it lies in the sender's segment.
    CopyLengths private_bytes = CopyLengths::never(); ///< If it lies elsewhere: by the kernel.
    CopyLengths slow_bytes = CopyLengths::never();    ///< As private_bytes, if copies are slow.
    std::uint64_t far_bytes = ~std::uint64_t{0};      ///< As private_bytes, for far cores.
    /// Two cores share a cache, and are not far, if a read of what the other one wrote takes less
    /// than this, in nanoseconds.
    std::uint32_t near_ns = 0;
    std::uint64_t cooperative_bytes = 0; ///< From this length on both ends copy the message.

    std::uint64_t least() const {
        return std::min({mapped_bytes, private_bytes.least(), far_bytes});
    }
};

/// Where a ring is mapped here.
struct RingPlace {
    std::byte* lines = nullptr;
    std::byte* buffers = nullptr;
};

/// The direction to one peer. Messages, or their RTS, leave in the order of their posts. A message
/// whose RTS was sent and that the peer cannot read is sent once more, by the ring.
class Outbox {
  public:
    Outbox() = default;
    /// Messages of at least `limits` bytes stay where they are, if the receiver can read them
    /// there; it may let the sender copy a part. `bell` is the peer's. `heap` is the own one; it,
    /// `readable` and `limits` must outlive the outbox. `reuses_buffers`: calls
    /// RingSender::reuse_buffers().
    Outbox(const RingPlace& ring, std::byte* reverse, const shm::RingShape& shape,
           shm::Doorbell& bell, shm::Heap& heap, shm::ReadableMemory& readable,
           const shm::PeerReach& receiver, bool reuses_buffers, const SingleCopyLimits& limits)
        : ring_(ring.lines, ring.buffers, reverse, shape), bell_(&bell), heap_(&heap),
          readable_(&readable), depth_(shape.depth), receiver_(receiver), limits_(&limits),
          least_bytes_(limits.least()), writes_(receiver.writes()) {
        ring_.learn_distance(std::min(limits.far_bytes, shm::kWholeBytes + 1), limits.near_ns);
        if (reuses_buffers) {
            ring_.reuse_buffers();
        }
    }

    /// Sends the message. Returns whether it has left; otherwise it is queued, or its RTS has been
    /// sent, and flush() continues it.
    bool post(Message& message) {
        if (queue_.empty()) {
            if (message.bytes <= shm::kInlineBytes && !ring_.full()) {
                ring_.send_line(tag_of(message), message.data, message.bytes);
                bell_->ring(shm::Awaits::message);
                message.state = MessageState::done;
                return true;
            }
            switch (push(message)) {
            case Pushed::whole: return true;
            case Pushed::rts: return false;
            case Pushed::part: break;
            }
        }
        queue_.push(message);
        return false;
    }

    /// Returns whether nothing is queued and no FIN is awaited.
    bool idle() const { return queue_.empty() && awaiting_fin_.empty(); }

    /// Returns whether this end has given pages to the peer's memory.
    bool has_backed() const { return ring_.has_backed(); }

    struct Flushed {
        unsigned moved = 0;  ///< Messages that left or moved on.
        bool copied = false; ///< A piece was copied that the receiver would have had to copy.
    };
    /// Sends what is queued and looks for FINs. Of a message that both ends copy it copies a
    /// `share` of the rest.
    Flushed flush(shm::Share share);

    /// Returns whether there is a message of which this end would copy a part, once its receiver
    /// says where to.
    bool awaits_target() {
        return helps() && !awaiting_fin_.empty() &&
               awaiting_fin_.front().bytes >= limits_->cooperative_bytes &&
               shm::CooperativeCopy::serves(awaiting_fin_.front().bytes) &&
               !ring_.cooperative().is_open(ring_.sequence(awaiting_fin_.front().moved),
                                            name_of(awaiting_fin_.front()));
    }

    /// Fails all messages that are queued or await their FIN; returns how many.
    unsigned fail_all();

  private:
    /// How much of a message has left: all, a part or nothing yet, or its RTS.
    enum class Pushed : std::uint8_t { whole, part, rts };
    Pushed push(Message& message);
    bool stays(const Message& message, const shm::RemoteBytes& data);
    bool is_long_enough(const Message& message);
    unsigned take_back();
    unsigned send_declined();
    /// Returns whether this end copies parts of messages. A receiver may have opened private memory
    /// because of an earlier offer. So an end that may not write there any more does not help at
    /// all.
    bool helps() const { return helps_ && writes_ == receiver_.writes(); }
    bool copy_piece(shm::Share share);

    shm::RingSender ring_;
    shm::Doorbell* bell_ = nullptr;
    MessageQueue queue_;
    MessageQueue awaiting_fin_;                 ///< Their `moved` is the mark.
    std::vector<std::uint64_t> declined_marks_; ///< Of messages that the receiver declined.
    shm::Heap* heap_ = nullptr;
    shm::ReadableMemory* readable_ = nullptr;
    std::uint32_t depth_ = 0;
    shm::PeerReach receiver_;
    const SingleCopyLimits* limits_ = nullptr;
    std::uint64_t least_bytes_ = 0; ///< limits_->least().
    shm::SlowPullTrials trials_;
    bool writes_ = false; ///< The kernel permitted writing to the peer at first.
    bool helps_ = true;   ///< No write to the peer's memory has failed.
};

/// What an inbox does about a message that both ends may copy.
enum class Pull : std::uint8_t {
    later, ///< The inbox copies nothing yet and lets the sender begin.
    end,   ///< It only looks whether the sender has copied all.
    now,   ///< It copies a piece.
};

/// The direction from one peer. A message for which no receive is posted stays in the ring, where
/// it holds the sender back. Only if another message of the peer is awaited, which may be behind
/// it, it is moved out of the way to the early arrivals: copied, or, if only its RTS has come,
/// remembered. So early arrivals are bounded by what the peer sends in two windows of the engine
/// (PROTOCOL.md).
///
/// A posted message is in posted_ until it begins to come. Then it is the incoming_ one, or, if its
/// RTS has come before its post, one of the remembered_. If it is declined_, it is in posted_ once
/// more. check() says how the parts depend on one another.
class Inbox {
  public:
    Inbox() = default;
    /// `bell` is the peer's. `heap` is the own one; it and `spare` must outlive the inbox.
    /// `slow`: from which time on its copies are slow. `own_processors`: each rank has one for
    /// itself. `cooperative_bytes`: as in SingleCopyLimits.
    /// `lost`: the group's word for shm::lost_meanwhile().
    Inbox(const RingPlace& ring, std::byte* reverse, const shm::RingShape& shape,
          shm::Doorbell& bell, const shm::Heap& heap, SpareArrivals& spare,
          const shm::PeerReach& sender, const shm::SlowPull& slow, bool own_processors,
          std::uint64_t cooperative_bytes, const std::atomic<std::uint64_t>& lost)
        : ring_(ring.lines, ring.buffers, reverse, shape), bell_(&bell), depth_(shape.depth),
          sender_(sender, slow, lost), cooperation_(heap, own_processors, cooperative_bytes),
          early_(spare) {
        if (sender.reads()) {
            ring_.offer_reading();
        }
    }

    /// Receives into the message. Returns whether it has come; otherwise it waits and drain()
    /// completes it. Messages that both ends copy are left to drain_cooperatively(), so that the
    /// sender can begin while the caller still has other things to do.
    bool post(Message& message) {
        if (idle() && early_.empty() && ring_.holds(tag_of(message), message.bytes)) {
            message.moved = ring_.receive(message.data, 0);
            bell_->ring(shm::Awaits::room);
            message.state = MessageState::done;
            return true;
        }
        return post_unmet(message);
    }

    /// Tells the sender where a posted message that has not come will go, so that the sender can
    /// begin to copy at once, even if the receiver is busy with something else by then.
    void open_ahead(const Message& message) {
        if (shm::CooperativeCopy::serves(message.bytes)) {
            open_long_ahead(message);
        }
    }

    /// Returns whether nothing is awaited, and no message is half received.
    bool idle() const { return !incoming_.begun() && posted_.empty() && remembered_.empty(); }

    /// Goes on with a message of which the caller has read the part that it was given
    /// (Transport::take_part()).
    void take_part(Message& message);

    /// Takes fragments and RTS out of the ring and copies what these name. Returns how many it
    /// took, counting each piece that it copied.
    unsigned drain(Pull pull);
    /// Like drain(), for a message that the sender may copy, too. If the sender `may_copy` once it
    /// makes progress, this end first leaves it as much time as copying alone would take.
    unsigned drain_cooperatively(bool may_copy);

    /// Returns whether both ends may copy the message that comes now.
    bool cooperative() const { return incoming_.way() == Way::both; }

    /// Returns why nothing more can be received: disagreement (a message came that has another
    /// length than the awaited one, or belongs to another plan for the same collective),
    /// out_of_memory (for an early arrival) or io_error (the sender's memory could not be read);
    /// else ok.
    Code broken() const { return broken_; }

    /// Returns whether nothing more can be received for another reason: a message was read in its
    /// sender's memory, and then the group was found lost, so that the bytes may be others than
    /// those that were sent.
    bool outdated() const { return sender_.outdated(); }

    /// Fails all messages that are awaited; returns how many.
    unsigned fail_all();

    /// Returns whether the sender has sent a message of that collective, but of another plan. This
    /// looks at the next message in the ring and at the early arrivals.
    bool contradicts(std::uint64_t tag) const;
    /// Returns whether a message of that collective is awaited, but of another plan.
    bool awaits_other(std::uint64_t tag) const { return posted_.contradicts(tag); }
    /// Calls `look` with the tags of the messages that are awaited and of which nothing has come.
    template <typename Look>
    void each_tag(Look look) const {
        posted_.each_tag(look);
    }

    std::size_t early_count() const { return early_.size(); }

  private:
    using Way = Incoming::Way;

    /// What has become of the message at the ring's head: it is incoming_, nothing, or its RTS was
    /// taken out of the ring.
    enum class Begun : std::uint8_t { yes, no, rts_taken };

    bool stopped() const { return broken_ != Code::ok || outdated(); }
    bool post_unmet(Message& message);
    Begun begin_message();
    Begun begin_unawaited();
    unsigned read_remembered();
    bool move_incoming(Pull pull);
    void open_long_ahead(const Message& message);
    bool read_elsewhere(Pull pull);
    bool read_alone(const shm::RemoteBytes& data);
    bool read_cooperatively(const shm::RemoteBytes& data, Pull pull);
    bool copy_alone();
    bool await_sender();
    bool fetch(Message& message, const shm::RemoteBytes& data, const shm::Piece& piece);
    bool take_early(Message& message);
    Begun decline_head();
    bool decline_incoming();
    void decline_rts();
    void end_declined(std::uint64_t tag);
    bool contradicted(Message& message);
    void check() const;

    shm::RingReceiver ring_;
    shm::Doorbell* bell_ = nullptr;
    std::uint32_t depth_ = 0;
    Code broken_ = Code::ok;
    Incoming incoming_;
    MessageQueue posted_; ///< Of these nothing has come.
    SenderMemory sender_;
    CooperativeReceiver cooperation_;
    EarlyArrivals early_;
    RememberedMessages remembered_;
    DeclinedMessages declined_;
};

} // namespace ucg::transport
