// Who does what in a schedule of recursive multiplying: the arithmetic between a team's indexes and
// the numbers that its phases use. All in constant time.
//
//   index    a rank's number in the team
//   seat     its number among the ranks that act after the collapse, 0 .. acting - 1
//   worker   its number among the ranks that multiply, 0 .. workers - 1, in which the ranks of a
//            group of the merge are neighbours
//   member   its number among the ranks of the remainder
//
// Seats are in rank order. The members of the remainder that join a group of the merge have the
// seats right before it. So whatever is combined in the order of seats stands for neighbouring
// ranks.
#pragma once

#include "ucg_coll/plan/multiplying/schedule.hpp"

namespace ucg::plan {

class MultiplyingSeats {
  public:
    /// REQUIRES: fits(schedule, rank_count).
    MultiplyingSeats(const MultiplyingSchedule& schedule, Rank rank_count);

    /// Returns whether the collapse puts `index` in a group.
    bool collapsed(Rank index) const { return index < threshold_; }
    /// Returns the index of the rank that acts for `index`, which may be itself.
    Rank actor(Rank index) const {
        return collapsed(index) ? index / fold_ * fold_ + fold_ - 1 : index;
    }
    /// Returns the size of the collapse's groups; 1 without a collapse.
    Rank fold() const { return fold_; }

    /// The part of a rank that acts: its number as a worker or as a member of the remainder. The
    /// other number is kNoRank.
    struct Part {
        Rank worker = kNoRank;
        Rank member = kNoRank;
    };
    /// Returns the part of a rank. REQUIRES: it acts, so actor(index) == index.
    Part part_of(Rank index) const;

    Rank index_of_worker(Rank worker) const;
    Rank index_of_member(Rank member) const;

    Rank remainder() const { return remainder_; }

  private:
    Rank index_of_seat(Rank seat) const {
        return seat < threshold_ / fold_ ? seat * fold_ + fold_ - 1
                                         : seat + threshold_ / fold_ * (fold_ - 1);
    }
    /// Returns how many members of the remainder join `group`.
    Rank joining(Rank group) const {
        return remainder_ / groups_ + (group < remainder_ % groups_ ? 1 : 0);
    }
    /// Returns the first seat of `group`, including the members of the remainder that join it.
    Rank first_seat(Rank group) const;

    Rank threshold_ = 0;
    Rank fold_ = 1;
    Rank remainder_ = 0;
    Rank groups_ = 1; ///< Groups of the merge; 1 without one.
    Rank group_size_; ///< Workers in each of them.
};

} // namespace ucg::plan
