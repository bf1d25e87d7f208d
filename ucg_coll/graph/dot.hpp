// Schedules as Graphviz graphs: one cluster per rank, messages as arrows between them.
#pragma once

#include <span>
#include <string>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// A digraph of the given ranks' programs. Messages between ranks that are both given are drawn.
std::string to_dot(std::span<const Schedule> schedules);

} // namespace ucg::graph
