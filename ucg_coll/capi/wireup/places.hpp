// Where the ranks of a group are, and how they share processors, from what they said of themselves.
#pragma once

#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/wireup/hello.hpp"

namespace ucg::capi {

/// Where the ranks are and how they share processors. The same on all ranks, except for the load.
struct Places {
    topo::Placement placement;
    double ranks_per_cpu = 1; ///< On the fullest machine; at least 1.
    bool one_kernel = false;  ///< All ranks are on hosts under one kernel.
    CpuLoad load;             ///< That of the machine that `rank` is on.
};

/// Works out the places from what all ranks said. `all` is by rank. REQUIRES: 0 <= rank <
/// all.size().
Places places_of(const std::vector<Hello>& all, Rank rank);

} // namespace ucg::capi
