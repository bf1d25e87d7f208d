// What lies where in a ring of messages, who writes it, and how messages are cut into fragments.
// ring.hpp says what a ring is. RTS and FIN: PROTOCOL.md, "Messages that stay where they are".
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shm/cooperative_copy.hpp"
#include "shm/peer_copy.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// The longest fragment, in bytes, that travels in the slot's line itself, beside its sequence
/// number.
inline constexpr std::uint64_t kInlineBytes = 40;

/// What a sender offers in an RTS: to copy a part of the message itself.
struct CopyOffer {
    bool mapped = false;   ///< It copies into the receiver's segment.
    bool anywhere = false; ///< It copies into any memory of the receiver's process.

    /// Returns whether the sender would copy to `target`.
    bool reaches(const RemoteBytes& target) const { return target.place != 0 ? mapped : anywhere; }
};

/// A fragment of a message, or an RTS. One line carries payload and fragment number together: a
/// short message costs one transfer between caches.
struct alignas(kCacheLine) RingSlot {
    std::atomic<std::uint64_t> sequence; ///< n + 1 once the n-th fragment of the ring is there.
    std::uint64_t tag;                   ///< The message's name; the ring does not look at it.
    std::uint64_t bytes; ///< Of the whole message, in each of its fragments; with flags.
    /// The fragment, if it fits; else the place of its buffer in the round of buffers, which its
    /// sender chooses. With kElsewhere, an Elsewhere.
    std::array<std::byte, kInlineBytes> payload;

    void set_place(std::uint64_t place) { std::memcpy(payload.data(), &place, sizeof(place)); }
    std::uint64_t place() const {
        std::uint64_t place = 0;
        std::memcpy(&place, payload.data(), sizeof(place));
        return place;
    }
};
static_assert(sizeof(RingSlot) == kCacheLine);

// Flags in RingSlot::bytes.

/// The slot is the RTS of a message that stays in the sender's memory, where the receiver reads it.
inline constexpr std::uint64_t kElsewhere = std::uint64_t{1} << 63;
/// In an RTS: the sender copies a part if the receiver lets it, to the receiver's segment, or to
/// its private memory as well (CopyOffer).
inline constexpr std::uint64_t kSenderHelps = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kSenderWrites = std::uint64_t{1} << 61;
/// How a message is cut into fragments where memory is too short for the usual buffers: into
/// fragments of at most kShortBytes, or of at most kInlineBytes.
inline constexpr std::uint64_t kCutShort = std::uint64_t{1} << 60;
inline constexpr std::uint64_t kCutToLines = std::uint64_t{1} << 59;
/// The message is cut into fewer and longer fragments, since the receiver's core is far: the first
/// lines of each fragment take as long as it takes to learn that there is one.
inline constexpr std::uint64_t kCutLong = std::uint64_t{1} << 58;
inline constexpr std::uint64_t kCut = kCutShort | kCutToLines | kCutLong;
inline constexpr std::uint64_t kMessageFlags = kElsewhere | kSenderHelps | kSenderWrites | kCut;

/// The payload of an RTS.
struct Elsewhere {
    RemoteBytes data;       ///< Where the message lies.
    std::uint64_t mark = 0; ///< By which the receiver says that it reads the message later.
};
static_assert(sizeof(Elsewhere) <= kInlineBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "atomics between processes");

/// What the receiver of the ring tells its sender. Alone on two lines, since processors fetch lines
/// in pairs.
struct alignas(2 * kCacheLine) RingCredit {
    std::atomic<std::uint64_t> released;     ///< Slots that the receiver has given back, in all.
    std::atomic<std::uint64_t> reads_sender; ///< 1 once the receiver can read the sender's memory.
};

/// The FINs for messages whose RTS the ring's owner has sent in the ring of the other direction:
/// how far this ring's sender has read them. They lie here because the owner waits for them: the
/// memory of this ring's sender may be gone by then.
struct alignas(2 * kCacheLine) RingFin {
    static constexpr std::size_t kMarkBits = 64;
    /// The most messages that can await their FIN at a time.
    static constexpr std::size_t kMarks = 14 * kMarkBits;

    /// With kTakenSlowly: the kernel's copies out of the owner's memory are slow (PullSpeed).
    static constexpr std::uint64_t kTakenSlowly = std::uint64_t{1} << 63;

    /// Messages whose RTS has this or a lower fragment number were read, except those remembered.
    std::atomic<std::uint64_t> taken;
    /// A bit for each mark: its message is remembered, to be read later.
    std::array<std::atomic<std::uint64_t>, kMarks / kMarkBits> remembered;
    /// 1 once this ring's sender cannot read the owner's private memory any more: what it has not
    /// read of that by then has to come by the ring.
    std::atomic<std::uint64_t> declined;
};
static_assert(sizeof(RingFin) == 2 * kCacheLine);

/// Fragments up to this length use only the first page of a long buffer.
inline constexpr std::uint64_t kPageBytes = 4096;

/// Messages up to this length travel whole, where the slots are that long: a second fragment's line
/// has to come, too, and its receiver to look for it, which takes longer than to copy so much. With
/// kCutLong all that fit into a slot do.
inline constexpr std::uint64_t kWholeBytes = 8192;

/// Fragments up to this length have short buffers of their own, side by side: a ring of short
/// messages touches five pages, where buffers of 16 KiB would cost a page for each.
inline constexpr std::uint64_t kShortBytes = 1024;

/// The dimensions of a ring, equal on both sides.
struct RingShape {
    std::uint32_t depth = 0; ///< Slots; a power of two.
    /// The longest fragment that takes one slot; a multiple of the cache line.
    std::uint32_t slot_bytes = 0;
    /// How many buffers fragments longer than kPageBytes use one after the other, a power of two;
    /// if it is less than `depth`, there are `depth`. With more of them than the receiver's own
    /// cache holds, the sender finds each in a cache that both share, where it writes several times
    /// faster. New pages take long, so the first fragments of a ring, which may be all, do with as
    /// many as slots.
    std::uint32_t buffers = 0;

    /// Returns the bytes of the head and the slots.
    std::uint64_t lines_bytes() const {
        return round_up(head_bytes() + depth * sizeof(RingSlot), 2 * kCacheLine);
    }
    std::uint64_t buffers_bytes() const {
        return depth * short_bytes() + long_buffers() * std::uint64_t{slot_bytes};
    }
    std::uint32_t long_buffers() const {
        return slot_bytes > kPageBytes ? std::max(buffers, depth) : depth;
    }
    /// Returns the length of a short buffer; 0 where slots are so short that there are none.
    std::uint64_t short_bytes() const { return slot_bytes > kPageBytes ? kShortBytes : 0; }
    /// Returns the offset, from the start of the first buffer, of the buffer for a fragment of
    /// `bytes` at place n of the round.
    std::uint64_t buffer_offset(std::uint64_t n, std::uint64_t bytes) const {
        if (bytes <= short_bytes()) {
            return (n & (depth - 1)) * short_bytes();
        }
        return long_offset(bytes <= kPageBytes ? n & (depth - 1) : long_index(n));
    }
    std::uint64_t long_offset(std::uint64_t index) const {
        return depth * short_bytes() + index * slot_bytes;
    }
    /// Returns the index of the long buffer at place n. Until every slot has been used kFirstRounds
    /// times there are only as many buffers as slots.
    std::uint64_t long_index(std::uint64_t n) const {
        return n & ((n < kFirstRounds * depth ? depth : long_buffers()) - 1);
    }
    static constexpr std::uint64_t head_bytes() {
        return sizeof(RingCredit) + sizeof(RingFin) + sizeof(CooperativeCopy);
    }
    bool operator==(const RingShape&) const = default;

  private:
    static constexpr std::uint64_t kFirstRounds = 64;
};

/// In a long message one fragment takes so many slots with their buffers, side by side (a run):
/// processors copy long pieces faster than several short ones.
inline constexpr std::uint32_t kRunSlots = 4;
/// A message has runs if it is at least so many of them long: one that goes one way only takes as
/// long as its pieces and one more.
inline constexpr std::uint32_t kRunsOfMessage = 4;

/// Returns how many slots a fragment of that length takes.
inline std::uint64_t slots_of(const RingShape& shape, std::uint64_t fragment_bytes) {
    return fragment_bytes <= shape.slot_bytes ? 1 : divide_up(fragment_bytes, shape.slot_bytes);
}

/// With kCutLong, shorter messages have runs of kShortRunSlots slots, if they are at least
/// kShortRunsOfMessage of these long.
inline constexpr std::uint32_t kShortRunSlots = 2;
inline constexpr std::uint32_t kShortRunsOfMessage = 2;

/// Returns how many slots, from number n on, the next fragment takes if `rest` bytes of the message
/// are left. Runs lie at multiples of their length, so that none goes around the ring. Rings of few
/// slots have none: a sender that waits for a run might wait for credit that the receiver holds
/// back.
inline std::uint32_t run_slots(const RingShape& shape, std::uint64_t n, std::uint64_t message_bytes,
                               std::uint64_t rest, std::uint64_t flags) {
    const auto fits = [&](std::uint32_t slots, std::uint32_t of_message) {
        const std::uint64_t bytes = slots * std::uint64_t{shape.slot_bytes};
        return message_bytes >= of_message * bytes && rest >= bytes && n % slots == 0;
    };
    if (shape.depth < 4 * kRunSlots || (flags & (kCutShort | kCutToLines)) != 0) {
        return 1;
    }
    if (fits(kRunSlots, kRunsOfMessage)) {
        return kRunSlots;
    }
    return (flags & kCutLong) != 0 && fits(kShortRunSlots, kShortRunsOfMessage) ? kShortRunSlots
                                                                                : 1;
}

/// Returns the length of fragment number n of a ring, which begins at byte `moved` of its message;
/// both sides derive it from these, the message's length and its kCut flags. Messages that do not
/// travel whole are cut at least in two, so that the receiver copies one part out while the sender
/// copies the next in. Fragments of at most kInlineBytes travel in the line.
inline std::uint64_t fragment_bytes(const RingShape& shape, std::uint64_t n,
                                    std::uint64_t message_bytes, std::uint64_t moved,
                                    std::uint64_t flags = 0) {
    const std::uint64_t rest = message_bytes - moved;
    if (rest <= kInlineBytes || (flags & kCutToLines) != 0) { // A slot's buffer is longer.
        return std::min(rest, kInlineBytes);
    }
    if ((flags & kCutShort) != 0) {
        return std::min(rest, shape.short_bytes());
    }
    const std::uint64_t slot_bytes = shape.slot_bytes;
    if (const std::uint32_t slots = run_slots(shape, n, message_bytes, rest, flags); slots > 1) {
        return slots * slot_bytes;
    }
    const std::uint64_t whole_bytes = (flags & kCutLong) != 0 ? slot_bytes : kWholeBytes;
    const std::uint64_t half = round_up(message_bytes / 2, kCacheLine);
    const std::uint64_t most = message_bytes <= whole_bytes ? message_bytes : half;
    return std::min({rest, most, slot_bytes});
}

} // namespace ucg::shm
