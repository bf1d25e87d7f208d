// Draws clusters: a table for terminals, DOT for Graphviz, SVG, and a platform for SimGrid. Loads
// are those of an alltoall with one rank on each machine (cluster_load.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "topo/cluster.hpp"

namespace ucg::topo {

/// Returns load, bottleneck and peak throughput, then a line for each switch with the load and rate
/// of the link above it and the machines that hang below it:
///
///   Cluster: 3 switches, 6 machines, links of 100 Mbit/s
///   Alltoall, one rank on each machine: load 9, peak aggregate throughput 333.3 Mbit/s
///     of 64 KiB for each: at least 47.19 ms
///   Bottleneck: s0 to s1, load 9, 100 Mbit/s
///
///   switch   load  rate        machines
///   s1       -     -           n5
///     s0     9     100 Mbit/s  n[0-2]
///     s3     8     100 Mbit/s  n[3-4]
std::string to_outline(const Cluster& cluster);

/// Returns an undirected graph for "dot -Tsvg". A link's line is the wider the larger its load is;
/// bottlenecks are red.
std::string to_dot(const Cluster& cluster);

/// Returns an SVG drawing: switches from the root down, the machines of each in rows right below
/// it, each link labelled with its load and rate and as wide as its load, bottlenecks in red.
/// Machines and links have tooltips with whole names, loads and rates.
std::string to_svg(const Cluster& cluster);

/// Returns a platform that SimGrid 3.32 and "ucg_sim --platform" load: each link full duplex, with
/// a router for each switch. `latency_s` is the latency of each link in seconds. Fails with
/// unsupported if a rate is unknown.
Result<std::string> to_simgrid(const Cluster& cluster, double latency_s);

} // namespace ucg::topo
