// Work that several ranks divide, unit by unit: a word from which each rank takes the next unit and
// in which each says that one is done (PROTOCOL.md, "Units that whoever comes does").
//
// The word lies in the memory of the rank whose part of a collective it counts. Memory of zeros is
// a word that belongs to no collective.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// Counts the units taken and done of one part of a collective, in one word. Any thread of any
/// process that maps it.
class UnitWord {
  public:
    static constexpr unsigned kCountBits = 20;
    static constexpr std::uint64_t kUnitsMax = (std::uint64_t{1} << kCountBits) - 1;

    /// Names the collective to which the word belongs: its sequence number, as far as there are
    /// bits.
    struct Name {
        std::uint64_t bits = 0;

        static Name of(std::uint32_t sequence) { return {(sequence & kNameMask) << 1 | 1}; }
        bool operator==(const Name&) const = default;
    };

    struct Counts {
        std::uint64_t taken = 0;
        std::uint64_t done = 0;
        bool closed = false; ///< No unit can be taken any more.
    };

    /// Begins the part of that collective. For the owner alone. Release: a rank that looks for an
    /// earlier collective and finds this name knows that the earlier one is over, with all that was
    /// written in it.
    void open(Name name) { word_.store(name.bits << kNameShift, std::memory_order_release); }

    // For any rank.

    /// Returns what the word says; nothing if it belongs to another collective. `order`: acquire,
    /// or sequentially consistent.
    std::optional<Counts> look(Name name,
                               std::memory_order order = std::memory_order_acquire) const {
        return counts_of(word_.load(order), name);
    }

    /// Takes the next of `units` and returns it; the caller now owes it. Returns nothing if all are
    /// taken, or if the word is closed or belongs to another collective.
    std::optional<std::uint32_t> take(Name name, std::uint64_t units) {
        std::uint64_t word = word_.load(std::memory_order_acquire);
        for (;;) {
            const std::optional<Counts> counts = counts_of(word, name);
            if (!counts || counts->closed || counts->taken >= units) {
                return std::nullopt;
            }
            if (word_.compare_exchange_weak(word, word + kOneTaken, std::memory_order_acq_rel,
                                            std::memory_order_acquire)) {
                return static_cast<std::uint32_t>(counts->taken);
            }
        }
    }

    /// Says that the caller has done a unit that it took. Returns how many are done.
    std::uint64_t unit_done() {
        return (word_.fetch_add(1, std::memory_order_acq_rel) & kUnitsMax) + 1;
    }

    /// From now on no unit of that collective can be taken.
    void close(Name name) {
        std::uint64_t word = word_.load(std::memory_order_acquire);
        while (counts_of(word, name) &&
               !word_.compare_exchange_weak(word, word | kClosed, std::memory_order_seq_cst,
                                            std::memory_order_acquire)) {
        }
    }

  private:
    static constexpr std::uint64_t kOneTaken = std::uint64_t{1} << kCountBits;
    static constexpr std::uint64_t kClosed = std::uint64_t{1} << 2 * kCountBits;
    static constexpr unsigned kNameShift = 2 * kCountBits + 1;
    static constexpr std::uint32_t kNameMask = (1U << (64 - kNameShift - 1)) - 1;

    static std::optional<Counts> counts_of(std::uint64_t word, Name name) {
        if (word >> kNameShift != name.bits) {
            return std::nullopt;
        }
        return Counts{word >> kCountBits & kUnitsMax, word & kUnitsMax, (word & kClosed) != 0};
    }

    std::atomic<std::uint64_t> word_;
};
static_assert(sizeof(UnitWord) == sizeof(std::uint64_t));

} // namespace ucg::shm
