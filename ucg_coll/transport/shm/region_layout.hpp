// What lies where in the memory that a rank leases for its end of a group on one host.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shm/flag_slot.hpp"
#include "shm/heap.hpp"
#include "shm/peer_copy.hpp"
#include "shm/ring.hpp"
#include "shm/segment.hpp"
#include "shm/unit_word.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/collective.hpp"
#include "ucg_coll/graph/helped.hpp"

namespace ucg::transport {

/// Bytes that a rank asks a peer to copy, since the kernel does not let the rank itself (Asks).
/// Written by the rank, but for `answered`.
struct Ask {
    std::atomic<std::uint64_t> word;     ///< Number of the ask, from 1, times 2^16, + peer's index.
    std::atomic<std::uint64_t> answered; ///< The word, once that peer has copied.
    std::uint64_t offset;                ///< In the peer's buffer.
    std::uint64_t bytes;
    std::uint64_t place;    ///< Offset in the rank's segment, where they come from or go to.
    std::uint32_t sequence; ///< Of the collective.
    std::uint16_t buffer;   ///< graph::BufferKind
    std::uint16_t writes;   ///< 1: they go to the peer's buffer; 0: they come from there.
};

/// Lies at the start of a rank's lines.
struct alignas(2 * kCacheLine) RegionHead {
    std::atomic<std::uint32_t> rings_taken; ///< Numbers of rings to this rank that are taken.
    std::atomic<std::uint32_t> absent;      ///< 1 once the rank has broken off.
    shm::AccessTicket ticket;               ///< Written before the peers know of the region,
    shm::ProcessNumber process;             ///< as this is.
    std::atomic<std::uint64_t> asks;        ///< How often peers have asked this rank.
    Ask ask;                                ///< The rank's own.
    /// 1 while the rank is inside no unit of any collective but those for which it has asked peers.
    std::atomic<std::uint64_t> only_asks;
    std::atomic<std::int64_t> lookups_until; ///< Of peers in the rank's memory: shm::PageLookups.
};
static_assert(sizeof(RegionHead) == 2 * kCacheLine);

/// How many collectives of its group a rank has started, and which the last one was.
struct CallsSoFar {
    std::uint32_t started = 0;                           ///< Modulo 2^32.
    graph::Collective last = graph::Collective::barrier; ///< Means nothing if none was started.

    /// Returns both as CallCount has them. from() is the inverse.
    std::uint64_t word() const {
        return std::uint64_t{started} << 8U | static_cast<std::uint64_t>(last);
    }
    /// Returns the word for one more collective than `word` says, of which `last` is the last.
    static std::uint64_t next(std::uint64_t word, graph::Collective last) {
        return ((word | 255U) + 1) | static_cast<std::uint64_t>(last);
    }
    static CallsSoFar from(std::uint64_t word) {
        return {static_cast<std::uint32_t>(word >> 8U),
                static_cast<graph::Collective>(word & 255U)};
    }
    /// Returns whether `other` has a lower number, or the same one and a lower collective. Numbers
    /// wrap around. One that seems to be behind by more than ranks of a group can be apart, whose
    /// messages wait for room, is that of a later round.
    bool is_after(const CallsSoFar& other) const {
        constexpr std::uint32_t kApartMax = std::uint32_t{1} << 24U;
        const std::uint32_t behind = other.started - started;
        return behind == 0 ? last > other.last : behind > kApartMax;
    }
};

/// What a rank tells its peers of its collectives, for reports of those that do not end. Peers look
/// at it only then, so that it costs the rank a store to its own cache.
struct alignas(kCacheLine) CallCount {
    std::atomic<std::uint64_t> latest; ///< CallsSoFar::word()
    /// Of the host's first rank: CallsSoFar::word() of the latest collective that a rank of the
    /// host has reported, and of the latest that one has reported which awaits ranks of other
    /// hosts; 0: none.
    std::atomic<std::uint64_t> reported;
    std::atomic<std::uint64_t> reported_beyond;
};
static_assert(sizeof(CallCount) == kCacheLine);

/// One collective's buffers, as offsets in the segment of their owner, who alone writes it. Readers
/// are ordered after the writer by the message that told them to read.
struct alignas(kCacheLine) Exposed {
    /// The collective's sequence number + 1; where ranks help one another, with the plan above it
    /// (sequence_word() in help.cpp).
    std::atomic<std::uint64_t> sequence;
    std::array<std::atomic<std::uint64_t>, 3> place; ///< By BufferKind; ShmTransport::place_of().
    /// Addresses of input and output in the owner's process, where ranks help one another.
    std::array<std::atomic<std::uint64_t>, 2> address;
};
static_assert(sizeof(Exposed) == kCacheLine);

/// Offsets in the two leases of a rank, and their lengths. One lease is close to those of the other
/// ranks, if there is room, and has lines, with pages from the beginning (the head, the count of
/// collectives, the table of exposed buffers, the number of each peer's ring, a mark of each rank
/// that has left, the first rings and, of the host's first rank, the lines of all flag slots), and
/// the buffers of the own flag slot. The other is for pairs of ranks: further rings, and all their
/// buffers. Buffers and further rings get pages when they are first used.
class RegionLayout {
  public:
    RegionLayout(const shm::RingShape& ring, const shm::FlagSlotShape& flag_slot,
                 std::uint32_t outstanding_max, std::uint32_t rings_at_first)
        : ring_(ring), flag_slots_(flag_slot), outstanding_max_(outstanding_max),
          rings_at_first_(std::min(flag_slot.ranks - 1, rings_at_first)) {}

    /// Returns whether each pair of ranks has its rings from the beginning, numbered by
    /// ring_index().
    bool all_at_first() const { return rings_at_first_ == flag_slots_.ranks - 1; }
    std::uint32_t rings_at_first() const { return rings_at_first_; }
    /// Returns the number of the ring from `sender` to `receiver` in the receiver's region, which
    /// has one for each rank but its owner.
    static std::uint32_t ring_index(std::uint32_t receiver, std::uint32_t sender) {
        return sender - (sender > receiver ? 1 : 0);
    }

    // Offsets in the first lease.

    static constexpr std::uint64_t call_count() { return sizeof(RegionHead); }
    /// Of the entries of Exposed, one for each outstanding collective.
    static constexpr std::uint64_t exposed() { return call_count() + sizeof(CallCount); }
    /// Of the numbers of the rings that peers send by, from 1, by the peer's index; 0: there is
    /// none.
    std::uint64_t numbers() const {
        return exposed() + outstanding_max_ * std::uint64_t{sizeof(Exposed)};
    }
    /// Of the marks that ranks, by their index, set when they look at nothing of this rank any
    /// more.
    std::uint64_t left_marks() const {
        return numbers() + flag_slots_.ranks * std::uint64_t{sizeof(std::uint32_t)};
    }
    /// Of the words for parts: one for each part of the rank in each collective, where so many
    /// ranks help one another.
    std::uint64_t unit_words() const {
        return round_up(left_marks() + flag_slots_.ranks * sizeof(shm::LeftMark),
                        sizeof(shm::UnitWord));
    }
    std::uint32_t unit_words_each() const {
        return flag_slots_.ranks <= static_cast<std::uint32_t>(graph::kHelpedRanksMax)
                   ? flag_slots_.ranks
                   : 0;
    }
    std::uint64_t first_ring(std::uint32_t number) const {
        const std::uint64_t words = std::uint64_t{outstanding_max_} * unit_words_each();
        return round_up(unit_words() + words * sizeof(shm::UnitWord), 2 * kCacheLine) +
               number * ring_.lines_bytes();
    }
    std::uint64_t flag_slot_lines() const { return first_ring(rings_at_first_); }
    /// Returns the bytes of the lines of the rank with that index on the host.
    std::uint64_t lines_bytes(std::size_t index) const {
        return flag_slot_lines() + (index == 0 ? flag_slots_.lines_bytes() : 0);
    }

    /// The buffers begin half a page behind a page's start: processors prefetch within a page and
    /// learn it at the start of one, so a share of a page that lies across two is read as two
    /// streams.
    std::uint64_t flag_slot_buffers(std::size_t index) const {
        return round_up(lines_bytes(index), shm::page_bytes()) + shm::page_bytes() / 2;
    }
    /// Returns the length of the first lease.
    std::uint64_t close_bytes(std::size_t index) const {
        return flag_slot_buffers(index) + flag_slots_.buffers_bytes();
    }

    // Offsets in the other lease.

    /// REQUIRES: number >= rings_at_first().
    std::uint64_t further_ring(std::uint32_t number) const {
        return (number - rings_at_first_) * ring_.lines_bytes();
    }
    std::uint64_t ring_buffers(std::uint32_t ring_index) const {
        return round_up(further_ring(rings_max()), shm::page_bytes()) +
               ring_index * ring_.buffers_bytes();
    }
    /// Returns the length of the other lease. It is not 0, which would be no lease: a rank alone
    /// has a page.
    std::uint64_t pairs_bytes() const {
        return std::max(ring_buffers(flag_slots_.ranks - 1), shm::page_bytes());
    }

  private:
    /// Returns how many rings a rank may number: both ranks of a pair may take a number, and one of
    /// the two is lost.
    std::uint32_t rings_max() const {
        return all_at_first() ? rings_at_first_ : 2 * (flag_slots_.ranks - 1);
    }

    shm::RingShape ring_;
    shm::FlagSlotShape flag_slots_;
    std::uint32_t outstanding_max_;
    std::uint32_t rings_at_first_;
};

} // namespace ucg::transport
