// Clusters for tests.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "topo/cluster.hpp"

namespace ucg::topo::test {

ClusterNode network_switch(std::string name, std::uint32_t parent, std::uint64_t rate = 0);
ClusterNode machine(std::string name, std::uint32_t parent, std::uint64_t rate = 0);

/// Figure 1 of Faraj and Yuan: n0, n1 and n2 are on s0, n3 and n4 on s3, n5 on s1; s0 and s3 are
/// below s1.
Cluster figure1(std::uint64_t rate = 0);

/// A tree of any shape with `machines` machines n0, n1, ... on up to `switches` switches s0, s1,
/// ..., some of which may have nothing below them. Rates are drawn from few values, 0 among them.
Cluster random_cluster(std::mt19937_64& random, std::uint32_t switches, std::uint32_t machines);

} // namespace ucg::topo::test
