// Schedules as Graphviz graphs: one cluster per rank, messages as arrows between them.
#pragma once

#include <span>
#include <string>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// Returns a digraph of the given ranks' programs. It has the messages between any two of these
/// ranks.
std::string to_dot(std::span<const Schedule> schedules);

} // namespace ucg::graph
