// Draws machines and placements for people: an indented outline for terminals, DOT for Graphviz.
#pragma once

#include <string>

#include "topo/machine.hpp"
#include "topo/placement.hpp"

namespace ucg::topo {

/// Returns an outline with one line per package, NUMA domain and last-level cache, the latter with
/// its cores, like the console output of lstopo:
///
///   Machine: 2 packages, 2 NUMA domains, ..., 12 CPUs, 2 GiB memory on NUMA nodes
///     Package 0
///       NUMA 0
///         Cache 0 (16 MiB): cores 0-5, CPUs 0-5
std::string to_outline(const Machine& machine);
/// Returns such an outline of the ranks on their hosts, after a line that counts how far each rank
/// is from the next.
std::string to_outline(const Placement& placement);

/// Return a picture of nested boxes for "dot -Tsvg".
std::string to_dot(const Machine& machine);
std::string to_dot(const Placement& placement);

/// Returns a size such as "32 MiB", in the largest unit in which it is at least 1, with one decimal
/// unless it is whole.
std::string format_bytes(std::uint64_t bytes);

} // namespace ucg::topo
