// The 3-2 eliminations that bring any number of members to a power of two on the way, instead of
// before: Rabenseifner, Traeff, "More efficient reduction algorithms for non-power-of-two number of
// processors in message-passing parallel systems", 2004.
//
// Before round i there are count >> i groups of 2^i members that hold the same partial result, and
// the two groups of each pair exchange what they hold. Where the number of groups is odd, the third
// from the end is eliminated: its members send what they hold to those of the next group and drop
// out; the next group and the last one are a pair. So three groups become two, which become one. An
// elimination delays its pair by one message, and the pair is the last group from then on. The
// members that drop out later send to the group before the last one, so all eliminations together
// delay the last group by one message, not by one each.
//
// In the last round both groups also send to all members that dropped out, and these do the same
// reduction. That makes ceil(log2 count) rounds of messages in all, the bound in Ruefenacht, Bull,
// Booth, "Generalisation of recursive doubling for AllReduce: Now with simulation", 2017, section
// 6.4. The 2-1 elimination, which pairs members before the first round and releases them after the
// last, is that paper's collapse by 2 (multiplying/schedule.hpp); it takes one round more.
#pragma once

#include <cstdint>

#include "ucg_coll/base/base.hpp"

namespace ucg::plan {

/// What one member does in each round. Members are named by their index in the team, the eliminated
/// ones also by a number, from 0 in the order of the rounds in which they drop out.
class Elimination {
  public:
    /// REQUIRES: count >= 2, 0 <= index < count.
    Elimination(Rank count, Rank index);

    unsigned rounds() const { return rounds_; }
    /// How many members drop out in all: by how many `count` is above a power of two.
    Rank eliminated() const { return count_ - (Rank{1} << rounds_); }

    /// The round in which this member drops out; rounds() if it stays.
    unsigned leaves_at() const { return leaves_at_; }
    /// This member's number among the eliminated ones. REQUIRES: leaves_at() < rounds().
    Rank number() const { return (count_ & low_bits(leaves_at_)) + lane_; }
    /// The member that takes this one's value when it drops out. REQUIRES: leaves_at() < rounds().
    Rank taker() const { return member(leaves_at_, groups(leaves_at_) - 2, lane_); }
    /// Returns the member of the lower or upper group that sends its value to the eliminated member
    /// with that number in the last round.
    Rank teller(Rank number, bool upper) const;

    // REQUIRES for these: round < leaves_at().

    /// Returns the eliminated member whose value this member takes in that round; kNoRank if none.
    Rank taken_from(unsigned round) const;
    /// Returns the member with which this one exchanges values in that round.
    Rank partner(unsigned round) const {
        return member(leaves_at_, group_, lane_ ^ (Rank{1} << round));
    }
    /// Is this member's group the upper one of its pair in that round?
    bool is_upper(unsigned round) const { return (lane_ >> round & 1) != 0; }

    /// The number of the first eliminated member to which this one sends its value in the last
    /// round; the numbers of further ones are tell_stride() apart. REQUIRES: leaves_at() ==
    /// rounds().
    Rank first_told() const { return lane_ & (tell_stride() - 1); }
    Rank tell_stride() const { return Rank{1} << (rounds_ - 1); }
    /// Returns the index of the eliminated member with that number.
    Rank eliminated_member(Rank number) const;

  private:
    static Rank low_bits(unsigned count) { return (Rank{1} << count) - 1; }
    Rank groups(unsigned round) const { return count_ >> round; }
    bool eliminates(unsigned round) const { return round < rounds_ && (groups(round) & 1) != 0; }
    /// The index of the member in `lane` of `group` before `round`.
    Rank member(unsigned round, Rank group, Rank lane) const;

    Rank count_;
    unsigned rounds_ = 0;
    unsigned leaves_at_ = 0;
    Rank group_;    ///< This member's group before the round in which it leaves, or at the end.
    Rank lane_ = 0; ///< Bit i is set if its group was the upper one of its pair in round i.
    std::uint32_t takes_ = 0; ///< Bit i is set if it takes a value in round i.
};

} // namespace ucg::plan
