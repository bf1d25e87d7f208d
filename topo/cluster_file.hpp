// Reads a cluster's file in any of the supported formats.
#pragma once

#include <string_view>

#include "topo/cluster_json.hpp"
#include "topo/cluster_slurm.hpp"

namespace ucg::topo {

/// Reads JSON if the first character that is not blank is '{', else Slurm's topology.conf.
/// `bare_unit`: see parse_slurm_topology(). Unless `trees` allows several, the switches must form
/// one tree. Fails with "line L: what is wrong" and invalid_argument, or unsupported if the file is
/// that of Slurm's plugin topology/block.
Result<Cluster> parse_cluster(std::string_view text, std::uint64_t bare_unit = 0,
                              Trees trees = Trees::one);

} // namespace ucg::topo
