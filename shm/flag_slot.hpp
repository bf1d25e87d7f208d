// Flag slots, by which each of several processes shares a few bytes with all the others at once.
// Each writes its share once, and all the others read it there.
//
// Threads: each flag slot has one owner (FlagSlotWriter) and any number of readers, each a process
// or a thread. Layout (FlagSlotShape): the lines of all flag slots lie together, in memory leased
// by one of the ranks, so that a rank that looks at all of them touches a page or two; flag slots
// in their owners' memory would be one page each. The sleepers' line comes first, then one head for
// each rank, then, for each of `depth` turns, one slot for each rank. Long shares lie in `depth`
// payload buffers of `slot_bytes`, leased by the owner. Invariants, argued in PROTOCOL.md: each
// cache line except the sleepers' has one writer; the slot and buffer of turn t are written only
// when every peer has said that it looks at no turn before t - depth + 1; memory of zeros is empty
// flag slots.
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
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/copy.hpp"

namespace ucg::shm {

/// Bytes that travel in the slot's line itself, beside the word that announces them.
inline constexpr std::uint64_t kFlagSlotInlineBytes = 32;

/// One line carries payload and turn together: a short share costs one transfer to each reader. A
/// slot has two lines to itself, since processors fetch lines in pairs.
struct alignas(2 * kCacheLine) FlagSlot {
    std::atomic<std::uint64_t> turn; ///< t + 1 once turn t is there.
    std::atomic<std::uint64_t>
        stamp; ///< Names collective and plan; the flag slot does not look at it.
    std::uint64_t bytes;
    /// Operators of the program read it here: what fits is aligned to its size.
    alignas(kFlagSlotInlineBytes) std::array<std::byte, kFlagSlotInlineBytes> payload;

    /// Has that turn been shared? REQUIRES: a reader has not said that it is done with the turn.
    bool holds(std::uint64_t number) const {
        return turn.load(std::memory_order_acquire) == number + 1;
    }
};
static_assert(offsetof(FlagSlot, payload) + kFlagSlotInlineBytes == kCacheLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "atomics between processes");

/// Lies apart from the slots, since peers read those all the time, and this seldom.
struct alignas(2 * kCacheLine) FlagSlotHead {
    std::atomic<std::uint64_t> done; ///< The owner looks at no turn below this one any more.
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

/// Counts the ranks' threads that sleep, or are about to: while there are none, a rank that shares
/// need not look at every peer's doorbell, each of which is on lines of its own.
struct alignas(2 * kCacheLine) FlagSlotSleepers {
    std::atomic<std::uint64_t> count;
    std::atomic<std::uint64_t> lost; ///< A Loss.
};

/// Orders what a rank tells by `lost`, or has found there, before all that its caller does with the
/// buffers, and what a peer reads of them before its look at `lost`.
inline void loss_fence(std::memory_order order) {
#ifdef __SANITIZE_THREAD__ // It knows no fences. Processors that it runs on need none.
    std::atomic_signal_fence(order);
#else
    std::atomic_thread_fence(order);
#endif
}

/// For who has read a peer's memory: may it be another's by now? A rank that fails stores `lost`
/// and then loss_fence(release), before its caller has its buffers back.
inline bool lost_meanwhile(const std::atomic<std::uint64_t>& lost) {
    loss_fence(std::memory_order_acquire);
    return lost.load(std::memory_order_relaxed) != 0;
}

/// The dimensions of the flag slots of some ranks, equal on all sides.
struct FlagSlotShape {
    std::uint32_t ranks = 0;
    std::uint32_t depth = 0;      ///< Slots; a power of two.
    std::uint32_t slot_bytes = 0; ///< The longest share; a multiple of the cache line.

    /// The sleepers' line, and the heads and slots of all ranks.
    std::uint64_t lines_bytes() const {
        return sizeof(FlagSlotSleepers) +
               ranks * (sizeof(FlagSlotHead) + depth * std::uint64_t{sizeof(FlagSlot)});
    }
    /// One rank's payload buffers.
    std::uint64_t buffers_bytes() const { return depth * std::uint64_t{slot_bytes}; }
    bool operator==(const FlagSlotShape&) const = default;
};

/// Where the lines of all flag slots are mapped here, aligned to two cache lines.
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
          turn_bytes_(shape.ranks * std::uint64_t{sizeof(FlagSlot)}), ranks_(shape.ranks),
          depth_(shape.depth) {}

    Byte* start() const { return lines_; }
    std::uint32_t ranks() const { return ranks_; }
    std::uint32_t depth() const { return depth_; }
    auto& sleepers() const { return *reinterpret_cast<Like<FlagSlotSleepers>*>(lines_); }
    auto& head(std::uint32_t rank) const {
        return reinterpret_cast<Head*>(lines_ + sizeof(FlagSlotSleepers))[rank];
    }
    /// The slots of one turn, by rank.
    auto* slots(std::uint64_t turn) const {
        return reinterpret_cast<Slot*>(slots_ + (turn & (depth_ - 1)) * turn_bytes_);
    }
    auto& slot(std::uint64_t turn, std::uint32_t rank) const { return slots(turn)[rank]; }

  private:
    Byte* lines_ = nullptr;
    Byte* slots_ = nullptr;
    std::uint64_t turn_bytes_ = 0; ///< Of all slots of one turn.
    std::uint32_t ranks_ = 0;
    std::uint32_t depth_ = 0;
};

/// The owner's end of its flag slot.
class FlagSlotWriter {
  public:
    FlagSlotWriter() = default;
    /// `rank`: the own one. `buffers`: in the own memory, cache-line aligned.
    FlagSlotWriter(std::byte* lines, const FlagSlotShape& shape, std::uint32_t rank,
                   std::byte* buffers)
        : lines_(lines, shape), rank_(rank),
          turns_per_store_(std::max(1U, shape.depth / kStoresPerFlagSlot)),
          last_(rank == 0 ? shape.ranks - 1 : 0), buffers_(buffers), slot_bytes_(shape.slot_bytes),
          backed_(shape.depth) {}

    /// May the slot of that turn be written? Reads the peers' words only when what is known of them
    /// does not suffice.
    bool has_room(std::uint64_t turn) { return fits(turn, done_by_all_) || ask(turn); }

    /// Which peer holds up the turn that had no room.
    std::uint32_t last_peer() const { return last_; }

    /// Do all buffers have pages for so many bytes?
    bool prepared(std::uint64_t bytes) const { return bytes <= backed_everywhere_; }

    /// Gives pages to that turn's buffer, unless it has them, by `back(data, bytes)`, which says
    /// whether it could. Returns whether the buffer has pages. REQUIRES: has_room(turn).
    template <typename Back>
    bool prepare(std::uint64_t turn, std::uint64_t bytes, Back back) {
        if (prepared(bytes)) {
            return true;
        }
        const std::uint64_t index = turn & (lines_.depth() - 1);
        std::uint32_t& backed = backed_[index];
        if (bytes <= backed) {
            return true;
        }
        std::byte* const buffer = buffers_ + index * slot_bytes_;
        if (!back(buffer, bytes)) {
            return false;
        }
        const std::uint64_t before = reinterpret_cast<std::uintptr_t>(buffer) % kPageLeast;
        backed = static_cast<std::uint32_t>(round_up(before + bytes, kPageLeast) - before);
        backed_everywhere_ = std::max(
            kFlagSlotInlineBytes, std::uint64_t{*std::min_element(backed_.begin(), backed_.end())});
        return true;
    }

    /// Shares a turn. REQUIRES: has_room(turn), bytes <= slot_bytes, prepare(turn, bytes).
    void write(std::uint64_t turn, std::uint64_t stamp, const std::byte* data,
               std::uint64_t bytes) {
        FlagSlot& slot = lines_.slot(turn, rank_);
        if (turn < lines_.depth()) {
            map_around(&slot);
        }
        if (bytes <= kFlagSlotInlineBytes) {
            copy_short(slot.payload.data(), data, bytes);
        } else {
            copy_bytes(buffers_ + (turn & (lines_.depth() - 1)) * slot_bytes_, data, bytes);
        }
        announce(slot, turn, stamp, bytes);
    }

    /// Is it known without a look that nothing holds up this share, neither a peer nor a missing
    /// page? Only a share that travels in its slot can be written so.
    bool writes_at_once(std::uint64_t turn, std::uint64_t bytes) const {
        return bytes <= kFlagSlotInlineBytes && turn < at_once_below_;
    }
    /// Writes such a share and calls finish(turn); `slots` are those of the turn. REQUIRES:
    /// writes_at_once(turn, bytes).
    void write_at_once(FlagSlot* slots, std::uint64_t turn, std::uint64_t stamp,
                       const std::byte* data, std::uint64_t bytes) {
        FlagSlot& slot = slots[rank_];
        copy_short(slot.payload.data(), data, bytes);
        announce(slot, turn, stamp, bytes);
        finish(turn);
    }
    /// From now on no turn is written at once.
    void never_at_once() {
        at_once_ = false;
        at_once_below_ = 0;
    }

    /// Says that the owner looks at no turn below `turn` any more; `turn` only rises. Returns
    /// whether peers can see more of that than before. It is stored once for several turns, since
    /// each store takes the line from a peer that polls it; PROTOCOL.md says why no peer is stuck
    /// because of the rest.
    bool finish(std::uint64_t turn) {
        done_ = turn;
        if (turn - stored_ < turns_per_store_) {
            return false;
        }
        stored_ = turn;
        lines_.head(rank_).done.store(turn, std::memory_order_release);
        return true;
    }

    /// The least turn that the owner may still look at.
    std::uint64_t done() const { return done_; }

  private:
    static constexpr std::uint32_t kStoresPerFlagSlot = 4;
    static constexpr std::uint64_t kPageLeast = 4096; ///< No page is shorter.

    bool fits(std::uint64_t turn, std::uint64_t done) const { return turn < done + lines_.depth(); }

    /// Tells peers that the share lies in the slot or the buffer.
    static void announce(FlagSlot& slot, std::uint64_t turn, std::uint64_t stamp,
                         std::uint64_t bytes) {
        slot.bytes = bytes;
        slot.stamp.store(stamp, std::memory_order_relaxed);
        slot.turn.store(turn + 1, std::memory_order_release);
    }

    /// Looks first at the peer that held the turn up last time, so that a rank that waits reads one
    /// word.
    bool ask(std::uint64_t turn) {
        if (lines_.ranks() == 1) {
            return true;
        }
        if (!fits(turn, done_by(last_))) {
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
        return fits(turn, least);
    }

    std::uint64_t done_by(std::uint32_t rank) const {
        return lines_.head(rank).done.load(std::memory_order_acquire);
    }

    FlagSlotLines<std::byte> lines_;
    std::uint32_t rank_ = 0;
    std::uint32_t turns_per_store_ = 1;
    std::uint32_t last_ = 0; ///< The peer whose word was the least when all were read.
    std::byte* buffers_ = nullptr;
    std::uint64_t slot_bytes_ = 0;
    std::vector<std::uint32_t> backed_; ///< Bytes of each buffer that have pages.
    std::uint64_t backed_everywhere_ = kFlagSlotInlineBytes; ///< The least of these, or a line.
    std::uint64_t done_by_all_ = 0;                          ///< The least word when all were read.
    /// Turns below this one fit; 0 until peers were asked, when all slots have pages.
    std::uint64_t at_once_below_ = 0;
    bool at_once_ = true;
    std::uint64_t done_ = 0;
    std::uint64_t stored_ = 0; ///< What the peers see of done_.
};

/// A reader's end of one peer's flag slot.
class FlagSlotReader {
  public:
    FlagSlotReader() = default;
    /// `rank`: the peer. `buffers`: where its buffers are mapped here.
    FlagSlotReader(const std::byte* lines, const FlagSlotShape& shape, std::uint32_t rank,
                   const std::byte* buffers)
        : lines_(lines, shape), rank_(rank), buffers_(buffers), slot_bytes_(shape.slot_bytes) {}

    /// Has the peer shared that turn? REQUIRES, as do stamp() and data(): this process has not said
    /// that it looks at that turn no more.
    bool holds(std::uint64_t turn) const { return slot(turn).holds(turn); }

    /// REQUIRES: holds(turn).
    std::uint64_t stamp(std::uint64_t turn) const {
        return slot(turn).stamp.load(std::memory_order_relaxed);
    }
    std::uint64_t bytes(std::uint64_t turn) const { return slot(turn).bytes; }
    const std::byte* data(std::uint64_t turn) const {
        const FlagSlot& at = slot(turn);
        return at.bytes <= kFlagSlotInlineBytes
                   ? at.payload.data()
                   : buffers_ + (turn & (lines_.depth() - 1)) * slot_bytes_;
    }

    /// Calls `look` with the stamps of all shares of the peer that are seen from turn `first` on,
    /// in no order.
    template <typename Look>
    void each_stamp(std::uint64_t first, Look look) const {
        for (std::uint32_t i = 0; i < lines_.depth(); ++i) {
            // A slot that is just being written may show the turn before and the stamp to come,
            // which is the stamp of a later turn.
            if (lines_.slot(i, rank_).turn.load(std::memory_order_acquire) > first) {
                look(lines_.slot(i, rank_).stamp.load(std::memory_order_relaxed));
            }
        }
    }

  private:
    const FlagSlot& slot(std::uint64_t turn) const { return lines_.slot(turn, rank_); }

    FlagSlotLines<const std::byte> lines_;
    std::uint32_t rank_ = 0;
    const std::byte* buffers_ = nullptr;
    std::uint64_t slot_bytes_ = 0;
};

} // namespace ucg::shm
