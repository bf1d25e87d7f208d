// Where the ranks of a group are, and how they share processors, from what they said of themselves.
#pragma once

#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/cpu_load.hpp"
#include "ucg_coll/capi/wireup/hello.hpp"

namespace ucg::capi {

/// Where the ranks are and how they share processors. The same on all ranks, except for load and
/// host_cpus.
struct Places {
    topo::Placement placement;
    double ranks_per_cpu = 1; ///< Where there are most: on a machine, or of a quota; at least 1.
    bool one_kernel = false;  ///< All ranks are on hosts under one kernel.
    CpuLoad load;             ///< Of the machine that `rank` is on, or of its quota.
    unsigned host_cpus = 1;   ///< That the ranks on the host of `rank` may use together.
};

/// Works out the places from what all ranks said. `all` is by rank. REQUIRES: 0 <= rank <
/// all.size().
Places places_of(const std::vector<Hello>& all, Rank rank);

} // namespace ucg::capi
