#include "ucg_coll/plan/network/network.hpp"

#include <algorithm>

#include "topo/cluster_load.hpp"

namespace ucg::plan {
namespace {

aapc::Tree tree_of(const topo::Cluster& cluster, std::span<const std::uint32_t> machines) {
    aapc::Tree tree;
    tree.parents.reserve(cluster.node_count());
    for (const topo::ClusterNode& node : cluster.nodes()) {
        tree.parents.push_back(node.parent == topo::kNoNode ? aapc::kNone : node.parent);
    }
    tree.member_nodes.reserve(machines.size());
    for (const std::uint32_t machine : machines) {
        tree.member_nodes.push_back(cluster.node_of_machine(machine));
    }
    return tree;
}

graph::SwitchTree links_of(const topo::Cluster& cluster, std::span<const std::uint32_t> machines) {
    graph::SwitchTree network;
    network.nodes.reserve(cluster.node_count());
    for (const topo::ClusterNode& node : cluster.nodes()) {
        network.nodes.push_back({node.name, node.parent == topo::kNoNode ? 0 : node.parent,
                                 node.rate > 0 ? 1e9 / static_cast<double>(node.rate) : 0});
    }
    network.node_of.reserve(machines.size());
    for (const std::uint32_t machine : machines) {
        network.node_of.push_back(cluster.node_of_machine(machine));
    }
    return network;
}

topo::AapcLoad load_of(const topo::Cluster& cluster, std::span<const std::uint32_t> machines) {
    std::vector<std::uint32_t> ranks(cluster.machine_count(), 0);
    for (const std::uint32_t machine : machines) {
        ++ranks[machine];
    }
    return topo::aapc_load(cluster, ranks);
}

} // namespace

Network::Network(const topo::Cluster& cluster, std::span<const std::uint32_t> machines)
    : layout_(tree_of(cluster, machines)), phases_(layout_), links_(links_of(cluster, machines)) {
    const topo::AapcLoad load = load_of(cluster, machines);
    alltoall_ns_per_byte_ = 1e9 * load.seconds_per_byte;
    double slowest_ns_per_byte = 0;
    for (std::uint32_t node = 0; node < cluster.node_count(); ++node) {
        if (load.by_node[node] > 0) {
            slowest_ns_per_byte = std::max(slowest_ns_per_byte, links_.nodes[node].ns_per_byte);
        }
    }
    phases_ns_per_byte_ = static_cast<double>(phases_.count()) * slowest_ns_per_byte;
}

bool Network::is_one_switch() const {
    const std::span<const aapc::TreeLink> links = layout_.links();
    return std::all_of(links.begin(), links.end(),
                       [](const aapc::TreeLink& link) { return link.outer == aapc::kNone; });
}

std::unique_ptr<const Network> network_between(const topo::Placement& placement,
                                               const topo::ClusterMap& map) {
    if (map.empty()) {
        return nullptr;
    }
    std::vector<std::uint32_t> machines;
    machines.reserve(static_cast<std::size_t>(placement.rank_count()));
    for (Rank rank = 0; rank < placement.rank_count(); ++rank) {
        machines.push_back(map.machine_of_host[placement.host(rank)]);
    }
    return std::make_unique<const Network>(map.cluster, machines);
}

double contended_ns(const Facts& facts, double alone_ns, double traffic,
                    std::uint64_t block_bytes) {
    if (facts.network == nullptr) {
        return alone_ns;
    }
    const double links_ns =
        traffic * facts.network->alltoall_ns_per_byte() * static_cast<double>(block_bytes);
    return std::max(alone_ns, facts.profile.links.contention * links_ns);
}

} // namespace ucg::plan
