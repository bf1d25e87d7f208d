// Who does what in a schedule of recursive multiplying: the arithmetic between a team's indexes and
// the numbers that its phases use. All in constant time.
//
//   index    in the team
//   seat     among those whom the collapse leaves acting, 0 .. acting - 1
//   worker   among those who multiply, 0 .. workers - 1: groups of the merge are neighbours
//   member   of the remainder
//
// Seats are in rank order; before each group of the merge sit the members of the remainder who join
// it. So whatever is combined in the order of seats stands for neighbouring ranks.
#pragma once

#include "ucg_coll/plan/multiplying/schedule.hpp"

namespace ucg::plan {

class MultiplyingSeats {
  public:
    /// REQUIRES: fits(schedule, rank_count).
    MultiplyingSeats(const MultiplyingSchedule& schedule, Rank rank_count);

    /// Does a collapse put `index` in a group?
    bool collapsed(Rank index) const { return index < threshold_; }
    /// The index of who acts for `index`, maybe itself.
    Rank actor(Rank index) const {
        return collapsed(index) ? index / fold_ * fold_ + fold_ - 1 : index;
    }
    /// The size of the collapse's groups; 1 without one.
    Rank fold() const { return fold_; }

    /// What an acting index is; `worker` or `member` is kNoRank.
    struct Part {
        Rank worker = kNoRank;
        Rank member = kNoRank;
    };
    Part part_of(Rank index) const;

    Rank index_of_worker(Rank worker) const;
    Rank index_of_member(Rank member) const;

    Rank remainder() const { return remainder_; }

  private:
    Rank index_of_seat(Rank seat) const {
        return seat < threshold_ / fold_ ? seat * fold_ + fold_ - 1
                                         : seat + threshold_ / fold_ * (fold_ - 1);
    }
    /// How many members of the remainder join `group`.
    Rank joining(Rank group) const {
        return remainder_ / groups_ + (group < remainder_ % groups_ ? 1 : 0);
    }
    /// The seat of the first of `group`, its members of the remainder included.
    Rank first_seat(Rank group) const;

    Rank threshold_ = 0;
    Rank fold_ = 1;
    Rank remainder_ = 0;
    Rank groups_ = 1; ///< Of the merge.
    Rank group_size_; ///< In workers.
};

} // namespace ucg::plan
