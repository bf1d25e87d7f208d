// What a rank knows of the other ranks' requests when it proves a plan (UCG_VERIFY).
#pragma once

#include <string_view>
#include <vector>

#include "ucg_coll/graph/collective.hpp"

namespace ucg::capi {

/// Returns requests of all ranks, in rank order, that fit together and of which that of `rank` is
/// `own`. What a rank does not know of the others it assumes; a plan of its own never depends on
/// that. Takes memory in proportion to the number of ranks, for alltoallv to its square. REQUIRES:
/// graph::validate(own, rank).ok().
std::vector<graph::Request> requests_of_all(const graph::Request& own, Rank rank);

/// Returns which part of the proof rests on assumptions, in words that follow "UCG_VERIFY:
/// alltoallv: "; empty where the ranks together prove what they run.
std::string_view what_is_assumed(graph::Collective collective);

} // namespace ucg::capi
