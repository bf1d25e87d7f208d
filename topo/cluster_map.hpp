// Maps the hosts of a group to the machines of a cluster.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topo/cluster.hpp"

namespace ucg::topo {

/// Which machine of a cluster each host of a group is: a plain value, the same on all ranks of the
/// group. Empty: the network between the hosts is not known, or there is only one host.
struct ClusterMap {
    Cluster cluster; ///< The cluster, pruned to the machines of the group.
    /// For each host of the group's Placement, the number of its machine in `cluster`. No two are
    /// equal.
    std::vector<std::uint32_t> machine_of_host;

    bool empty() const { return machine_of_host.empty(); }
    bool operator==(const ClusterMap&) const = default;
};

/// Returns the map of a group whose hosts are the machines with the numbers `machines[host]` in
/// `cluster`. REQUIRES: each is less than machine_count(), no two are equal.
ClusterMap map_hosts(const Cluster& cluster, std::span<const std::uint32_t> machines);

} // namespace ucg::topo
