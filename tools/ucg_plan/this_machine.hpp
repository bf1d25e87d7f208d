// What processes that are started on this machine plan by: where they are and what things cost.
#pragma once

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

/// The ranks of `placement` on hosts like this machine: each on the core of its number among those
/// of its host, starting over after the last, or, `unbound`, wherever this process may run.
Result<topo::Placement> on_hosts_like_this(const topo::Placement& placement, bool unbound);

/// How many of that many ranks of a host take turns on each of the CPUs of this process; at least
/// 1.
double ranks_per_cpu_here(Rank ranks_on_host);

/// As a group finds them: UCG_PROFILE, else what ucg_tune has written, else built in, and what a
/// start sees of the kernel's copies.
Result<cost::Profile> costs_here();

} // namespace ucg::tools
