// What schedules of recursive multiplying cost in the terms of Link, and a schedule that costs
// close to the least. For few ranks the cost is the time when the last rank is done; for many it is
// a sum over phases, as in section 3 of the paper (multiplying/schedule.hpp).
#pragma once

#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {

/// Groups up to this many ranks are priced rank by rank.
inline constexpr Rank kPricedByRank = 64;

/// Returns the time of a rank that would be last in each phase. The ranks of a merge that are late
/// are not those that are busy, so with merges this is up to a third too much.
double sum_of_phases_ns(const Link& link, const MultiplyingSchedule& schedule, std::uint64_t bytes);

/// Returns the time of the slowest member of an allreduce of `bytes` by `schedule`.
double allreduce_recursive_multiplying_ns(const Link& link, const MultiplyingSchedule& schedule,
                                          std::uint64_t bytes);

/// Returns the time of the slowest member of an allreduce of `bytes` among `count` members by the
/// schedule that allreduce_recursive_multiplying_schedule() chooses.
double allreduce_recursive_multiplying_ns(const Link& link, Rank count, std::uint64_t bytes);

/// Returns a schedule for `count` members that costs at most 1.02 times as much as any other, by
/// the prices above. It is found by branch and bound among all products, merges, collapses and
/// merges inside collapses, with bases of any size. Of schedules that cost the same, the one with
/// the larger factors first is taken. Takes some microseconds for a hundred members and some
/// milliseconds for a million, up to 30 ms where latency is a thousand gaps.
MultiplyingSchedule allreduce_recursive_multiplying_schedule(const Link& link, Rank count,
                                                             std::uint64_t bytes);

} // namespace ucg::plan
