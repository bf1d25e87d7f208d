// The 3-2 eliminations that bring any number of members to a power of two on the way, instead of
// before: Rabenseifner, Traeff, "More efficient reduction algorithms for non-power-of-two number of
// processors in message-passing parallel systems", 2004.
//
// Before round i the members stand in groups of 2^i who hold the same, count >> i of them, and the
// groups go in pairs. Where their number is odd, the third from the end is eliminated: its members
// send what they hold to those of the next group, and drop out; that one and the last are a pair.
// So three groups become two, which become one. An elimination holds its pair up by one message;
// from then on that is the last group. As this one is not the one that the eliminated send to, all
// eliminations together hold it up by one message, not by one each.
//
// In the last round both groups send to all who dropped out, too, and these do the same reduction:
// ceil(log2 count) rounds of messages in all, the bound in Ruefenacht, Bull, Booth, "Generalisation
// of recursive doubling for AllReduce: Now with simulation", 2017, section 6.4. The 2-1
// elimination, which pairs members before the first round and releases them after the last, is that
// paper's collapse by 2 (multiplying/schedule.hpp); it takes one more.
#pragma once

#include <cstdint>

#include "ucg_coll/base/base.hpp"

namespace ucg::plan {

class Elimination {
  public:
    /// REQUIRES: count >= 2, 0 <= index < count.
    Elimination(Rank count, Rank index);

    unsigned rounds() const { return rounds_; }
    /// How many members drop out in all: what `count` is above a power of two.
    Rank eliminated() const { return count_ - (Rank{1} << rounds_); }

    /// The round in which this member drops out; rounds() if it stays.
    unsigned leaves_at() const { return leaves_at_; }
    /// REQUIRES: leaves_at() < rounds(). Its place among the eliminated, and who takes its value.
    Rank number() const { return (count_ & low_bits(leaves_at_)) + lane_; }
    Rank taker() const { return member(leaves_at_, groups(leaves_at_) - 2, lane_); }
    /// Who in the last round tells the eliminated with that number, of the lower or upper group.
    Rank teller(Rank number, bool upper) const;

    // REQUIRES for these: round < leaves_at().

    /// Whose value this member takes in that round; kNoRank if nobody's.
    Rank taken_from(unsigned round) const;
    Rank partner(unsigned round) const {
        return member(leaves_at_, group_, lane_ ^ (Rank{1} << round));
    }
    bool is_upper(unsigned round) const { return (lane_ >> round & 1) != 0; }

    /// REQUIRES: leaves_at() == rounds(). The first of those it tells in the last round; further
    /// ones have numbers that are tell_stride() apart.
    Rank first_told() const { return lane_ & (tell_stride() - 1); }
    Rank tell_stride() const { return Rank{1} << (rounds_ - 1); }
    /// The index of an eliminated member.
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
    Rank group_;    ///< When it leaves, or at the end.
    Rank lane_ = 0; ///< Bit i is set if its group was the upper one of its pair in round i.
    std::uint32_t takes_ = 0; ///< Bit i is set if it takes a value in round i.
};

} // namespace ucg::plan
