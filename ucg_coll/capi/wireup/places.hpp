// Where the ranks of a group are, and how they share processors, from what they said of themselves.
#pragma once

#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/wireup/hello.hpp"

namespace ucg::capi {

/// The same on all ranks, but for the load.
struct Places {
    topo::Placement placement;
    double ranks_per_cpu = 1; ///< On the fullest machine; at least 1.
    bool one_kernel = false;  ///< All ranks are on hosts of one.
    CpuLoad load;             ///< Of the machine of `rank`.
};

/// `all`: by rank. REQUIRES: 0 <= rank < all.size().
Places places_of(const std::vector<Hello>& all, Rank rank);

} // namespace ucg::capi
