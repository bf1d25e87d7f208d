// A ring of messages from one process to another: the unit of which all shared-memory messages are
// made. It lies in memory leased by the receiver.
//
// Threads: exactly one sender and one receiver, in two processes or two threads.
// Layout (RingShape): a credit line, then `depth` slots of one cache line each, then `depth`
// payload buffers of `slot_bytes`. Invariants, argued in PROTOCOL.md: a cache line has one writer;
// a slot and its buffer belong to the sender from the receiver's release of turn t - depth to the
// sender's publication of turn t, and to the receiver otherwise; memory of zeros is an empty ring.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shm/copy.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// Bytes of a message that travel in the slot's line itself, beside the word that announces them.
inline constexpr std::uint64_t kInlineBytes = 40;

/// One line carries payload and turn together: a short message costs one transfer between caches.
struct alignas(kCacheLine) RingSlot {
    std::atomic<std::uint64_t> turn; ///< n + 1 once the n-th fragment of the ring is there.
    std::uint64_t tag;               ///< The message's name; the ring does not look at it.
    std::uint64_t bytes;             ///< Of the whole message, in each of its fragments.
    std::array<std::byte, kInlineBytes> payload;
};
static_assert(sizeof(RingSlot) == kCacheLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "atomics between processes");

/// How many fragments the receiver has done with. Alone on two lines, since processors fetch lines
/// in pairs.
struct alignas(2 * kCacheLine) RingCredit {
    std::atomic<std::uint64_t> released;
};

/// The dimensions of a ring, equal on both sides.
struct RingShape {
    std::uint32_t depth = 0;      ///< Slots; a power of two.
    std::uint32_t slot_bytes = 0; ///< The longest fragment; a multiple of the cache line.

    std::uint64_t ring_bytes() const {
        return sizeof(RingCredit) + depth * (sizeof(RingSlot) + std::uint64_t{slot_bytes});
    }
    bool operator==(const RingShape&) const = default;
};

/// Messages up to this length travel whole, where the slots are that long.
inline constexpr std::uint64_t kWholeBytes = 4096;

/// The length of the fragment that begins at byte `moved`, which both sides derive from the
/// message's length alone. Longer messages are cut at least in two, so that the receiver copies one
/// part out while the sender copies the next in. Fragments of at most kInlineBytes travel in the
/// line.
inline std::uint64_t fragment_bytes(const RingShape& shape, std::uint64_t message_bytes,
                                    std::uint64_t moved) {
    const std::uint64_t half = (message_bytes / 2 + kCacheLine - 1) / kCacheLine * kCacheLine;
    const std::uint64_t most =
        std::min<std::uint64_t>(shape.slot_bytes, std::max(half, kWholeBytes));
    return std::min(message_bytes - moved, most);
}

/// The sender's end.
class RingSender {
  public:
    RingSender() = default;
    /// `ring`: where the receiver's ring is mapped here, cache-line aligned.
    RingSender(std::byte* ring, const RingShape& shape)
        : credit_(reinterpret_cast<RingCredit*>(ring)),
          slots_(reinterpret_cast<RingSlot*>(ring + sizeof(RingCredit))),
          buffers_(ring + sizeof(RingCredit) + shape.depth * sizeof(RingSlot)), shape_(shape) {}

    /// No slot is free. Reads the receiver's credit only when the copy of it says so.
    bool full() {
        if (sent_ - released_ < shape_.depth) {
            return false;
        }
        released_ = credit_->released.load(std::memory_order_acquire);
        return sent_ - released_ == shape_.depth;
    }

    /// Sends the fragment of a message that begins at byte `moved`, and returns its length. `data`
    /// is the message's start. `streaming`: copy long fragments past the caches. REQUIRES: !full().
    std::uint64_t send(std::uint64_t tag, const std::byte* data, std::uint64_t message_bytes,
                       std::uint64_t moved, bool streaming) {
        const std::uint64_t index = sent_ & (shape_.depth - 1);
        RingSlot& slot = slots_[index];
        const std::uint64_t length = fragment_bytes(shape_, message_bytes, moved);
        if (length <= kInlineBytes) {
            copy_short(slot.payload.data(), data + moved, length);
        } else if (streaming) {
            copy_streaming(buffers_ + index * shape_.slot_bytes, data + moved, length);
        } else {
            std::memcpy(buffers_ + index * shape_.slot_bytes, data + moved, length);
        }
        slot.tag = tag;
        slot.bytes = message_bytes;
        ++sent_;
        slot.turn.store(sent_, std::memory_order_release);
        return length;
    }

  private:
    RingCredit* credit_ = nullptr;
    RingSlot* slots_ = nullptr;
    std::byte* buffers_ = nullptr;
    RingShape shape_;
    std::uint64_t sent_ = 0;
    std::uint64_t released_ = 0; ///< The last credit that was read.
};

/// The receiver's end.
class RingReceiver {
  public:
    RingReceiver() = default;
    RingReceiver(std::byte* ring, const RingShape& shape)
        : credit_(reinterpret_cast<RingCredit*>(ring)),
          slots_(reinterpret_cast<RingSlot*>(ring + sizeof(RingCredit))),
          buffers_(ring + sizeof(RingCredit) + shape.depth * sizeof(RingSlot)), shape_(shape) {}

    /// The next fragment is there.
    bool ready() const { return head().turn.load(std::memory_order_acquire) == received_ + 1; }

    /// Of the message whose fragment is next. REQUIRES: ready().
    std::uint64_t tag() const { return head().tag; }
    std::uint64_t message_bytes() const { return head().bytes; }

    /// Copies the next fragment to byte `moved` of `data`, frees its slot and returns its length.
    /// REQUIRES: ready().
    std::uint64_t receive(std::byte* data, std::uint64_t moved) {
        const std::uint64_t index = received_ & (shape_.depth - 1);
        const RingSlot& slot = slots_[index];
        const std::uint64_t length = fragment_bytes(shape_, slot.bytes, moved);
        if (length <= kInlineBytes) {
            copy_short(data + moved, slot.payload.data(), length);
        } else {
            std::memcpy(data + moved, buffers_ + index * shape_.slot_bytes, length);
        }
        ++received_;
        credit_->released.store(received_, std::memory_order_release);
        return length;
    }

  private:
    const RingSlot& head() const { return slots_[received_ & (shape_.depth - 1)]; }

    RingCredit* credit_ = nullptr;
    const RingSlot* slots_ = nullptr;
    const std::byte* buffers_ = nullptr;
    RingShape shape_;
    std::uint64_t received_ = 0;
};

} // namespace ucg::shm
