// Round-optimal broadcasts of a vector in blocks, on a circulant graph: Träff, "Optimal broadcast
// schedules in logarithmic time with applications to broadcast, all-broadcast, reduction and
// all-reduction", 2024 (arXiv 2407.18004). `blocks` blocks reach all ranks in blocks - 1 +
// ceil(log2 ranks) rounds, in each of which a rank sends a block at most and receives one at most.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::plan {

/// How many rounds one block needs: the smallest q with 2^q >= count. REQUIRES: count > 0.
unsigned circulant_round_count(Rank count);

/// What one member does in the rounds of a phase; phases follow one another, and all are alike.
/// Members are numbered from the root, whose number is 0. Takes time O(log^2 count).
class CirculantPhase {
  public:
    /// In phase j a number v stands for block v + j * (number of rounds): for none if that is
    /// negative, and for the last one if it is that or more.
    struct Round {
        Rank from = 0; ///< Meaningless at the root, which receives nothing.
        Rank to = 0;   ///< If it is the root, nothing is sent.
        int received = 0;
        int sent = 0;
    };

    /// REQUIRES: 0 <= index < count.
    CirculantPhase(Rank count, Rank index);

    std::span<const Round> rounds() const& { return std::span(rounds_).first(count_); }
    std::span<const Round> rounds() const&& = delete; // It would not live as long as the span.

  private:
    std::array<Round, 31> rounds_ = {};
    unsigned count_ = 0;
};

/// The blocks of so many phases: one more for each round of all phases but the first.
std::uint64_t circulant_block_count(Rank count, std::uint64_t phases);

/// A vector's blocks, one more than a multiple of the rounds, all of one length but the last, which
/// may be longer. The phases between the first and the last one move whole blocks alone.
class CirculantBlocks {
  public:
    enum class Order : std::uint8_t {
        rising,  ///< Later phases have what lies behind.
        falling, ///< The last block lies first.
    };
    /// Blocks begin at multiples of `unit`. REQUIRES: rounds, phases, unit > 0.
    CirculantBlocks(std::uint64_t bytes, unsigned rounds, std::uint64_t phases, std::uint64_t unit,
                    Order order);

    std::uint64_t phase_bytes() const { return rounds_ * bytes_; }
    std::uint64_t last_bytes() const { return last_bytes_; }
    bool is_last_phase(std::uint64_t phase) const { return phase == last_phase_; }
    /// Of `data` what one of CirculantPhase's numbers stands for; empty if it is none.
    graph::Slice of(const graph::Slice& data, int number, std::uint64_t phase) const;

  private:
    unsigned rounds_;
    std::uint64_t last_phase_;
    std::uint64_t count_;
    std::uint64_t bytes_;
    std::uint64_t last_bytes_;
    Order order_;
};

/// The number of phases with the least price_ns(phases), where pipelining in blocks of so many
/// bytes is best.
template <typename PriceNs>
std::uint64_t circulant_phases(Rank count, std::uint64_t bytes, std::uint64_t block_bytes,
                               PriceNs price_ns) {
    const std::uint64_t rounds = circulant_round_count(count);
    if (rounds == 0 || bytes == 0) {
        return 1;
    }
    const std::uint64_t fewer = 1 + (divide_up(bytes, block_bytes) - 1) / rounds;
    return price_ns(fewer) <= price_ns(fewer + 1) ? fewer : fewer + 1;
}

} // namespace ucg::plan
