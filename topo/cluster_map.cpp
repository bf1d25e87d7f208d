#include "topo/cluster_map.hpp"

namespace ucg::topo {

ClusterMap map_hosts(const Cluster& cluster, std::span<const std::uint32_t> machines) {
    ClusterMap map;
    map.cluster = cluster.pruned(machines);
    UCG_ASSERT(map.cluster.machine_count() == machines.size());
    // Pruning keeps the order of the machines that stay.
    std::vector<std::uint32_t> moved(cluster.machine_count(), 0);
    for (const std::uint32_t machine : machines) {
        moved[machine] = 1;
    }
    std::uint32_t next = 0;
    for (std::uint32_t& number : moved) {
        const bool stays = number == 1;
        number = next;
        next += stays ? 1 : 0;
    }
    for (const std::uint32_t machine : machines) {
        map.machine_of_host.push_back(moved[machine]);
    }
    return map;
}

} // namespace ucg::topo
