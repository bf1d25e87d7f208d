// A board: what one process shares with several others at once. It lies in memory leased by its
// owner, who writes each share once; all the others read it there.
//
// Threads: one owner (BoardWriter) and any number of readers, each a process or a thread.
// Layout (BoardShape): how far the owner itself has read the boards of its peers, then `depth`
// slots of one cache line each, then `depth` payload buffers of `slot_bytes`. Invariants, argued in
// PROTOCOL.md: all is written by the owner alone; the slot and buffer of turn t are written only
// when every peer has said that it looks at no turn before t - depth + 1; memory of zeros is an
// empty board.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "shm/copy.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// Bytes that travel in the slot's line itself, beside the word that announces them.
inline constexpr std::uint64_t kBoardInlineBytes = 40;

/// One line carries payload and turn together: a short share costs one transfer to each reader.
struct alignas(kCacheLine) BoardSlot {
    std::atomic<std::uint64_t> turn;  ///< t + 1 once turn t is there.
    std::atomic<std::uint64_t> stamp; ///< The turn's name; the board does not look at it.
    std::uint64_t bytes;
    std::array<std::byte, kBoardInlineBytes> payload;
};
static_assert(sizeof(BoardSlot) == kCacheLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "atomics between processes");

/// Alone on two lines, since processors fetch lines in pairs: peers read the slots all the time,
/// and this seldom.
struct alignas(2 * kCacheLine) BoardHead {
    std::atomic<std::uint64_t> done; ///< The owner looks at no turn below this one any more.
};

/// The dimensions of a board, equal on all sides.
struct BoardShape {
    std::uint32_t depth = 0;      ///< Slots; a power of two.
    std::uint32_t slot_bytes = 0; ///< The longest share; a multiple of the cache line.

    std::uint64_t board_bytes() const {
        return sizeof(BoardHead) + depth * (sizeof(BoardSlot) + std::uint64_t{slot_bytes});
    }
    bool operator==(const BoardShape&) const = default;
};

/// The owner's end.
class BoardWriter {
  public:
    BoardWriter() = default;
    /// `board`: in the own memory, at two cache lines.
    BoardWriter(std::byte* board, const BoardShape& shape)
        : head_(reinterpret_cast<BoardHead*>(board)),
          slots_(reinterpret_cast<BoardSlot*>(board + sizeof(BoardHead))),
          buffers_(board + sizeof(BoardHead) + shape.depth * sizeof(BoardSlot)), shape_(shape) {}

    /// `board`: that of a peer, who reads this one, as it is mapped here.
    void add_peer(const std::byte* board) {
        peers_.push_back(reinterpret_cast<const BoardHead*>(board));
    }

    /// The slot of that turn may be written. Reads the peers' words only when what is known of them
    /// does not suffice.
    bool has_room(std::uint64_t turn) { return fits(turn, done_by_all_) || ask(turn); }

    /// Which peer, counted as they were added, holds up the turn that had no room.
    std::size_t last_peer() const { return last_; }

    /// Shares a turn. REQUIRES: has_room(turn), bytes <= slot_bytes.
    void write(std::uint64_t turn, std::uint64_t stamp, const std::byte* data,
               std::uint64_t bytes) {
        const std::uint64_t index = turn & (shape_.depth - 1);
        BoardSlot& slot = slots_[index];
        if (bytes <= kBoardInlineBytes) {
            copy_short(slot.payload.data(), data, bytes);
        } else {
            std::memcpy(buffers_ + index * shape_.slot_bytes, data, bytes);
        }
        slot.bytes = bytes;
        slot.stamp.store(stamp, std::memory_order_relaxed);
        slot.turn.store(turn + 1, std::memory_order_release);
    }

    /// The owner looks at no turn below `turn` any more; rises. True if peers can see more of that
    /// than before. It is stored once for several turns, since each store takes the line from a
    /// peer that waits for it; nobody is stuck for want of the rest, see PROTOCOL.md.
    bool finish(std::uint64_t turn) {
        done_ = turn;
        if (turn - stored_ < turns_per_store()) {
            return false;
        }
        stored_ = turn;
        head_->done.store(turn, std::memory_order_release);
        return true;
    }

    /// The least turn that the owner may still look at.
    std::uint64_t done() const { return done_; }

  private:
    static constexpr std::uint32_t kStoresPerBoard = 4;

    std::uint32_t turns_per_store() const { return std::max(1U, shape_.depth / kStoresPerBoard); }
    bool fits(std::uint64_t turn, std::uint64_t done) const { return turn < done + shape_.depth; }

    /// Looks first at the peer for whom it did not suffice last time: who waits reads one word.
    bool ask(std::uint64_t turn) {
        if (peers_.empty()) {
            return true;
        }
        if (!fits(turn, peers_[last_]->done.load(std::memory_order_acquire))) {
            return false;
        }
        std::uint64_t least = ~std::uint64_t{0};
        for (std::size_t i = 0; i < peers_.size(); ++i) {
            const std::uint64_t done = peers_[i]->done.load(std::memory_order_acquire);
            last_ = done < least ? i : last_;
            least = std::min(least, done);
        }
        done_by_all_ = least;
        return fits(turn, least);
    }

    BoardHead* head_ = nullptr;
    BoardSlot* slots_ = nullptr;
    std::byte* buffers_ = nullptr;
    BoardShape shape_;
    std::vector<const BoardHead*> peers_;
    std::uint64_t done_by_all_ = 0; ///< The least of the peers' words when they were last read.
    std::size_t last_ = 0;          ///< The peer that had it.
    std::uint64_t done_ = 0;
    std::uint64_t stored_ = 0; ///< What the peers see of done_.
};

/// A reader's end of one peer's board.
class BoardReader {
  public:
    BoardReader() = default;
    /// `board`: where the peer's board is mapped here.
    BoardReader(const std::byte* board, const BoardShape& shape)
        : slots_(reinterpret_cast<const BoardSlot*>(board + sizeof(BoardHead))),
          buffers_(board + sizeof(BoardHead) + shape.depth * sizeof(BoardSlot)), shape_(shape) {}

    /// The peer has shared that turn. REQUIRES, as do stamp() and data(): this process has not said
    /// that it looks at it no more.
    bool holds(std::uint64_t turn) const {
        return slot(turn).turn.load(std::memory_order_acquire) == turn + 1;
    }

    /// REQUIRES: holds(turn).
    std::uint64_t stamp(std::uint64_t turn) const {
        return slot(turn).stamp.load(std::memory_order_relaxed);
    }
    std::uint64_t bytes(std::uint64_t turn) const { return slot(turn).bytes; }
    const std::byte* data(std::uint64_t turn) const {
        const BoardSlot& at = slot(turn);
        return at.bytes <= kBoardInlineBytes
                   ? at.payload.data()
                   : buffers_ + (turn & (shape_.depth - 1)) * shape_.slot_bytes;
    }

    /// Calls `look` with the stamps of all that the peer is known to have shared from turn `first`
    /// on, in no order.
    template <typename Look>
    void each_stamp(std::uint64_t first, Look look) const {
        for (std::uint32_t i = 0; i < shape_.depth; ++i) {
            // A slot that is just being written may show the turn before and the stamp to come,
            // which is the stamp of a later turn.
            if (slots_[i].turn.load(std::memory_order_acquire) > first) {
                look(slots_[i].stamp.load(std::memory_order_relaxed));
            }
        }
    }

  private:
    const BoardSlot& slot(std::uint64_t turn) const { return slots_[turn & (shape_.depth - 1)]; }

    const BoardSlot* slots_ = nullptr;
    const std::byte* buffers_ = nullptr;
    BoardShape shape_;
};

} // namespace ucg::shm
