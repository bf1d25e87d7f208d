// Flag slots, by which each of several processes shares a few bytes with all the others at once. A
// rank's flag slot is a ring of `depth` slots (FlagSlot), one for each of as many sequence numbers;
// the rank writes each of its shares once, and all the others read it there.
//
// Threads: each flag slot has one owner (FlagSlotWriter) and any number of readers, each a process
// or a thread. Layout (FlagSlotShape): the lines of all flag slots lie together, in memory leased
// by one of the ranks, so that a rank that looks at all of them touches a page or two; flag slots
// in their owners' memory would be one page each. The sleepers' line comes first, then one head for
// each rank, then, for each of `depth` sequence numbers, one slot for each rank. Long shares lie in
// `depth` payload buffers of `slot_bytes`, leased by the owner. Invariants, argued in PROTOCOL.md:
// each cache line except the sleepers' has one writer; the slot and buffer of sequence number t are
// written only when every peer has said that it looks at no share with a number below
// t - depth + 1; memory of zeros is empty flag slots.
//
// A collective that uses the flag slots has a flag-slot sequence number (FlagSlotSequence in
// transport.hpp), which all ranks count alike; sequence numbers below are these. Its share lies in
// slot `sequence % depth`.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "shm/copy.hpp"
#include "shm/copy_pace.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/copy.hpp"

namespace ucg::shm {

/// The longest share, in bytes, that travels in the slot's line itself, beside its sequence number.
/// Longer ones lie in a buffer.
inline constexpr std::uint64_t kFlagSlotInlineBytes = 32;

/// One slot of a rank's flag slot, which holds one share. One line carries payload and sequence
/// number together: a short share costs one transfer to each reader. A slot has two lines to
/// itself, since processors fetch lines in pairs.
struct alignas(2 * kCacheLine) FlagSlot {
    std::atomic<std::uint64_t> sequence; ///< t + 1 once the share with number t is there.
    std::atomic<std::uint64_t> stamp; ///< Names collective and plan; only the readers compare it.
    std::uint64_t bytes;              ///< Length of the share.
    /// The share, if it fits. Operators of the program read it here, so each element is aligned to
    /// its size.
    alignas(kFlagSlotInlineBytes) std::array<std::byte, kFlagSlotInlineBytes> payload;

    /// Returns whether the owner has shared under sequence number `number`. REQUIRES: the caller,
    /// if it is a reader, has not said that it is done with that number.
    bool holds(std::uint64_t number) const {
        return sequence.load(std::memory_order_acquire) == number + 1;
    }
};
static_assert(offsetof(FlagSlot, payload) + kFlagSlotInlineBytes == kCacheLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "atomics between processes");

/// What a rank says of its own reads. Lies apart from the slots, since peers read those all the
/// time, and this seldom.
struct alignas(2 * kCacheLine) FlagSlotHead {
    std::atomic<std::uint64_t> done; ///< The rank looks at no share with a lower number any more.
};

/// Why the ranks cannot go on together.
enum class Loss : std::uint64_t {
    none,
    memory,       ///< A rank has no memory left for what the others would read.
    rank,         ///< A rank is not in the group that the others have made.
    disagreement, ///< A rank got a message that it did not await, and takes part no more.
    message,      ///< A rank could not read a message, and takes part no more.
    elsewhere,    ///< A rank failed in something else than shared memory, and takes part no more.
    process,      ///< A rank's process has ended while another waited for it.
};

/// The first line of all flag slots. While no thread sleeps, a rank that shares need not look at
/// every peer's doorbell, each of which is on lines of its own.
struct alignas(2 * kCacheLine) FlagSlotSleepers {
    std::atomic<std::uint64_t> count; ///< Threads of the ranks that sleep or are about to.
    std::atomic<std::uint64_t> lost;  ///< A Loss.
};

/// A fence between `lost` and the callers' buffers. With release it orders that a rank has stored
/// `lost`, or has found it stored, before all that its caller does with the buffers; with acquire
/// it orders what a peer has read of them before its look at `lost`.
inline void loss_fence(std::memory_order order) {
#ifdef __SANITIZE_THREAD__ // It knows no fences. Processors that it runs on need none.
    std::atomic_signal_fence(order);
#else
    std::atomic_thread_fence(order);
#endif
}

/// Returns whether memory of a peer that the caller has just read may have held something else, as
/// the peer may have failed meanwhile and have given the memory back to its caller. A rank that
/// fails stores `lost` and then calls loss_fence(release), before its caller has its buffers back.
inline bool lost_meanwhile(const std::atomic<std::uint64_t>& lost) {
    loss_fence(std::memory_order_acquire);
    return lost.load(std::memory_order_relaxed) != 0;
}

/// The dimensions of the flag slots of some ranks, equal on all sides.
struct FlagSlotShape {
    std::uint32_t ranks = 0;
    std::uint32_t depth = 0;      ///< Slots of each rank; a power of two.
    std::uint32_t slot_bytes = 0; ///< The longest share; a multiple of the cache line.

    /// Returns the bytes of the sleepers' line and of the heads and slots of all ranks.
    std::uint64_t lines_bytes() const {
        return sizeof(FlagSlotSleepers) +
               ranks * (sizeof(FlagSlotHead) + depth * std::uint64_t{sizeof(FlagSlot)});
    }
    /// Returns the bytes of one rank's payload buffers.
    std::uint64_t buffers_bytes() const { return depth * std::uint64_t{slot_bytes}; }
    bool operator==(const FlagSlotShape&) const = default;
};

/// The lines of all flag slots as they are mapped here, aligned to two cache lines. `Byte` is
/// std::byte, or const std::byte for readers.
template <typename Byte>
class FlagSlotLines {
    template <typename T>
    using Like = std::conditional_t<std::is_const_v<Byte>, const T, T>;
    using Head = Like<FlagSlotHead>;
    using Slot = Like<FlagSlot>;

  public:
    FlagSlotLines() = default;
    FlagSlotLines(Byte* lines, const FlagSlotShape& shape)
        : lines_(lines), slots_(lines + sizeof(FlagSlotSleepers) +
                                shape.ranks * std::uint64_t{sizeof(FlagSlotHead)}),
          sequence_bytes_(shape.ranks * std::uint64_t{sizeof(FlagSlot)}), ranks_(shape.ranks),
          depth_(shape.depth) {}

    Byte* start() const { return lines_; }
    std::uint32_t ranks() const { return ranks_; }
    std::uint32_t depth() const { return depth_; }
    auto& sleepers() const { return *reinterpret_cast<Like<FlagSlotSleepers>*>(lines_); }
    auto& head(std::uint32_t rank) const {
        return reinterpret_cast<Head*>(lines_ + sizeof(FlagSlotSleepers))[rank];
    }
    /// Returns the slots of one sequence number, by rank.
    auto* slots(std::uint64_t sequence) const {
        return reinterpret_cast<Slot*>(slots_ + (sequence & (depth_ - 1)) * sequence_bytes_);
    }
    auto& slot(std::uint64_t sequence, std::uint32_t rank) const { return slots(sequence)[rank]; }

  private:
    Byte* lines_ = nullptr;
    Byte* slots_ = nullptr;
    std::uint64_t sequence_bytes_ = 0; ///< Of all ranks' slots of one number.
    std::uint32_t ranks_ = 0;
    std::uint32_t depth_ = 0;
};

/// The owner's end of its flag slot.
class FlagSlotWriter {
  public:
    FlagSlotWriter() = default;
    /// `rank` is the owner's; `buffers` are its own payload buffers, cache-line aligned.
    FlagSlotWriter(std::byte* lines, const FlagSlotShape& shape, std::uint32_t rank,
                   std::byte* buffers)
        : lines_(lines, shape), rank_(rank),
          sequences_per_store_(std::max(1U, shape.depth / kStoresPerFlagSlot)),
          last_(rank == 0 ? shape.ranks - 1 : 0), buffers_(buffers), slot_bytes_(shape.slot_bytes),
          backed_(shape.depth), pace_(std::max(kFirstComparison, 4 * shape.depth)) {}

    /// Returns whether the slot of that sequence number may be written. Reads the peers' words only
    /// when what is known of them does not suffice.
    bool has_room(std::uint64_t sequence) { return fits(sequence, done_by_all_) || ask(sequence); }

    /// Returns the peer that holds up the share that had no room.
    std::uint32_t last_peer() const { return last_; }

    /// Returns whether all buffers have pages for a share of so many bytes.
    bool prepared(std::uint64_t bytes) const { return bytes <= backed_everywhere_; }

    /// Gives pages to the buffer of that sequence number, unless it has them, by `back(data,
    /// bytes)`, which returns whether it could. Returns whether the buffer has pages. REQUIRES:
    /// has_room(sequence).
    template <typename Back>
    bool prepare(std::uint64_t sequence, std::uint64_t bytes, Back back) {
        if (prepared(bytes)) {
            return true;
        }
        const std::uint64_t index = sequence & (lines_.depth() - 1);
        std::uint32_t& backed = backed_[index];
        if (bytes <= backed) {
            return true;
        }
        std::byte* const buffer = this->buffer(sequence);
        if (!back(buffer, bytes)) {
            return false;
        }
        const std::uint64_t before = reinterpret_cast<std::uintptr_t>(buffer) % kPageLeast;
        backed = static_cast<std::uint32_t>(round_up(before + bytes, kPageLeast) - before);
        backed_everywhere_ = std::max(
            kFlagSlotInlineBytes, std::uint64_t{*std::min_element(backed_.begin(), backed_.end())});
        return true;
    }

    /// Shares `data` under that sequence number; `stamp` is kept with it. `waits` says that the
    /// owner then waits for what its peers share. REQUIRES: has_room(sequence), bytes <=
    /// slot_bytes, prepare(sequence, bytes) returned true.
    void write(std::uint64_t sequence, std::uint64_t stamp, const std::byte* data,
               std::uint64_t bytes, bool waits) {
        FlagSlot& slot = lines_.slot(sequence, rank_);
        if (sequence < lines_.depth()) {
            map_around(&slot);
        }
        if (bytes <= kFlagSlotInlineBytes) {
            copy_short(slot.payload.data(), data, bytes);
        } else {
            std::byte* const buffer = this->buffer(sequence);
            if (bytes < kPacedBytesMin) {
                copy_bytes(buffer, data, bytes);
                if (waits && bytes <= kDemotedBytesMax) {
                    demote(buffer, bytes);
                }
            } else {
                copy_at_pace(pace_, buffer, data, bytes);
            }
        }
        publish_sequence(slot, sequence, stamp, bytes);
        if (bytes > kFlagSlotInlineBytes) {
            prefetch_for_write(this->buffer(sequence + 1), bytes);
        }
    }

    /// Returns whether it is known without a look at peers that nothing holds up this share,
    /// neither a peer nor a missing page. Only a share that travels in its slot can be written so.
    bool writes_at_once(std::uint64_t sequence, std::uint64_t bytes) const {
        return bytes <= kFlagSlotInlineBytes && sequence < at_once_below_;
    }
    /// Writes such a share and calls finish(sequence); `slots` are those of that sequence number.
    /// REQUIRES: writes_at_once(sequence, bytes).
    void write_at_once(FlagSlot* slots, std::uint64_t sequence, std::uint64_t stamp,
                       const std::byte* data, std::uint64_t bytes) {
        FlagSlot& slot = slots[rank_];
        copy_short(slot.payload.data(), data, bytes);
        publish_sequence(slot, sequence, stamp, bytes);
        finish(sequence);
    }
    /// From now on writes_at_once() returns false.
    void never_at_once() {
        at_once_ = false;
        at_once_below_ = 0;
    }

    /// Says that the owner looks at no share with a number below `sequence` any more; the argument
    /// only rises. Returns whether peers can see more of that than before. It is stored once for
    /// several numbers, since each store takes the line from a peer that polls it; PROTOCOL.md says
    /// why no peer is stuck because of the rest.
    bool finish(std::uint64_t sequence) {
        done_ = sequence;
        if (sequence - stored_ < sequences_per_store_) {
            return false;
        }
        stored_ = sequence;
        lines_.head(rank_).done.store(sequence, std::memory_order_release);
        return true;
    }

    /// Returns the least sequence number at which the owner may still look.
    std::uint64_t done() const { return done_; }

  private:
    static constexpr std::uint32_t kStoresPerFlagSlot = 4;
    /// Copies before the ways of copying are compared first, at least, and four times as many as
    /// there are buffers: all have their pages then.
    static constexpr std::uint32_t kFirstComparison = 256;
    /// Shares of at most this length are demoted, if their owner waits: two ranks of two Sapphire
    /// Rapids cores then exchange 64 bytes to 1 KiB in 0.7 to 0.85 of the time. Longer ones gain
    /// nothing, and an owner that goes on to write the next one loses (1 KiB: 1.4 times as long).
    static constexpr std::uint64_t kDemotedBytesMax = 1024;
    static constexpr std::uint64_t kPageLeast = 4096; ///< Bytes of the shortest page there is.

    std::byte* buffer(std::uint64_t sequence) const {
        return buffers_ + (sequence & (lines_.depth() - 1)) * slot_bytes_;
    }

    bool fits(std::uint64_t sequence, std::uint64_t done) const {
        return sequence < done + lines_.depth();
    }

    /// Publishes the share, which lies in the slot or the buffer, by its sequence number.
    static void publish_sequence(FlagSlot& slot, std::uint64_t sequence, std::uint64_t stamp,
                                 std::uint64_t bytes) {
        slot.bytes = bytes;
        slot.stamp.store(stamp, std::memory_order_relaxed);
        slot.sequence.store(sequence + 1, std::memory_order_release);
    }

    /// Reads the peers' words and returns whether there is room. Looks first at the peer that held
    /// up the share last time, so that a rank that waits reads one word.
    bool ask(std::uint64_t sequence) {
        if (lines_.ranks() == 1) {
            return true;
        }
        if (!fits(sequence, done_by(last_))) {
            return false;
        }
        std::uint64_t least = ~std::uint64_t{0};
        for (std::uint32_t rank = 0; rank < lines_.ranks(); ++rank) {
            if (rank == rank_) {
                continue;
            }
            const std::uint64_t done = done_by(rank);
            last_ = done < least ? rank : last_;
            least = std::min(least, done);
        }
        done_by_all_ = least;
        at_once_below_ = at_once_ ? least + lines_.depth() : 0;
        return fits(sequence, least);
    }

    std::uint64_t done_by(std::uint32_t rank) const {
        return lines_.head(rank).done.load(std::memory_order_acquire);
    }

    FlagSlotLines<std::byte> lines_;
    std::uint32_t rank_ = 0;
    std::uint32_t sequences_per_store_ = 1;
    std::uint32_t last_ = 0; ///< The peer whose `done` was the least when all were read.
    std::byte* buffers_ = nullptr;
    std::uint64_t slot_bytes_ = 0;
    std::vector<std::uint32_t> backed_; ///< Bytes of each buffer that have pages.
    std::uint64_t backed_everywhere_ = kFlagSlotInlineBytes; ///< Bytes of each that have pages.
    std::uint64_t done_by_all_ = 0;                          ///< The least `done` last read.
    /// Shares with lower numbers fit; 0 until peers were asked, when all slots have pages.
    std::uint64_t at_once_below_ = 0;
    bool at_once_ = true;
    std::uint64_t done_ = 0;
    std::uint64_t stored_ = 0; ///< What the peers see of done_.
    CopyPace pace_;
};

/// A reader's end of one peer's flag slot.
class FlagSlotReader {
  public:
    FlagSlotReader() = default;
    /// `rank` is the peer; `buffers` is where its buffers are mapped here.
    FlagSlotReader(const std::byte* lines, const FlagSlotShape& shape, std::uint32_t rank,
                   const std::byte* buffers)
        : lines_(lines, shape), rank_(rank), buffers_(buffers), slot_bytes_(shape.slot_bytes) {}

    /// Returns whether the peer has shared under that sequence number. REQUIRES, as do stamp() and
    /// data(): this process has not said that it looks at that number no more.
    bool holds(std::uint64_t sequence) const { return slot(sequence).holds(sequence); }

    /// The three of the share with that number. REQUIRES: holds(sequence).
    std::uint64_t stamp(std::uint64_t sequence) const {
        return slot(sequence).stamp.load(std::memory_order_relaxed);
    }
    std::uint64_t bytes(std::uint64_t sequence) const { return slot(sequence).bytes; }
    const std::byte* data(std::uint64_t sequence) const {
        const FlagSlot& at = slot(sequence);
        return at.bytes <= kFlagSlotInlineBytes
                   ? at.payload.data()
                   : buffers_ + (sequence & (lines_.depth() - 1)) * slot_bytes_;
    }

    /// Calls `look` with the stamps of all shares of the peer that are seen, of sequence numbers
    /// from `first` on, in no order.
    template <typename Look>
    void each_stamp(std::uint64_t first, Look look) const {
        for (std::uint32_t i = 0; i < lines_.depth(); ++i) {
            // A slot that is just being written may show the number before and the stamp to come,
            // which is the stamp of a later number.
            if (lines_.slot(i, rank_).sequence.load(std::memory_order_acquire) > first) {
                look(lines_.slot(i, rank_).stamp.load(std::memory_order_relaxed));
            }
        }
    }

  private:
    const FlagSlot& slot(std::uint64_t sequence) const { return lines_.slot(sequence, rank_); }

    FlagSlotLines<const std::byte> lines_;
    std::uint32_t rank_ = 0;
    const std::byte* buffers_ = nullptr;
    std::uint64_t slot_bytes_ = 0;
};

} // namespace ucg::shm
