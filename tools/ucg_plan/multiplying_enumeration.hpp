// Enumerates every schedule of recursive multiplying for a number of ranks, for searches and
// proofs: section 4.1 of the paper (ucg_coll/plan/multiplying/schedule.hpp) calls it exhaustive.
#pragma once

#include <functional>

#include "ucg_coll/plan/multiplying/schedule.hpp"

namespace ucg::tools {

enum class Orders : std::uint8_t {
    every, ///< Schedules that differ only in the order of their factors are different.
    /// Only one schedule for each multiset of factors and, where ranks are merged, for each choice
    /// of the first and the last factor; the other factors are in falling order. Where links are
    /// equal and all ranks enter a phase together, any other order costs the same.
    falling,
};

struct EnumerationBounds {
    Orders orders = Orders::every;
    Rank base_max = plan::kPhaseOperandsMax; ///< The largest base of any phase.
};

/// Calls `visit` once for each schedule that fits `rank_count` ranks: products first, then merges,
/// then collapses around either. visit's argument is valid until it returns; if it returns false
/// the enumeration ends. Returns whether the end was reached. The number of schedules grows a
/// little faster than the cube of the number of ranks: thousands for 24, ten millions for 256.
/// REQUIRES: rank_count >= 2.
bool enumerate_multiplying(Rank rank_count, const EnumerationBounds& bounds,
                           const std::function<bool(const plan::MultiplyingSchedule&)>& visit);

} // namespace ucg::tools
