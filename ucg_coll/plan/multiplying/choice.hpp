// What schedules of recursive multiplying cost, and the one that costs least: a sum over phases,
// as in section 3 of the paper (multiplying/schedule.hpp), in the terms of Link.
#pragma once

#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {

/// The time of the slowest member of an allreduce of `bytes` by `schedule`.
double allreduce_recursive_multiplying_ns(const Link& link, const MultiplyingSchedule& schedule,
                                          std::uint64_t bytes);

/// The same of the schedule below; allocates nothing.
double allreduce_recursive_multiplying_ns(const Link& link, Rank count, std::uint64_t bytes);

/// A schedule that costs at most 1.02 times as much as any for `count` members: of all products,
/// merges, collapses and merges inside collapses, with bases of any size, found by branch and
/// bound. Of equals, the one with the larger factors first. Takes some microseconds for a hundred
/// members and some milliseconds for a million, up to 30 of them where latency is a thousand gaps.
MultiplyingSchedule allreduce_recursive_multiplying_schedule(const Link& link, Rank count,
                                                             std::uint64_t bytes);

} // namespace ucg::plan
