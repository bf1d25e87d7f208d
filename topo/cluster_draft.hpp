// The nodes that a file lists for a cluster, before it is known whether they form a tree. Private
// to topo: the readers of all formats end here, so that they refuse the same mistakes in the same
// words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topo/cluster.hpp"

namespace ucg::topo {

struct DraftNode {
    std::string name;
    ClusterNode::Kind kind = ClusterNode::Kind::machine;
    std::string parent; ///< Name of the switch above; empty: none.
    std::uint64_t rate = 0;
    std::uint64_t line = 0; ///< The line of the file that defines the node, from 1.
};

/// Returns the cluster of `drafts`, in which children keep their order. A parent may come after its
/// children. Fails with invalid_argument and "line L: what is wrong" unless the drafts are one
/// tree, or several where `trees` says so: names unique and usable, every parent a switch that
/// exists, no ring, at least one machine.
Result<Cluster> build_cluster(std::vector<DraftNode> drafts, Trees trees);

} // namespace ucg::topo
