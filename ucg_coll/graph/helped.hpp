// Schedules whose ranks help one another: what a late or busy rank still owes is done by whoever
// comes. Each repeat is a part, each of its iterations a unit that one rank does, whoever that is.
//
// The schedule says what each rank does where all do their own. What verify proves besides, for
// those that are `helped`: units hang together with nothing else, so that any rank may do any of
// them in any order, between the beginning of all ranks that the part names and the end of any of
// these. Outside of repeats there are signals and awaits alone, since nobody else would do what is
// there. A rank's collective has ended when all parts that name it are done, its own and others'.
#pragma once

#include <cstdint>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// Ranks that help one another count units in words of shared memory, and know one another's parts.
inline constexpr Rank kHelpedRanksMax = 16;
inline constexpr std::uint32_t kHelpedPartsMax = 16;                           ///< Of one rank.
inline constexpr std::uint64_t kHelpedUnitsMax = (std::uint64_t{1} << 20) - 1; ///< Of one part.

/// The ranks whose input or output the repeat reads or writes, and the schedule's own; rising.
std::vector<Rank> ranks_named(const Schedule& schedule, const Repeat& repeat);

} // namespace ucg::graph
