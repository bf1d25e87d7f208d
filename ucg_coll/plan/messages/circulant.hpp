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

/// Returns how many rounds one block needs: the smallest q with 2^q >= count. REQUIRES: count > 0.
unsigned circulant_round_count(Rank count);

/// What one member does in each round of a phase. Phases follow one another, and all are alike.
/// Members are numbered from the root, whose number is 0. Construction takes time O(log^2 count).
class CirculantPhase {
  public:
    /// One round. `received` and `sent` are block numbers: in phase j a number v stands for block
    /// v + j * (number of rounds); for no block if that is negative, and for the last block if it
    /// is beyond the last.
    struct Round {
        Rank from = 0; ///< The sender; meaningless at the root, which receives nothing.
        Rank to = 0;   ///< The receiver; if it is the root, nothing is sent.
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

/// Returns how many blocks `phases` phases move: one, and one more for each round of all phases but
/// the first.
std::uint64_t circulant_block_count(Rank count, std::uint64_t phases);

/// The blocks of a vector. Their number is one more than a multiple of the rounds, and all have one
/// length but the last, which may be longer. In the phases between the first and the last one, each
/// number of CirculantPhase stands for a block other than the last.
class CirculantBlocks {
  public:
    enum class Order : std::uint8_t {
        rising,  ///< Block 0 lies first; later phases move what lies behind.
        falling, ///< The last block lies first, block 0 last.
    };
    /// Cuts a vector of `bytes` for `phases` phases of `rounds` rounds. Blocks begin at multiples
    /// of `unit`. REQUIRES: rounds, phases, unit > 0.
    CirculantBlocks(std::uint64_t bytes, unsigned rounds, std::uint64_t phases, std::uint64_t unit,
                    Order order);

    std::uint64_t phase_bytes() const { return rounds_ * bytes_; }
    std::uint64_t last_bytes() const { return last_bytes_; }
    bool is_last_phase(std::uint64_t phase) const { return phase == last_phase_; }
    /// Returns the part of `data` that a block number of CirculantPhase stands for in `phase`; an
    /// empty slice if it stands for no block.
    graph::Slice of(const graph::Slice& data, int number, std::uint64_t phase) const;

  private:
    unsigned rounds_;
    std::uint64_t last_phase_;
    std::uint64_t count_;
    std::uint64_t bytes_;
    std::uint64_t last_bytes_;
    Order order_;
};

/// Returns the number of phases with the lower price_ns(phases), of the two numbers whose blocks
/// are nearest to `block_bytes`, the best length of a block in a pipeline. Each block has one unit
/// at least. REQUIRES: `bytes` and `block_bytes` are multiples of `unit`.
template <typename PriceNs>
std::uint64_t circulant_phases(Rank count, std::uint64_t bytes, std::uint64_t block_bytes,
                               std::uint64_t unit, PriceNs price_ns) {
    const std::uint64_t rounds = circulant_round_count(count);
    if (rounds == 0 || bytes == 0) {
        return 1;
    }
    const std::uint64_t fewer = 1 + (divide_up(bytes, block_bytes) - 1) / rounds;
    if (circulant_block_count(count, fewer + 1) > bytes / unit) {
        return fewer;
    }
    return price_ns(fewer) <= price_ns(fewer + 1) ? fewer : fewer + 1;
}

} // namespace ucg::plan
