// What must hold of any text that a reader of clusters takes or refuses.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "topo/cluster_file.hpp"
#include "topo/draw_cluster.hpp"

namespace ucg::topo {

inline void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

/// What is taken is written and read back to an equal value in both formats, and drawn; what is not
/// is an argument's fault, or of another plugin of Slurm's, with its line.
inline void check_cluster(const Result<Cluster>& cluster) {
    static constexpr std::uint32_t kMost = 2000; // A list of hosts may have more, only slower.
    if (!cluster.ok()) {
        require(cluster.status().code() == Code::invalid_argument ||
                cluster.status().code() == Code::unsupported);
        require(cluster.status().message().substr(0, 5) == "line ");
        return;
    }
    require(cluster->machine_count() > 0 && !cluster->is_machine(0));
    if (cluster->node_count() > kMost) {
        return;
    }
    const Result<Cluster> from_json = parse_cluster_json(to_json_text(*cluster));
    require(from_json.ok() && *from_json == *cluster && from_json->hash() == cluster->hash());
    const Result<std::string> slurm = to_slurm_topology(*cluster);
    if (slurm.ok()) {
        const Result<Cluster> again = parse_slurm_topology(*slurm);
        require(again.ok() && *again == *cluster);
    } else {
        require(slurm.status().code() == Code::unsupported);
    }
    static_cast<void>(to_outline(*cluster));
    static_cast<void>(to_dot(*cluster));
    static_cast<void>(to_svg(*cluster));
    static_cast<void>(to_simgrid(*cluster, 0));
}

} // namespace ucg::topo
