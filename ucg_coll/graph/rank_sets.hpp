// Internal to ucg_coll/graph: for each event, the ranks that are known to have entered the
// collective, and those that leave it only later.
#pragma once

#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph::proof {

/// Sets of ranks, one for each start and each completion of an op, as rows of bits.
class RankSets {
  public:
    explicit RankSets(const World& world)
        : words_((static_cast<std::size_t>(world.rank_count()) + 63) / 64),
          bits_(2 * std::size_t{world.op_count()} * words_, 0) {}

    static std::size_t start(OpRef op) { return 2 * std::size_t{op}; }
    static std::size_t completion(OpRef op) { return 2 * std::size_t{op} + 1; }

    void add(std::size_t row, Rank rank) {
        bits_[word(row, rank)] |= std::uint64_t{1} << static_cast<unsigned>(rank) % 64;
    }
    void add_all(std::size_t row, std::size_t other) {
        for (std::size_t w = 0; w < words_; ++w) {
            bits_[row * words_ + w] |= bits_[other * words_ + w];
        }
    }
    bool has(std::size_t row, Rank rank) const {
        return (bits_[word(row, rank)] >> static_cast<unsigned>(rank) % 64 & 1) != 0;
    }

  private:
    std::size_t word(std::size_t row, Rank rank) const {
        return row * words_ + static_cast<std::size_t>(rank) / 64;
    }

    std::size_t words_;
    std::vector<std::uint64_t> bits_;
};

/// Returns, for each event, the ranks that are certain to have entered the collective when it
/// happens. A send that has completed tells its own rank nothing about the receiver.
RankSets entered(const World& world);

/// Returns, for each event, the ranks that are certain to leave the collective only after it.
RankSets leave_later(const World& world);

} // namespace ucg::graph::proof
