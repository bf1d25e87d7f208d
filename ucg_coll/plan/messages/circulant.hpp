// Round-optimal broadcasts of a vector in blocks, on a circulant graph: Träff, "Optimal broadcast
// schedules in logarithmic time with applications to broadcast, all-broadcast, reduction and
// all-reduction", 2024 (arXiv 2407.18004). `blocks` blocks reach all ranks in blocks - 1 +
// ceil(log2 ranks) rounds, in each of which a rank sends a block at most and receives one at most.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ucg_coll/base/base.hpp"

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

} // namespace ucg::plan
