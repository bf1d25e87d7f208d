// A cluster's file in either of the formats that there are.
#pragma once

#include <string_view>

#include "topo/cluster_json.hpp"
#include "topo/cluster_slurm.hpp"

namespace ucg::topo {

/// JSON if the first character that is not blank is '{', else Slurm's topology.conf. `bare_unit`:
/// see parse_slurm_topology(). Fails with invalid_argument, or unsupported where it is a
/// file of another plugin, and "line L: what is wrong".
Result<Cluster> parse_cluster(std::string_view text, std::uint64_t bare_unit = 0);

} // namespace ucg::topo
