#include "ucg_coll/plan/messages/circulant.hpp"

#include <algorithm>
#include <cassert>

namespace ucg::plan {
namespace {

/// How far apart partners are: skip[k] in round k of a phase. Every skip is half of the next one,
/// rounded up. The last, skip[rounds], is the number of members and belongs to no round.
struct Skips {
    explicit Skips(Rank count) : rounds(circulant_round_count(count)) {
        skip[rounds] = count;
        for (unsigned k = rounds; k > 0; --k) {
            skip[k - 1] = skip[k] / 2 + skip[k] % 2;
        }
    }

    Rank operator[](unsigned k) const { return skip[k]; }

    unsigned rounds;
    std::array<Rank, 32> skip = {};
};

/// Returns which of the first blocks comes to a member first. The member's number is a sum of
/// skips, taken from the largest down; the result is the index of the smallest of these, and the
/// number of rounds at the root.
unsigned base_block(const Skips& skips, Rank index) {
    for (unsigned k = skips.rounds; k > 0; --k) {
        if (skips[k - 1] == index) {
            return k - 1;
        }
        if (skips[k - 1] < index) {
            index -= skips[k - 1];
        }
    }
    return skips.rounds;
}

/// Finds what a member receives in each round of a phase. Searches, depth first among the sums of
/// different skips, largest first, for members from which a block that this member does not have
/// yet can come in time. Each skip stands for a block, and is taken away once the block is found.
class ReceiveSearch {
  public:
    ReceiveSearch(const Skips& skips, Rank index)
        : skips_(skips), goal_(std::int64_t{skips[skips.rounds]} + index),
          nearest_(2 * std::int64_t{skips[skips.rounds]}), base_(base_block(skips, index)) {
        for (unsigned k = 0; k <= skips.rounds; ++k) {
            smaller_[k + 1] = k; // In lists 0 is the end, and k + 1 stands for skip k.
        }
        head_ = skips.rounds + 1;
        take_away(base_);
        search(0, head_);
        assert(round_ == skips.rounds);
    }

    /// Returns the block number for CirculantPhase::Round::received.
    int received(unsigned round) const {
        const unsigned found = found_[round];
        return found == skips_.rounds ? static_cast<int>(base_)
                                      : static_cast<int>(found) - static_cast<int>(skips_.rounds);
    }

  private:
    /// Can the block of this round come from the member that is `sum` from the root?
    bool accepts(std::int64_t sum) const {
        return round_ < skips_.rounds && sum <= goal_ - skips_[round_] && sum < nearest_;
    }
    bool is_beyond(std::int64_t sum) const { return sum > goal_ - skips_[round_ + 1]; }

    void search(std::int64_t sum, unsigned from) {
        for (unsigned at = from; at != 0; at = smaller_[at]) {
            const std::int64_t next = sum + skips_[at - 1];
            if (!accepts(next)) {
                continue;
            }
            if (!is_beyond(next)) {
                search(next, at);
            }
            if (round_ == skips_.rounds || is_beyond(sum)) {
                return;
            }
            if (accepts(next)) {
                nearest_ = next;
                take_away(at - 1);
                found_[round_++] = at - 1;
            }
        }
    }

    void take_away(unsigned skip) {
        unsigned* link = &head_;
        while (*link != skip + 1) {
            link = &smaller_[*link];
        }
        *link = smaller_[skip + 1]; // A search() that is at this skip still finds the next.
    }

    const Skips& skips_;
    std::int64_t goal_;
    std::int64_t nearest_;
    unsigned base_;
    unsigned round_ = 0;
    unsigned head_ = 0;
    std::array<unsigned, 33> smaller_ = {};
    std::array<unsigned, 32> found_ = {};
};

} // namespace

unsigned circulant_round_count(Rank count) {
    unsigned rounds = 0;
    while ((std::int64_t{1} << rounds) < count) {
        ++rounds;
    }
    return rounds;
}

CirculantPhase::CirculantPhase(Rank count, Rank index) : count_(circulant_round_count(count)) {
    const Skips skips(count);
    const ReceiveSearch own(skips, index);
    for (unsigned k = 0; k < count_; ++k) {
        const Rank to = index < count - skips[k] ? index + skips[k] : index - (count - skips[k]);
        rounds_[k] = {.from = index < skips[k] ? index + (count - skips[k]) : index - skips[k],
                      .to = to,
                      .received = own.received(k),
                      .sent = ReceiveSearch(skips, to).received(k)};
    }
}

CirculantBlocks::CirculantBlocks(std::uint64_t bytes, unsigned rounds, std::uint64_t phases,
                                 std::uint64_t unit, Order order)
    : rounds_(rounds), last_phase_(phases - 1), count_(1 + last_phase_ * rounds),
      bytes_(bytes / count_), order_(order) {
    const bool whole_lines = bytes_ > kCacheLine && kCacheLine % unit == 0;
    bytes_ -= bytes_ % (whole_lines ? kCacheLine : unit);
    last_bytes_ = bytes - (count_ - 1) * bytes_;
}

graph::Slice CirculantBlocks::of(const graph::Slice& data, int number, std::uint64_t phase) const {
    const std::int64_t index =
        number + static_cast<std::int64_t>(phase) * static_cast<std::int64_t>(rounds_);
    if (index < 0) {
        return {};
    }
    const std::uint64_t block = std::min(static_cast<std::uint64_t>(index), count_ - 1);
    const bool last = block + 1 == count_;
    const std::uint64_t offset = order_ == Order::rising ? block * bytes_
                                 : last                  ? 0
                                        : last_bytes_ + (count_ - 2 - block) * bytes_;
    return part(data, offset, last ? last_bytes_ : bytes_);
}

std::uint64_t circulant_block_count(Rank count, std::uint64_t phases) {
    return 1 + (phases - 1) * circulant_round_count(count);
}

} // namespace ucg::plan
