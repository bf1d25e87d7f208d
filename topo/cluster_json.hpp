// Clusters as JSON, in which each link has its own rate.
#pragma once

#include <string>
#include <string_view>

#include "topo/cluster.hpp"

namespace ucg::topo {

/// Reads
///
///   {"nodes": [
///     {"name": "core", "kind": "switch"},
///     {"name": "leaf", "kind": "switch", "parent": "core", "bytes_per_second": 1250000000},
///     {"name": "n0", "kind": "machine", "parent": "leaf", "bytes_per_second": 125000000}
///   ]}
///
/// Nodes may come in any order. "parent" names the switch above, and only the root has none (where
/// `trees` allows it, several roots); "bytes_per_second" is the rate of the link to it in each
/// direction, and may be left out where it is unknown. Fails with invalid_argument and "line L:
/// what is wrong"; a member that is not listed here is refused, too.
Result<Cluster> parse_cluster_json(std::string_view text, Trees trees = Trees::one);

/// Returns the text of a file, one line per node, that parse_cluster_json() reads back to an equal
/// value. REQUIRES: !cluster.is_forest().
std::string to_json_text(const Cluster& cluster);

} // namespace ucg::topo
