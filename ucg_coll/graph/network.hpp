// The links between the machines of a group's ranks, as a tree. verify proves that messages follow
// one another on them, and simulations have messages share them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::graph {

/// A tree of switches and machines. Each node but the first has a link, in both directions, to its
/// parent, which comes before it.
struct SwitchTree {
    struct Node {
        std::string name;
        std::uint32_t parent = 0; ///< Unused for node 0.
        double ns_per_byte = 0;   ///< Of its link, one way; 0: not known, and never a limit.

        bool operator==(const Node&) const = default;
    };
    std::vector<Node> nodes;
    std::vector<std::uint32_t> node_of; ///< By rank: the node that is its machine.
    std::uint32_t at_once = 1;          ///< How many messages verify lets an edge carry at a time.

    bool operator==(const SwitchTree&) const = default;
};

/// One direction of the link above a node.
struct Edge {
    std::uint32_t node = 0;
    bool down = false; ///< True: from the parent to the node; false: from the node to the parent.

    std::uint32_t index() const { return 2 * node + (down ? 1 : 0); }
    bool operator==(const Edge&) const = default;
};

/// Returns ok if the network is a tree and has a node for each of `rank_count` ranks; otherwise
/// invalid_argument, with a message that says what is wrong.
Status check(const SwitchTree& network, Rank rank_count);

/// Sets `path` to the edges that a message passes, in this order; none between ranks of one
/// machine. REQUIRES: check(network, ...).ok().
void find_path(const SwitchTree& network, Rank from, Rank to, std::vector<Edge>& path);

/// Returns the names of an edge's ends: "s0 -> s1".
std::string describe(const SwitchTree& network, Edge edge);

} // namespace ucg::graph
