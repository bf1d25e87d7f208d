#include "tools/ucg_plan/topology_option.hpp"

#include <numeric>
#include <vector>

#include "tools/topology_file.hpp"

namespace ucg::tools {

void TopologyOption::add_option(CLI::App& app) {
    add_topology_option(app, path_,
                        ". Host i of the placement is machine i, in the order in which \"ucg_topo "
                        "cluster\" has them");
}

Result<std::optional<topo::Cluster>> TopologyOption::load() const {
    if (path_.empty()) {
        return std::optional<topo::Cluster>();
    }
    Result<topo::Cluster> cluster = read_topology(path_);
    if (!cluster) {
        return cluster.status();
    }
    return std::optional(std::move(*cluster));
}

Result<std::unique_ptr<const plan::Network>>
TopologyOption::network(const std::optional<topo::Cluster>& cluster,
                        const topo::Placement& placement) const {
    const std::uint32_t hosts = placement.host_count();
    if (!cluster || hosts < 2) {
        return std::unique_ptr<const plan::Network>();
    }
    if (hosts > cluster->machine_count()) {
        return failure(Code::invalid_argument, "{}: {} machine{}, but there are {} hosts", path_,
                       cluster->machine_count(), cluster->machine_count() == 1 ? "" : "s", hosts);
    }
    std::vector<std::uint32_t> machines(hosts);
    std::iota(machines.begin(), machines.end(), 0U);
    return plan::network_between(placement, topo::map_hosts(*cluster, machines));
}

Result<std::unique_ptr<const plan::Network>>
TopologyOption::network(const topo::Placement& placement) const {
    const Result<std::optional<topo::Cluster>> cluster = load();
    return cluster ? network(*cluster, placement) : cluster.status();
}

} // namespace ucg::tools
