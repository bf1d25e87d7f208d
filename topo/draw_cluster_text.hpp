// Words that drawings of clusters share. Private to topo.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "topo/cluster.hpp"
#include "topo/cluster_load.hpp"

namespace ucg::topo {

/// "100 Mbit/s": of the link above `node`.
std::string rate_of(const Cluster& cluster, std::uint32_t node);

/// "9, 100 Mbit/s": load and, if it is known, rate of the link above `node`.
std::string link_label(const Cluster& cluster, const AapcLoad& load, std::uint32_t node);

/// The same on two lines, for `count` machines that follow one another, or one node: "load 9 each",
/// "100 Mbit/s".
std::array<std::string, 2> link_lines(const Cluster& cluster, const AapcLoad& load,
                                      std::uint32_t node, std::uint32_t count);

/// The machines right below a switch as a host list.
std::string machines_of(const Cluster& cluster, std::uint32_t node);

/// Lines over a drawing: what there is, load and peak, bottlenecks.
std::vector<std::string> summary(const Cluster& cluster, const AapcLoad& load);

} // namespace ucg::topo
