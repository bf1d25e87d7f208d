// Which CPUs of a machine are equally far apart.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/topo.hpp"

namespace ucg::tools {

/// Some CPUs, by the operating system's numbers, at one distance from the first of them.
struct CpusAtDistance {
    topo::Distance distance = topo::Distance::core;
    std::vector<std::uint32_t> cpus; ///< The first is as far from each of the others.
};

/// For each distance that occurs between two of `cpus`, returns the CPU that has the most others at
/// exactly this distance, followed by those others. Nearest distance first.
std::vector<CpusAtDistance> neighbours_of(const topo::Machine& machine,
                                          const std::vector<std::uint32_t>& cpus);

} // namespace ucg::tools
