// A ring of messages from one process to another: the unit of which all shared-memory messages are
// made. It lies in memory leased by the receiver.
//
// Threads: exactly one sender and one receiver, in two processes or two threads.
// Layout (RingShape): the receiver's credit, the sender's receipt for messages of the other
// direction and its words for copying those jointly, then `depth` slots of one cache line each,
// then `depth` short payload buffers and as many long ones. Invariants, argued in PROTOCOL.md: a
// cache line has one writer; a slot and its buffers belong to the sender from the receiver's
// release of turn t - depth to the sender's publication of turn t, and to the receiver otherwise;
// memory of zeros is an empty ring.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "shm/copy.hpp"
#include "shm/joint_copy.hpp"
#include "shm/peer_copy.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// Bytes of a message that travel in the slot's line itself, beside the word that announces them.
inline constexpr std::uint64_t kInlineBytes = 40;

/// What a sender offers to do for messages that it announces.
struct Help {
    bool mapped = false;   ///< Copy a part into the receiver's segment.
    bool anywhere = false; ///< Into any memory of the receiver's.

    bool reaches(const RemoteBytes& target) const { return target.place != 0 ? mapped : anywhere; }
};

/// One line carries payload and turn together: a short message costs one transfer between caches.
struct alignas(kCacheLine) RingSlot {
    std::atomic<std::uint64_t> turn; ///< n + 1 once the n-th fragment of the ring is there.
    std::uint64_t tag;               ///< The message's name; the ring does not look at it.
    std::uint64_t bytes;             ///< Of the whole message, in each of its fragments; with
                                     ///< kElsewhere, `payload` says where it is (RemoteBytes).
    std::array<std::byte, kInlineBytes> payload;
};
static_assert(sizeof(RingSlot) == kCacheLine);

/// Marks a message that stays in the sender's own memory, where the receiver reads it.
inline constexpr std::uint64_t kElsewhere = std::uint64_t{1} << 63;
/// And one of which the sender copies a part if it is let: to the receiver's segment, or to its
/// private memory as well.
inline constexpr std::uint64_t kSenderHelps = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kSenderWrites = std::uint64_t{1} << 61;
inline constexpr std::uint64_t kMessageFlags = kElsewhere | kSenderHelps | kSenderWrites;
static_assert(sizeof(RemoteBytes) <= kInlineBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "atomics between processes");

/// How many fragments the receiver has done with. Alone on two lines, since processors fetch lines
/// in pairs.
struct alignas(2 * kCacheLine) RingCredit {
    std::atomic<std::uint64_t> released;
    std::atomic<std::uint64_t> reads_sender; ///< 1 once the receiver can read the sender's memory.
};

/// How far the sender of the ring has read what the ring's owner announced to it, in the ring of
/// the other direction. It lies here because the owner waits for it: the sender's own memory may be
/// gone by then.
struct alignas(2 * kCacheLine) RingReceipt {
    std::atomic<std::uint64_t> taken; ///< The turn after the last message that was read.
    std::atomic<std::uint64_t> left;  ///< 1 once the sender looks at nothing of the owner's.
};

/// Messages up to this length travel whole, where the slots are that long.
inline constexpr std::uint64_t kWholeBytes = 4096;

/// Fragments up to this length have buffers of their own, side by side: a ring of short messages
/// touches five pages, where buffers of 16 KiB would cost a page for each.
inline constexpr std::uint64_t kShortBytes = 1024;

/// The dimensions of a ring, equal on both sides.
struct RingShape {
    std::uint32_t depth = 0;      ///< Slots; a power of two.
    std::uint32_t slot_bytes = 0; ///< The longest fragment; a multiple of the cache line.

    std::uint64_t ring_bytes() const {
        return head_bytes() + depth * (sizeof(RingSlot) + short_bytes() + slot_bytes);
    }
    /// 0 where slots are so short that they need none.
    std::uint64_t short_bytes() const { return slot_bytes > kWholeBytes ? kShortBytes : 0; }
    /// From the start of the first buffer; `bytes` is the fragment's length.
    std::uint64_t buffer_offset(std::uint64_t index, std::uint64_t bytes) const {
        return bytes <= short_bytes() ? index * short_bytes()
                                      : depth * short_bytes() + index * slot_bytes;
    }
    static constexpr std::uint64_t head_bytes() {
        return sizeof(RingCredit) + sizeof(RingReceipt) + sizeof(JointCopy);
    }
    bool operator==(const RingShape&) const = default;
};

/// The length of the fragment that begins at byte `moved`, which both sides derive from the
/// message's length alone. Longer messages are cut at least in two, so that the receiver copies one
/// part out while the sender copies the next in. Fragments of at most kInlineBytes travel in the
/// line.
inline std::uint64_t fragment_bytes(const RingShape& shape, std::uint64_t message_bytes,
                                    std::uint64_t moved) {
    const std::uint64_t rest = message_bytes - moved;
    if (rest <= kInlineBytes) { // A slot's buffer is longer.
        return rest;
    }
    const std::uint64_t half = (message_bytes / 2 + kCacheLine - 1) / kCacheLine * kCacheLine;
    const std::uint64_t most =
        std::min<std::uint64_t>(shape.slot_bytes, std::max(half, kWholeBytes));
    return std::min(rest, most);
}

/// The sender's end.
class RingSender {
  public:
    RingSender() = default;
    /// `ring`: where the receiver's ring is mapped here, cache-line aligned. `reverse`: the own
    /// ring for messages of that receiver.
    RingSender(std::byte* ring, std::byte* reverse, const RingShape& shape)
        : credit_(reinterpret_cast<RingCredit*>(ring)),
          receipt_(reinterpret_cast<const RingReceipt*>(reverse + sizeof(RingCredit))),
          joint_(reinterpret_cast<JointCopy*>(reverse + sizeof(RingCredit) + sizeof(RingReceipt))),
          slots_(reinterpret_cast<RingSlot*>(ring + RingShape::head_bytes())),
          buffers_(ring + RingShape::head_bytes() + shape.depth * sizeof(RingSlot)), shape_(shape) {
    }

    /// No slot is free. Reads the receiver's credit only when the copy of it says so.
    bool full() {
        if (sent_ - released_ < shape_.depth) {
            return false;
        }
        released_ = credit_->released.load(std::memory_order_acquire);
        return sent_ - released_ == shape_.depth;
    }

    /// Sends the fragment of a message that begins at byte `moved`, and returns its length. `data`
    /// is the message's start. REQUIRES: !full().
    std::uint64_t send(std::uint64_t tag, const std::byte* data, std::uint64_t message_bytes,
                       std::uint64_t moved) {
        const std::uint64_t index = sent_ & (shape_.depth - 1);
        RingSlot& slot = slots_[index];
        const std::uint64_t length = fragment_bytes(shape_, message_bytes, moved);
        std::byte* const buffer = buffers_ + shape_.buffer_offset(index, length);
        if (sent_ < shape_.depth) {
            map_around(length <= kInlineBytes ? reinterpret_cast<std::byte*>(&slot) : buffer);
        }
        if (length <= kInlineBytes) {
            copy_short(slot.payload.data(), data + moved, length);
        } else {
            std::memcpy(buffer, data + moved, length);
        }
        slot.tag = tag;
        slot.bytes = message_bytes;
        ++sent_;
        slot.turn.store(sent_, std::memory_order_release);
        // Stores leave the processor in order, and only some hundred of them wait there: a sender
        // of one message after the other would wait for each line in turn.
        if (sent_ + kPrefetch - released_ < shape_.depth) {
            prefetch_for_write(&slots_[(sent_ + kPrefetch) & (shape_.depth - 1)]);
        }
        return length;
    }

    /// The receiver has said that it can read this process's memory.
    bool receiver_reads() {
        receiver_reads_ =
            receiver_reads_ || credit_->reads_sender.load(std::memory_order_acquire) != 0;
        return receiver_reads_;
    }

    /// Announces a message that stays at `data` until taken(the turn that this returns).
    /// REQUIRES: !full(), and `data` lies in a segment or receiver_reads().
    std::uint64_t announce(std::uint64_t tag, const RemoteBytes& data, std::uint64_t message_bytes,
                           const Help& help) {
        RingSlot& slot = slots_[sent_ & (shape_.depth - 1)];
        std::memcpy(slot.payload.data(), &data, sizeof(data));
        slot.tag = tag;
        slot.bytes = message_bytes | kElsewhere | (help.mapped ? kSenderHelps : 0) |
                     (help.anywhere ? kSenderWrites : 0);
        ++sent_;
        slot.turn.store(sent_, std::memory_order_release);
        return sent_;
    }

    /// Of the message announced first of those that are not taken.
    JointCopy& joint() { return *joint_; }

    /// The receiver has read the message announced in that turn.
    bool taken(std::uint64_t turn) const {
        return receipt_->taken.load(std::memory_order_acquire) >= turn;
    }

    /// Becomes 1 when the receiver leaves: RingReceiver::leave() at the other end.
    const std::atomic<std::uint64_t>& receiver_left() const { return receipt_->left; }

  private:
    static constexpr std::uint64_t kPrefetch = 1;

    RingCredit* credit_ = nullptr;
    const RingReceipt* receipt_ = nullptr;
    JointCopy* joint_ = nullptr;
    RingSlot* slots_ = nullptr;
    std::byte* buffers_ = nullptr;
    RingShape shape_;
    std::uint64_t sent_ = 0;
    std::uint64_t released_ = 0; ///< The last credit that was read.
    bool receiver_reads_ = false;
};

/// The receiver's end.
class RingReceiver {
  public:
    RingReceiver() = default;
    /// `ring`: in the own memory, cache-line aligned. `reverse`: where the sender's ring for
    /// messages of this receiver is mapped here.
    RingReceiver(std::byte* ring, std::byte* reverse, const RingShape& shape)
        : credit_(reinterpret_cast<RingCredit*>(ring)),
          receipt_(reinterpret_cast<RingReceipt*>(reverse + sizeof(RingCredit))),
          joint_(reinterpret_cast<JointCopy*>(reverse + sizeof(RingCredit) + sizeof(RingReceipt))),
          slots_(reinterpret_cast<RingSlot*>(ring + RingShape::head_bytes())),
          buffers_(ring + RingShape::head_bytes() + shape.depth * sizeof(RingSlot)), shape_(shape) {
    }

    /// The next fragment is there.
    bool ready() const { return head().turn.load(std::memory_order_acquire) == received_ + 1; }

    /// The next fragment is there, and is the whole of a message of that name and length.
    bool holds(std::uint64_t name, std::uint64_t bytes) const {
        const RingSlot& slot = head();
        return slot.turn.load(std::memory_order_acquire) == received_ + 1 && slot.tag == name &&
               slot.bytes == bytes && bytes <= kInlineBytes;
    }

    /// Of the message whose fragment is next. REQUIRES: ready().
    std::uint64_t tag() const { return head().tag; }
    std::uint64_t message_bytes() const { return head().bytes & ~kMessageFlags; }
    /// The next fragment's, whether or not it is there.
    std::uint64_t turn() const { return received_ + 1; }

    /// Where the message is, if it does not come by the ring. REQUIRES: ready().
    std::optional<RemoteBytes> elsewhere() const {
        if ((head().bytes & kElsewhere) == 0) {
            return std::nullopt;
        }
        RemoteBytes data;
        std::memcpy(&data, head().payload.data(), sizeof(data));
        return data;
    }

    /// What the sender of the message at the head offers. REQUIRES: elsewhere() has a value.
    Help help() const {
        return {(head().bytes & kSenderHelps) != 0, (head().bytes & kSenderWrites) != 0};
    }

    /// Of the message at the head, while that is elsewhere, or of the one to come there.
    JointCopy& joint() { return *joint_; }

    /// Tells the sender that its memory can be read.
    void offer_reading() { credit_->reads_sender.store(1, std::memory_order_release); }

    /// Frees the slot of a message that was elsewhere, which the sender may change from now on, and
    /// with it all that it shares with this rank. REQUIRES: ready(), elsewhere() != nullptr.
    void take() {
        release();
        receipt_->taken.store(received_, std::memory_order_release);
    }

    /// Tells the sender that this end looks at nothing in the sender's memory any more.
    void leave() { receipt_->left.store(1, std::memory_order_release); }

    /// Copies the next fragment to byte `moved` of `data`, frees its slot and returns its length.
    /// REQUIRES: ready().
    std::uint64_t receive(std::byte* data, std::uint64_t moved) {
        const std::uint64_t index = received_ & (shape_.depth - 1);
        const RingSlot& slot = slots_[index];
        const std::uint64_t length = fragment_bytes(shape_, slot.bytes, moved);
        if (length <= kInlineBytes) {
            copy_short(data + moved, slot.payload.data(), length);
        } else {
            std::memcpy(data + moved, buffers_ + shape_.buffer_offset(index, length), length);
        }
        release();
        return length;
    }

  private:
    const RingSlot& head() const { return slots_[received_ & (shape_.depth - 1)]; }

    /// The credit is stored once for several slots: each store takes its line from a sender that
    /// waits for it. The sender is not stuck for want of the rest, since it waits with the most of
    /// the ring unread.
    void release() {
        ++received_;
        if (received_ - credited_ >= shape_.depth / kCreditsPerRing) {
            credited_ = received_;
            credit_->released.store(received_, std::memory_order_release);
        }
        // Where the sender is ahead, the transfer of the lines that come next overlaps with what
        // this message is for.
        __builtin_prefetch(&slots_[(received_ + kPrefetch) & (shape_.depth - 1)]);
    }

    static constexpr std::uint32_t kCreditsPerRing = 4;
    static constexpr std::uint64_t kPrefetch = 2;

    RingCredit* credit_ = nullptr;
    RingReceipt* receipt_ = nullptr;
    JointCopy* joint_ = nullptr;
    const RingSlot* slots_ = nullptr;
    const std::byte* buffers_ = nullptr;
    RingShape shape_;
    std::uint64_t received_ = 0;
    std::uint64_t credited_ = 0; ///< The last credit that was given.
};

} // namespace ucg::shm
