// Every schedule of recursive multiplying that there is for a number of ranks, for searches and
// proofs: section 4.1 of the paper (ucg_coll/plan/multiplying/schedule.hpp) calls it exhaustive.
#pragma once

#include <functional>

#include "ucg_coll/plan/multiplying/schedule.hpp"

namespace ucg::tools {

enum class Orders : std::uint8_t {
    every, ///< Schedules that differ in the order of their factors only are different.
    /// One for each multiset of factors and, where ranks are merged, each choice of the first and
    /// the last: the others in falling order. Where links are equal and all ranks enter a phase
    /// together, any other order costs the same.
    falling,
};

struct EnumerationBounds {
    Orders orders = Orders::every;
    Rank base_max = plan::kPhaseOperandsMax; ///< Of all phases.
};

/// Calls `visit` for each schedule that fits `rank_count` ranks, each once: products first, then
/// merges, then collapses around either. The argument is good until visit returns; false from it
/// ends the enumeration. Returns whether the end was reached. How many there are grows a little
/// faster than the cube of the ranks: thousands for 24, ten millions for 256.
/// REQUIRES: rank_count >= 2.
bool enumerate_multiplying(Rank rank_count, const EnumerationBounds& bounds,
                           const std::function<bool(const plan::MultiplyingSchedule&)>& visit);

} // namespace ucg::tools
