// Where processes that are started on this machine are, and what operations cost there.
#pragma once

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

/// Returns the ranks of `placement` on hosts like this machine. The n-th rank of a host is on the
/// n-th core, starting over after the last one; if `unbound`, it is wherever this process may run.
Result<topo::Placement> on_hosts_like_this(const topo::Placement& placement, bool unbound);

/// Returns how many of `ranks_on_host` ranks share each CPU that this process may use, at least 1.
double ranks_per_cpu_here(Rank ranks_on_host);

/// Returns the costs as a group finds them: the profile that UCG_PROFILE names, else what ucg_tune
/// has written, else built-in costs, with the threshold of single copies that a process determines
/// when it starts.
Result<cost::Profile> costs_here();

} // namespace ucg::tools
