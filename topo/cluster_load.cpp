#include "topo/cluster_load.hpp"

#include <algorithm>

namespace ucg::topo {

namespace {

void add_rates(const Cluster& cluster, AapcLoad& load) {
    load.rates_known = load.max > 0;
    load.rates_equal = load.max > 0;
    std::uint64_t rate = 0;
    for (std::uint32_t i = 0; i < cluster.node_count(); ++i) {
        if (load.by_node[i] == 0) {
            continue;
        }
        const std::uint64_t own = cluster.node(i).rate;
        load.rates_known = load.rates_known && own > 0;
        load.rates_equal = load.rates_equal && own > 0 && (rate == 0 || own == rate);
        rate = own;
        if (own > 0) {
            load.seconds_per_byte =
                std::max(load.seconds_per_byte,
                         static_cast<double>(load.by_node[i]) / static_cast<double>(own));
        }
    }
}

bool is_bottleneck(const Cluster& cluster, const AapcLoad& load, std::uint32_t node) {
    if (load.by_node[node] == 0) {
        return false;
    }
    if (load.seconds_per_byte == 0) {
        return load.by_node[node] == load.max;
    }
    const std::uint64_t rate = cluster.node(node).rate;
    return rate > 0 && static_cast<double>(load.by_node[node]) / static_cast<double>(rate) ==
                           load.seconds_per_byte;
}

} // namespace

AapcLoad aapc_load(const Cluster& cluster) {
    return aapc_load(cluster, std::vector<std::uint32_t>(cluster.machine_count(), 1));
}

AapcLoad aapc_load(const Cluster& cluster, std::span<const std::uint32_t> ranks) {
    UCG_ASSERT(ranks.size() == cluster.machine_count());
    std::vector<std::uint64_t> before(ranks.size() + 1, 0); // Ranks on earlier machines.
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        before[i + 1] = before[i] + ranks[i];
    }
    const std::uint64_t all = before.back();
    UCG_ASSERT(all <= UINT32_MAX); // So that products fit 64 bits.

    AapcLoad load;
    for (const std::uint64_t own : ranks) {
        load.total += own * (all - own);
    }
    load.by_node.assign(cluster.node_count(), 0);
    for (std::uint32_t i = 1; i < cluster.node_count(); ++i) {
        const Cluster::MachineRange range = cluster.machines_below(i);
        const std::uint64_t below = before[range.end] - before[range.begin];
        load.by_node[i] = below * (all - below);
        load.max = std::max(load.max, load.by_node[i]);
    }
    add_rates(cluster, load);
    for (std::uint32_t i = 0; i < cluster.node_count(); ++i) {
        if (is_bottleneck(cluster, load, i)) {
            load.bottlenecks.push_back(i);
        }
    }
    return load;
}

} // namespace ucg::topo
