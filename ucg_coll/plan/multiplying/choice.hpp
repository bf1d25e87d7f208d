// What schedules of recursive multiplying cost, and the one that costs least, in the terms of Link:
// for few ranks when the last one is done, for many a sum over phases, as in section 3 of the paper
// (multiplying/schedule.hpp).
#pragma once

#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {

/// Groups up to this many ranks are priced rank by rank.
inline constexpr Rank kPricedByRank = 64;

/// What a rank that is last in each phase takes. The ranks of a merge are not late and busy at the
/// same time, so that it is up to a third too much.
double sum_of_phases_ns(const Link& link, const MultiplyingSchedule& schedule, std::uint64_t bytes);

/// The time of the slowest member of an allreduce of `bytes` by `schedule`.
double allreduce_recursive_multiplying_ns(const Link& link, const MultiplyingSchedule& schedule,
                                          std::uint64_t bytes);

/// The same of the schedule below. Among more ranks than that it allocates nothing.
double allreduce_recursive_multiplying_ns(const Link& link, Rank count, std::uint64_t bytes);

/// A schedule that costs at most 1.02 times as much as any for `count` members, by the prices
/// above: of all products, merges, collapses and merges inside collapses, with bases of any size,
/// found by branch and bound. Of equals, the one with the larger factors first. Takes some
/// microseconds for a hundred members and some milliseconds for a million, up to 30 of them where
/// latency is a thousand gaps.
MultiplyingSchedule allreduce_recursive_multiplying_schedule(const Link& link, Rank count,
                                                             std::uint64_t bytes);

} // namespace ucg::plan
