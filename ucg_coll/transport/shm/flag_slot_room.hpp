// The own flag slot and those of all peers of the host: what is shared, which peers are woken, and
// when to suspect that a peer does something else.
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

/// After so many looks in vain a rank asks whether the peer runs another collective: seldom enough
/// to cost nothing, and long before anybody falls asleep. A prime: of several shares that are
/// looked at one after the other each has its time to ask.
inline constexpr std::uint32_t kLooksInVain = 1021;
/// Like kLooksInVain, for a rank that sleeps for milliseconds between its looks.
inline constexpr std::uint32_t kLooksAsleep = 31;

/// Returns the name of a collective that uses the flag slots, which contradict() compares with the
/// tag of a message.
inline std::uint64_t stamp_of(const FlagSlotSequence& sequence) {
    return (std::uint64_t{sequence.collective} << 32) | (std::uint64_t{sequence.plan} << 1U);
}

/// What a rank does with the flag slots of its host. Peers are named by their index on the host.
class FlagSlotRoom {
  public:
    /// `lines` are those of all flag slots, as mapped here; `buffers` are the own ones.
    FlagSlotRoom(const shm::FlagSlotShape& shape, std::uint32_t self, std::byte* lines,
                 std::byte* buffers, shm::Heap& heap)
        : heap_(&heap), writer_(lines, shape, self, buffers), shape_(shape), lines_(lines, shape),
          peers_(shape.ranks) {}

    /// Makes a peer known: `buffers` and `bell` are the peer's, as mapped here.
    void connect(std::uint32_t index, const std::byte* buffers, shm::Doorbell& bell) {
        peers_[index].buffers = buffers;
        bells_.push_back(&bell);
    }

    /// FlagSlots::share(). Wakes peers that sleep. `waits` as in FlagSlotWriter::write().
    bool share(const FlagSlotSequence& sequence, const std::byte* data, std::uint64_t bytes,
               bool waits) {
        waits_for_room_ = !writer_.has_room(sequence.sequence);
        if (waits_for_room_ || (!writer_.prepared(bytes) && !prepare(sequence, bytes))) {
            return false;
        }
        writer_.write(sequence.sequence, stamp_of(sequence), data, bytes, waits);
        ring(shm::Awaits::message);
        return true;
    }

    /// FlagSlots::poll(). Stops at a peer that has shared nothing under that sequence number,
    /// something of another collective, or less. `index_of(rank)` is the peer's index.
    template <typename IndexOf>
    std::size_t poll(const FlagSlotSequence& sequence, std::span<const FlagSlotRead> reads,
                     const std::byte** places, IndexOf index_of) const {
        const std::uint64_t own = stamp_of(sequence);
        const shm::FlagSlot* const slots = lines_.slots(sequence.sequence);
        const shm::FlagSlot* const ahead = lines_.slots(sequence.sequence + kSequencesAhead);
        std::size_t seen = 0;
        for (; seen < reads.size(); ++seen) {
            const std::uint32_t index = index_of(reads[seen].owner);
            const shm::FlagSlot& slot = slots[index];
            if (!slot.holds(sequence.sequence) || !fits(slot, own, reads[seen].bytes)) {
                break;
            }
            if (slot.bytes > shm::kFlagSlotInlineBytes) {
                places[seen] = reader(index).data(sequence.sequence);
                shm::prefetch_short_read(places[seen], reads[seen].bytes);
            } else {
                places[seen] = slot.payload.data();
                __builtin_prefetch(&ahead[index]);
            }
        }
        return seen;
    }

    /// Returns whether the share is short and nothing holds it up.
    bool exchanges_at_once(const FlagSlotExchange& exchange) const {
        return writer_.writes_at_once(exchange.sequence.sequence, exchange.bytes);
    }
    /// From now on exchanges_at_once() returns false.
    void never_at_once() { writer_.never_at_once(); }
    /// FlagSlots::exchange() without a call, so that it takes few instructions. If it returns less
    /// than there are reads, poll() is still to be called. Afterwards wakes() tells whether to
    /// wake() peers. REQUIRES: exchanges_at_once(exchange).
    template <typename IndexOf>
    std::size_t exchange_at_once(const FlagSlotExchange& exchange, IndexOf index_of) {
        const std::uint64_t sequence = exchange.sequence.sequence;
        const std::uint64_t own = stamp_of(exchange.sequence);
        shm::FlagSlot* const slots = lines_.slots(sequence);
        writer_.write_at_once(slots, sequence, own, exchange.data, exchange.bytes);
        const std::size_t count = exchange.reads.size();
        std::uint32_t looks = exchange.looks;
        for (std::size_t i = 0; i < count; ++i) {
            const FlagSlotRead& read = exchange.reads.data()[i];
            const shm::FlagSlot& slot = slots[index_of(read.owner)];
            if (!comes(slot, sequence, looks) || !fits(slot, own, read.bytes) ||
                slot.bytes > shm::kFlagSlotInlineBytes) {
                return i;
            }
            exchange.places[i] = slot.payload.data();
        }
        return count;
    }

    /// Looks for what an exchange reads as often as `exchange.looks` allows, until all is there;
    /// poll() then says what is.
    template <typename IndexOf>
    void look_for(const FlagSlotExchange& exchange, IndexOf index_of) const {
        const shm::FlagSlot* const slots = lines_.slots(exchange.sequence.sequence);
        std::uint32_t looks = exchange.looks;
        for (const FlagSlotRead& read : exchange.reads) {
            if (!comes(slots[index_of(read.owner)], exchange.sequence.sequence, looks)) {
                return;
            }
        }
    }

    /// Returns whether threads of the host's ranks sleep, so that a rank that has shared something
    /// must wake() them. To be called after the share.
    bool wakes() const {
        // As the doorbell itself: the store before, the load after.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return lines_.sleepers().count.load(std::memory_order_relaxed) != 0;
    }
    /// Rings the doorbells of all peers.
    void wake(shm::Awaits published) {
        for (shm::Doorbell* bell : bells_) {
            bell->ring(published);
        }
    }

    /// FlagSlots::finish().
    void finish(std::uint64_t sequence) {
        if (writer_.finish(sequence)) {
            ring(shm::Awaits::room);
        }
    }

    /// Says that so many threads of this process sleep from now on, or are about to. To be called
    /// before they announce that at the doorbell.
    void sleeping(std::uint64_t threads) {
        const std::uint64_t before = sleeping_.load(std::memory_order_relaxed);
        if (threads != before) {
            lines_.sleepers().count.fetch_add(threads - before, std::memory_order_seq_cst);
            sleeping_.store(threads, std::memory_order_relaxed);
        }
    }

    /// Returns whether the last share() had no room.
    bool waits_for_room() const { return waits_for_room_; }
    /// Returns the peer that held it up.
    std::uint32_t last_peer() const { return writer_.last_peer(); }

    /// To be called after a look that found nothing. Returns whether it is time to ask if the peer
    /// contradicts().
    bool suspects(const FlagSlotSequence& sequence, std::uint32_t index) {
        return is_time_to_ask(++peers_[index].looks) || reader(index).holds(sequence.sequence) ||
               told_asleep();
    }
    /// Like the above, after a share() that had no room.
    bool suspects() { return is_time_to_ask(++refusals_) || loss() != shm::Loss::none; }

    /// Returns whether a thread of this process sleeps between its looks.
    bool sleeps() const { return sleeping_.load(std::memory_order_relaxed) != 0; }
    /// Returns whether a thread of this process sleeps and the group cannot go on. A thread that
    /// sleeps has few looks to count, and so learns of a loss at once.
    bool told_asleep() const { return sleeps() && loss() != shm::Loss::none; }
    /// Returns whether a caller that has looked in vain `looks` times is to ask about its peer.
    bool is_time_to_ask(std::uint32_t looks) const {
        return (sleeps() ? looks % kLooksAsleep : looks % kLooksInVain) == 0;
    }

    /// Returns whether this rank has given pages to its buffers.
    bool has_backed() const { return has_backed_; }

    /// Returns whether there is now what this rank waits for: the peer's share with that sequence
    /// number, or room for the own one.
    bool has_come(const FlagSlotSequence& sequence, std::uint32_t index, shm::Awaits awaited) {
        return awaited == shm::Awaits::room ? writer_.has_room(sequence.sequence)
                                            : reader(index).holds(sequence.sequence);
    }

    /// Returns why the group cannot go on, by what any of its ranks has found.
    shm::Loss loss() const {
        return static_cast<shm::Loss>(lines_.sleepers().lost.load(std::memory_order_relaxed));
    }
    /// For shm::lost_meanwhile().
    const std::atomic<std::uint64_t>& loss_word() const { return lines_.sleepers().lost; }
    /// Tells all ranks that the group cannot go on.
    void lose(shm::Loss why) {
        lines_.sleepers().lost.store(static_cast<std::uint64_t>(why), std::memory_order_relaxed);
    }

    /// Returns whether the peer has shared something else under that sequence number, or has used
    /// another number for that collective, with another plan.
    bool contradicts(const FlagSlotSequence& sequence, std::uint32_t index,
                     std::uint64_t bytes) const;

    /// Calls `look` with the stamps of all shares of the peer with which this rank is not done.
    template <typename Look>
    void each_stamp(std::uint32_t index, Look look) const {
        reader(index).each_stamp(writer_.done(), look);
    }

  private:
    /// So many sequence numbers ahead poll() prefetches. A rank that only reads, as a leaf of a
    /// bcast does, often has owners ahead of it by nearly as many numbers as a flag slot has slots:
    /// the transfers of their next slots then overlap (8 bytes among two cores apart take three
    /// quarters of the time). A slot that its owner has yet to write is in the cache since the last
    /// time around, and the prefetch does nothing. Shares in buffers gain nothing.
    static constexpr std::uint64_t kSequencesAhead = 4;

    /// Returns whether the share with that sequence number is there at one of 1 + `looks` looks,
    /// and subtracts those that it took. It does not pause between them, which would take longer
    /// than a line takes between cores.
    static bool comes(const shm::FlagSlot& slot, std::uint64_t sequence, std::uint32_t& looks) {
        for (; !slot.holds(sequence); --looks) {
            if (looks == 0) {
                return false;
            }
        }
        return true;
    }

    /// Returns whether the share is of that collective and plan and has as many bytes.
    static bool fits(const shm::FlagSlot& slot, std::uint64_t stamp, std::uint64_t bytes) {
        return slot.stamp.load(std::memory_order_relaxed) == stamp && slot.bytes >= bytes;
    }

    /// Gives pages to the buffer of that sequence number. Returns whether it could; else the group
    /// is lost.
    bool prepare(const FlagSlotSequence& sequence, std::uint64_t bytes);

    void ring(shm::Awaits published) {
        if (wakes()) [[unlikely]] {
            wake(published);
        }
    }

    /// What is known of a peer. Small, since a host may have a thousand of them.
    struct Peer {
        const std::byte* buffers = nullptr;
        std::uint32_t looks = 0; ///< Those in vain.
    };

    shm::FlagSlotReader reader(std::uint32_t index) const {
        return {lines_.start(), shape_, index, peers_[index].buffers};
    }

    shm::Heap* heap_; ///< The own one, not owned; it outlives this.
    shm::FlagSlotWriter writer_;
    shm::FlagSlotShape shape_;
    shm::FlagSlotLines<std::byte> lines_;
    std::vector<Peer> peers_; ///< By index on the host; the own entry is unused.
    std::vector<shm::Doorbell*> bells_;
    std::atomic<std::uint64_t> sleeping_ =
        0; ///< What sleeping() was told last; read without a lock.
    bool waits_for_room_ = false;
    std::uint32_t refusals_ = 0; ///< Shares that had no room.
    bool has_backed_ = false;
};

} // namespace ucg::transport
