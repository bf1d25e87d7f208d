// Schedules whose ranks help one another: a rank that waits does work of ranks that are late or
// busy. Each repeat of a schedule is a part, and each iteration of it is a unit, which any one rank
// named by the part may do.
//
// The schedule says what each rank does if every rank does its own parts. For schedules that are
// `helped`, verify also proves that units are independent: any rank may do any unit, in any order,
// once all ranks that the part names have begun and until any of these has ended. Outside of
// repeats there are only signals and awaits, since no other rank would do those ops. A rank's
// collective has ended when all parts that name the rank are done, its own and those of others.
#pragma once

#include <cstdint>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// The limits of helped schedules: ranks count the units of each part in a word of shared memory,
/// and each rank holds the schedules of all ranks.
inline constexpr Rank kHelpedRanksMax = 16;
inline constexpr std::uint32_t kHelpedPartsMax = 16;                           ///< Of one rank.
inline constexpr std::uint64_t kHelpedUnitsMax = (std::uint64_t{1} << 20) - 1; ///< Of one part.

/// Returns, in rising order, the ranks that the repeat names: those whose input or output it reads
/// or writes, and the schedule's own.
std::vector<Rank> ranks_named(const Schedule& schedule, const Repeat& repeat);

} // namespace ucg::graph
