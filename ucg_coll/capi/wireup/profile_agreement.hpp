// Do all ranks of a group plan by the same costs, and copy messages by the same lengths?
#pragma once

#include <cstdint>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/capi/wireup/hello.hpp"
#include "ucg_coll/capi/wireup/peers.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::capi {

/// Returns the profile that all ranks plan by. `own`: that of this process. Costs that differ would
/// choose different algorithms: where the user named a file, that is an error; files that were
/// merely found, on hosts that were measured one by one, give way to the built-in costs, which one
/// rank tells once.
Result<cost::Profile> agree_on_profile(const LoadedProfile& own, Peers& peers,
                                       const std::vector<Hello>& all);

/// Puts into `memory` the lengths from which on the group's messages are copied once. A setting
/// comes before the profile.
void agree_on_copies(const std::vector<Hello>& all, cost::MemoryModel& memory);

} // namespace ucg::capi
