// The links between the machines of a group's ranks, as a tree: what verify orders messages on, and
// what a simulation makes them share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::graph {

/// Switches and machines. Each node but the first has a link, in both directions, to its parent,
/// which stands before it.
struct Network {
    struct Node {
        std::string name;
        std::uint32_t parent = 0; ///< Of node 0 not looked at.
        double ns_per_byte = 0;   ///< Of its link, one way; 0: not known, never in the way.

        bool operator==(const Node&) const = default;
    };
    std::vector<Node> nodes;
    std::vector<std::uint32_t> node_of; ///< By rank: its machine.
    std::uint32_t at_once = 1;          ///< How many messages verify lets an edge carry at a time.

    bool operator==(const Network&) const = default;
};

/// One direction of the link above a node.
struct Edge {
    std::uint32_t node = 0;
    bool down = false; ///< From the parent to the node.

    std::uint32_t index() const { return 2 * node + (down ? 1 : 0); }
    bool operator==(const Edge&) const = default;
};

/// Is it a tree, and is each of `rank_count` ranks at a node of it? Says what is not so.
Status check(const Network& network, Rank rank_count);

/// The edges that a message passes, in this order; none between ranks of one machine. `path` is
/// emptied first. REQUIRES: check(network, ...).ok().
void find_path(const Network& network, Rank from, Rank to, std::vector<Edge>& path);

/// "s0 -> s1"
std::string describe(const Network& network, Edge edge);

} // namespace ucg::graph
