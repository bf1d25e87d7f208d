// What a file says of a cluster, before it is known to be one. Private to topo: the readers of all
// formats end here, so that they refuse the same things in the same words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topo/cluster.hpp"

namespace ucg::topo {

struct DraftNode {
    std::string name;
    ClusterNode::Kind kind = ClusterNode::Kind::machine;
    std::string parent; ///< The switch above by name; empty: none.
    std::uint64_t rate = 0;
    std::uint64_t line = 0; ///< Where the file says so.
};

/// The cluster, in which children keep the order of `drafts` (in any: a parent may come after its
/// children). Fails with invalid_argument and "line L: what is wrong" unless it is one tree: names
/// unique and usable, every parent a switch that exists, one root, no ring, at least one machine.
Result<Cluster> build_cluster(std::vector<DraftNode> drafts);

} // namespace ucg::topo
