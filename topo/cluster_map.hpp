// Where the hosts of a group are in a cluster.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topo/cluster.hpp"

namespace ucg::topo {

/// A plain value, the same on all ranks of a group. Empty: the network between the hosts is not
/// known, or there is only one.
struct ClusterMap {
    Cluster cluster; ///< Pruned to the machines of the group.
    /// By the host of a Placement: its machine's number in `cluster`. No two are equal.
    std::vector<std::uint32_t> machine_of_host;

    bool empty() const { return machine_of_host.empty(); }
    bool operator==(const ClusterMap&) const = default;
};

/// `machines[host]` is the number of the host's machine in `cluster`. REQUIRES: each is less than
/// machine_count(), no two are equal.
ClusterMap map_hosts(const Cluster& cluster, std::span<const std::uint32_t> machines);

} // namespace ucg::topo
