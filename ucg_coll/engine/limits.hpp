// What a program can number.
#pragma once

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/schedule.hpp"

namespace ucg::engine {

/// Fails with unsupported if the schedule has more of anything than a program has numbers for; the
/// message names the rank, the op at which that is so, and the limit.
Status check_limits(const graph::Schedule& schedule);

} // namespace ucg::engine
