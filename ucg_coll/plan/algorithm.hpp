// One row of the planner's table.
#pragma once

#include <cstdint>
#include <string_view>

#include "topo/topo.hpp"
#include "ucg_coll/cost/cost.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::plan {

/// The uniform facts that a plan is a pure function of, beside the request. Borrowed.
struct Facts {
    const topo::Placement& placement;
    const cost::Profile& profile;
};

/// The bytes of a request that all ranks know alike: `bytes`, the sum of receive.bytes for
/// allgatherv and reduce_scatter, 0 where only some ranks know (gatherv, scatterv, alltoallv).
/// Eligibility and cost may use nothing else of the request's lengths.
std::uint64_t uniform_bytes(const graph::Request& request);

struct Algorithm {
    /// The name in the literature: "recursive_doubling".
    std::string_view name;
    graph::Collective collective;
    /// One line for people, with the source.
    std::string_view summary;
    /// May it serve this request? Uniform facts only.
    bool (*eligible)(const Facts& facts, const graph::Request& request);
    /// Predicted time of the slowest rank, in nanoseconds. Uniform facts only.
    double (*cost_ns)(const Facts& facts, const graph::Request& request);
    /// The program of `rank`. REQUIRES: eligible(facts, request).
    graph::Schedule (*build)(const Facts& facts, const graph::Request& request, Rank rank);
    /// What eligible() asks for, to complete "needs ..." in messages; empty if it serves all.
    std::string_view needs = {};
};

/// An eligibility predicate that always holds.
bool serves_all(const Facts& facts, const graph::Request& request);

} // namespace ucg::plan
