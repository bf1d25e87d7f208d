#include "ucg_coll/graph/network.hpp"

#include <algorithm>

#include "ucg_coll/graph/print.hpp"

namespace ucg::graph {

Status check(const SwitchTree& network, Rank rank_count) {
    if (network.node_of.size() != static_cast<std::size_t>(rank_count)) {
        return failure(Code::invalid_argument, "the network is for {} ranks, there are {}",
                       network.node_of.size(), rank_count);
    }
    for (std::size_t node = 1; node < network.nodes.size(); ++node) {
        if (network.nodes[node].parent >= node) {
            return failure(Code::invalid_argument,
                           "node {} of the network, {}, has parent {}: a "
                           "parent comes before its children",
                           node, network.nodes[node].name, network.nodes[node].parent);
        }
    }
    for (Rank rank = 0; rank < rank_count; ++rank) {
        const std::uint32_t node = network.node_of[static_cast<std::size_t>(rank)];
        if (node >= network.nodes.size()) {
            return failure(Code::invalid_argument,
                           "rank {} is at node {} of the network, which has {}", rank, node,
                           network.nodes.size());
        }
    }
    return Status();
}

void find_path(const SwitchTree& network, Rank from, Rank to, std::vector<Edge>& path) {
    path.clear();
    std::uint32_t source = network.node_of[static_cast<std::size_t>(from)];
    std::uint32_t target = network.node_of[static_cast<std::size_t>(to)];
    std::size_t up = 0;
    while (source != target) { // The node that comes later cannot be above the other.
        if (source > target) {
            path.insert(path.begin() + static_cast<std::ptrdiff_t>(up++), {source, false});
            source = network.nodes[source].parent;
        } else {
            path.push_back({target, true});
            target = network.nodes[target].parent;
        }
    }
    std::reverse(path.begin() + static_cast<std::ptrdiff_t>(up), path.end());
}

std::string describe(const SwitchTree& network, Edge edge) {
    const SwitchTree::Node& node = network.nodes[edge.node];
    const std::string& parent = network.nodes[node.parent].name;
    return edge.down ? fmt::format("{} -> {}", parent, node.name)
                     : fmt::format("{} -> {}", node.name, parent);
}

} // namespace ucg::graph
