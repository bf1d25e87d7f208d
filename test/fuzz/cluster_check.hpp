// What must hold for any text that a reader of clusters accepts or refuses.
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

/// A cluster that is accepted is written and read back to an equal value in both formats, and
/// drawn. A refusal names the line and says that the argument is wrong, or that it is for another
/// topology plugin of Slurm's.
inline void check_cluster(const Result<Cluster>& cluster) {
    // A list of hosts may have more; that only takes longer.
    static constexpr std::uint32_t kMost = 2000;
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

/// A reader that takes several trees reads one like the reader that takes one.
inline void check_forest(const Result<Cluster>& several, const Result<Cluster>& one) {
    if (one.ok()) {
        require(several.ok() && *several == *one);
        return;
    }
    require(!several.ok() || several->is_forest());
    if (several.ok()) {
        require(several->machine_count() > 0);
        const std::uint32_t last = several->machine_count() - 1;
        require(!several->pruned(std::vector<std::uint32_t>{last}).is_forest());
    }
}

} // namespace ucg::topo
