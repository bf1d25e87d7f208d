// Texts that the drawings of clusters share. Private to topo.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "topo/cluster.hpp"
#include "topo/cluster_load.hpp"

namespace ucg::topo {

/// Returns the rate of the link above `node`: "100 Mbit/s".
std::string rate_of(const Cluster& cluster, std::uint32_t node);

/// Returns the load and, if it is known, the rate of the link above `node`: "9, 100 Mbit/s".
std::string link_label(const Cluster& cluster, const AapcLoad& load, std::uint32_t node);

/// Returns load and rate on two lines, "load 9 each" and "100 Mbit/s", for the links above `count`
/// machines that follow one another from `node` on, or above one node.
std::array<std::string, 2> link_lines(const Cluster& cluster, const AapcLoad& load,
                                      std::uint32_t node, std::uint32_t count);

/// Returns the machines right below a switch as a host list.
std::string machines_of(const Cluster& cluster, std::uint32_t node);

/// Returns the lines above a drawing: numbers of switches and machines, load and peak, bottlenecks.
std::vector<std::string> summary(const Cluster& cluster, const AapcLoad& load);

} // namespace ucg::topo
