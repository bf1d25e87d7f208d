#include "ucg_coll/plan/multiplying/seats.hpp"

#include <algorithm>

namespace ucg::plan {

MultiplyingSeats::MultiplyingSeats(const MultiplyingSchedule& schedule, Rank rank_count) {
    for (const Phase& phase : schedule.phases) {
        if (phase.kind == PhaseKind::collapse) {
            threshold_ = phase.count;
            fold_ = phase.base;
        } else if (phase.kind == PhaseKind::merge) {
            remainder_ = phase.count;
            groups_ = phase.groups;
        }
    }
    const Rank seats = rank_count - threshold_ / fold_ * (fold_ - 1);
    group_size_ = (seats - remainder_) / groups_;
}

Rank MultiplyingSeats::first_seat(Rank group) const {
    return group * (group_size_ + remainder_ / groups_) + std::min(group, remainder_ % groups_);
}

MultiplyingSeats::Part MultiplyingSeats::part_of(Rank index) const {
    const Rank seat = collapsed(index) ? index / fold_ : index - threshold_ / fold_ * (fold_ - 1);
    // The first groups have one more member of the remainder, if it does not divide evenly.
    const Rank small = group_size_ + remainder_ / groups_;
    const Rank larger = remainder_ % groups_;
    const Rank in_larger = larger * (small + 1);
    const Rank group = seat < in_larger ? seat / (small + 1) : larger + (seat - in_larger) / small;
    const Rank place = seat - first_seat(group);
    if (place < joining(group)) {
        return {.member = group + place * groups_};
    }
    return {.worker = group * group_size_ + place - joining(group)};
}

Rank MultiplyingSeats::index_of_worker(Rank worker) const {
    const Rank group = worker / group_size_;
    return index_of_seat(first_seat(group) + joining(group) + worker % group_size_);
}

Rank MultiplyingSeats::index_of_member(Rank member) const {
    return index_of_seat(first_seat(member % groups_) + member / groups_);
}

} // namespace ucg::plan
