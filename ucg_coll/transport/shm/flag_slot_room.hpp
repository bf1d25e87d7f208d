// The own flag slot and those of all peers of the host: what is shared, who is told, and when to
// suspect that a peer does something else.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "shm/doorbell.hpp"
#include "shm/flag_slot.hpp"
#include "shm/heap.hpp"
#include "ucg_coll/transport/shm/message_queue.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// What waits in vain looks after so many looks for a peer that runs another collective: seldom
/// enough to cost nothing, and long before anybody falls asleep. A prime: of several turns that are
/// looked at one after the other each has its time to ask.
inline constexpr std::uint32_t kLooksInVain = 1021;
/// The same of a rank that sleeps for milliseconds between its looks.
inline constexpr std::uint32_t kLooksAsleep = 31;

/// The name of a turn, which contradict() compares with that of a message.
inline std::uint64_t stamp_of(const FlagSlotTurn& turn) {
    return (std::uint64_t{turn.sequence} << 32) | (std::uint64_t{turn.plan} << 1U);
}

class FlagSlotRoom {
  public:
    /// `lines`: of all flag slots, as mapped here. `buffers`: the own ones. Peers are named by
    /// their index on the host.
    FlagSlotRoom(const shm::FlagSlotShape& shape, std::uint32_t self, std::byte* lines,
                 std::byte* buffers, shm::Heap& heap)
        : heap_(&heap), writer_(lines, shape, self, buffers), shape_(shape), lines_(lines, shape),
          peers_(shape.ranks) {}

    /// `buffers` and `bell`: the peer's, as mapped here.
    void connect(std::uint32_t index, const std::byte* buffers, shm::Doorbell& bell) {
        peers_[index].buffers = buffers;
        bells_.push_back(&bell);
    }

    bool share(const FlagSlotTurn& turn, const std::byte* data, std::uint64_t bytes) {
        waits_for_room_ = !writer_.has_room(turn.turn);
        if (waits_for_room_ || (!writer_.prepared(bytes) && !prepare(turn, bytes))) {
            return false;
        }
        writer_.write(turn.turn, stamp_of(turn), data, bytes);
        ring(shm::Awaits::message);
        return true;
    }

    /// FlagSlots::look(). Stops at a peer that has shared nothing in that turn, something of
    /// another collective, or less. `index_of(rank)` is the peer's index.
    template <typename IndexOf>
    std::size_t look(const FlagSlotTurn& turn, std::span<const FlagSlotRead> reads,
                     const std::byte** places, IndexOf index_of) const {
        const std::uint64_t own = stamp_of(turn);
        const shm::FlagSlot* const slots = lines_.slots(turn.turn);
        const shm::FlagSlot* const ahead = lines_.slots(turn.turn + kTurnsAhead);
        std::size_t seen = 0;
        for (; seen < reads.size(); ++seen) {
            const std::uint32_t index = index_of(reads[seen].owner);
            const shm::FlagSlot& slot = slots[index];
            if (!slot.holds(turn.turn) || !fits(slot, own, reads[seen].bytes)) {
                break;
            }
            if (slot.bytes > shm::kFlagSlotInlineBytes) {
                places[seen] = reader(index).data(turn.turn);
            } else {
                places[seen] = slot.payload.data();
                __builtin_prefetch(&ahead[index]);
            }
        }
        return seen;
    }

    /// Does nothing hold up a short share?
    bool exchanges_at_once(const FlagSlotExchange& exchange) const {
        return writer_.writes_at_once(exchange.turn.turn, exchange.bytes);
    }
    /// From now on never.
    void never_at_once() { writer_.never_at_once(); }
    /// FlagSlots::exchange(), which calls nothing, so that it takes few instructions. Less than
    /// there are reads: look() is still to be called. Afterwards wakes() tells whether to wake()
    /// peers. REQUIRES: exchanges_at_once(exchange).
    template <typename IndexOf>
    std::size_t exchange_at_once(const FlagSlotExchange& exchange, IndexOf index_of) {
        const std::uint64_t turn = exchange.turn.turn;
        const std::uint64_t own = stamp_of(exchange.turn);
        shm::FlagSlot* const slots = lines_.slots(turn);
        writer_.write_at_once(slots, turn, own, exchange.data, exchange.bytes);
        const std::size_t count = exchange.reads.size();
        std::uint32_t looks = exchange.looks;
        for (std::size_t i = 0; i < count; ++i) {
            const FlagSlotRead& read = exchange.reads.data()[i];
            const shm::FlagSlot& slot = slots[index_of(read.owner)];
            if (!comes(slot, turn, looks) || !fits(slot, own, read.bytes) ||
                slot.bytes > shm::kFlagSlotInlineBytes) {
                return i;
            }
            exchange.places[i] = slot.payload.data();
        }
        return count;
    }

    /// Looks for what an exchange reads as often as it may; look() then says what is there.
    template <typename IndexOf>
    void look_for(const FlagSlotExchange& exchange, IndexOf index_of) const {
        const shm::FlagSlot* const slots = lines_.slots(exchange.turn.turn);
        std::uint32_t looks = exchange.looks;
        for (const FlagSlotRead& read : exchange.reads) {
            if (!comes(slots[index_of(read.owner)], exchange.turn.turn, looks)) {
                return;
            }
        }
    }

    /// Do peers sleep, so that who has shared something must tell them? After the share.
    bool wakes() const {
        // As the doorbell itself: the store before, the load after.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return lines_.sleepers().count.load(std::memory_order_relaxed) != 0;
    }
    void wake(shm::Awaits published) {
        for (shm::Doorbell* bell : bells_) {
            bell->ring(published);
        }
    }

    void finish(std::uint64_t turn) {
        if (writer_.finish(turn)) {
            ring(shm::Awaits::room);
        }
    }

    /// So many threads of this process sleep from now on, or are about to. To be said before their
    /// announcements at the doorbell.
    void sleeping(std::uint64_t threads) {
        const std::uint64_t before = sleeping_.load(std::memory_order_relaxed);
        if (threads != before) {
            lines_.sleepers().count.fetch_add(threads - before, std::memory_order_seq_cst);
            sleeping_.store(threads, std::memory_order_relaxed);
        }
    }

    /// Had the last share() no room?
    bool waits_for_room() const { return waits_for_room_; }
    /// Of the peers, the one that held it up.
    std::uint32_t last_peer() const { return writer_.last_peer(); }

    /// After a look that found nothing: is it time to ask whether the peer contradicts()?
    bool suspects(const FlagSlotTurn& turn, std::uint32_t index) {
        return is_time_to_ask(++peers_[index].looks) || reader(index).holds(turn.turn) ||
               told_asleep();
    }
    /// After a share() that had no room.
    bool suspects() { return is_time_to_ask(++refusals_) || loss() != shm::Loss::none; }

    /// Does a thread of this process sleep between its looks?
    bool sleeps() const { return sleeping_.load(std::memory_order_relaxed) != 0; }
    /// Who sleeps has few looks to count, and learns of a loss at once.
    bool told_asleep() const { return sleeps() && loss() != shm::Loss::none; }
    /// Of whoever counts its own looks in vain, after so many of them.
    bool is_time_to_ask(std::uint32_t looks) const {
        return (sleeps() ? looks % kLooksAsleep : looks % kLooksInVain) == 0;
    }

    /// Has this rank backed pages of its buffers?
    bool has_backed() const { return has_backed_; }

    /// Is there now what a turn waits for: the peer's share, or room for the own one?
    bool has_come(const FlagSlotTurn& turn, std::uint32_t index, shm::Awaits awaited) {
        return awaited == shm::Awaits::room ? writer_.has_room(turn.turn)
                                            : reader(index).holds(turn.turn);
    }

    /// Can the group not go on, by what any of its ranks has found?
    shm::Loss loss() const {
        return static_cast<shm::Loss>(lines_.sleepers().lost.load(std::memory_order_relaxed));
    }
    /// For shm::lost_meanwhile().
    const std::atomic<std::uint64_t>& loss_word() const { return lines_.sleepers().lost; }
    /// All ranks learn of it.
    void lose(shm::Loss why) {
        lines_.sleepers().lost.store(static_cast<std::uint64_t>(why), std::memory_order_relaxed);
    }

    /// Has the peer shared something else in that turn, or taken another for that collective?
    bool contradicts(const FlagSlotTurn& turn, std::uint32_t index, std::uint64_t bytes) const;

    /// Calls `look` with the stamps of all turns that the peer has shared and this rank is not done
    /// with.
    template <typename Look>
    void each_stamp(std::uint32_t index, Look look) const {
        reader(index).each_stamp(writer_.done(), look);
    }

  private:
    /// Who only reads, as a leaf of a bcast does, often has owners ahead of it by nearly as many
    /// turns as a flag slot has: the transfers of their next slots then overlap (8 bytes among two
    /// cores apart take three quarters of the time). A slot that its owner has yet to write is here
    /// since the last time around, and the prefetch does nothing. Shares in buffers gain nothing.
    static constexpr std::uint64_t kTurnsAhead = 4;

    /// Is the turn there at one of 1 + `looks` looks? Takes from those. Without a pause between
    /// them, which would be longer than a line takes between cores.
    static bool comes(const shm::FlagSlot& slot, std::uint64_t turn, std::uint32_t& looks) {
        for (; !slot.holds(turn); --looks) {
            if (looks == 0) {
                return false;
            }
        }
        return true;
    }

    static bool fits(const shm::FlagSlot& slot, std::uint64_t stamp, std::uint64_t bytes) {
        return slot.stamp.load(std::memory_order_relaxed) == stamp && slot.bytes >= bytes;
    }

    bool prepare(const FlagSlotTurn& turn, std::uint64_t bytes);

    void ring(shm::Awaits published) {
        if (wakes()) [[unlikely]] {
            wake(published);
        }
    }

    /// Little: a host may have a thousand of them.
    struct Peer {
        const std::byte* buffers = nullptr;
        std::uint32_t looks = 0; ///< In vain.
    };

    shm::FlagSlotReader reader(std::uint32_t index) const {
        return {lines_.start(), shape_, index, peers_[index].buffers};
    }

    shm::Heap* heap_; ///< The own one; it outlives this.
    shm::FlagSlotWriter writer_;
    shm::FlagSlotShape shape_;
    shm::FlagSlotLines<std::byte> lines_;
    std::vector<Peer> peers_; ///< By index on the host; the own entry is unused.
    std::vector<shm::Doorbell*> bells_;
    std::atomic<std::uint64_t> sleeping_ =
        0; ///< What sleeping() was told last; read without a lock.
    bool waits_for_room_ = false;
    std::uint32_t refusals_ = 0;
    bool has_backed_ = false;
};

} // namespace ucg::transport
