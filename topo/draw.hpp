// Machines and placements for people: an indented outline for terminals, DOT for Graphviz.
#pragma once

#include <string>

#include "topo/machine.hpp"
#include "topo/placement.hpp"

namespace ucg::topo {

/// One line per package, NUMA domain and last-level cache with its cores, as lstopo's console
/// output:
///
///   Machine: 2 packages, 2 NUMA domains, 2 last-level caches, 12 cores, 12 CPUs, 2 GiB memory
///     Package 0
///       NUMA 0
///         Cache 0 (16 MiB): cores 0-5, CPUs 0-5
std::string to_outline(const Machine& machine);
/// The same for ranks on their hosts; first a line that counts how far each rank is from the next.
std::string to_outline(const Placement& placement);

/// A picture of boxes in boxes: "dot -Tsvg".
std::string to_dot(const Machine& machine);
std::string to_dot(const Placement& placement);

/// "32 MiB"; the largest unit that leaves a whole number, else one decimal.
std::string format_bytes(std::uint64_t bytes);

} // namespace ucg::topo
