#include "ucg_coll/plan/messages/elimination.hpp"

#include <bit>

namespace ucg::plan {

Elimination::Elimination(Rank count, Rank index)
    : count_(count),
      rounds_(static_cast<unsigned>(std::bit_width(static_cast<std::uint32_t>(count))) - 1),
      group_(index) {
    for (; leaves_at_ < rounds_; ++leaves_at_) {
        // Groups are counted from the end, where the three of an elimination are.
        const Rank from_end = groups(leaves_at_) - group_;
        const bool among_three = eliminates(leaves_at_) && from_end <= 3;
        if (among_three && from_end == 3) {
            return;
        }
        if (among_three && from_end == 2) {
            takes_ |= 1U << leaves_at_;
        }
        const Rank upper = among_three ? 2 - from_end : group_ & 1;
        lane_ |= upper << leaves_at_;
        group_ = (among_three ? groups(leaves_at_) - 3 : group_) / 2;
    }
}

Rank Elimination::member(unsigned round, Rank group, Rank lane) const {
    for (unsigned before = round; before-- > 0;) {
        const bool skips = eliminates(before) && group == (groups(before) - 3) / 2;
        group = 2 * group + (lane >> before & 1) + (skips ? 1 : 0);
    }
    return group;
}

Rank Elimination::taken_from(unsigned round) const {
    if ((takes_ >> round & 1) == 0) {
        return kNoRank;
    }
    return member(round, groups(round) - 3, lane_ & low_bits(round));
}

Rank Elimination::teller(Rank number, bool upper) const {
    const Rank lane = (number & (tell_stride() - 1)) + (upper ? tell_stride() : 0);
    return member(rounds_, 0, lane);
}

Rank Elimination::eliminated_member(Rank number) const {
    // The first number of those that drop out in round i is the value of the count's lowest i bits.
    unsigned round = 0;
    while ((count_ & low_bits(round + 1)) <= number) {
        ++round;
    }
    return member(round, groups(round) - 3, number - (count_ & low_bits(round)));
}

} // namespace ucg::plan
