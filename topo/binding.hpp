// Finds the place of a process from the CPUs that it is bound to, without discovering the rest of
// the machine, because every process of a job does this when it starts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topo/cpus.hpp"
#include "topo/machine.hpp"

namespace ucg::topo {

/// The levels of the machine that contain one CPU. Each member lists the CPUs of one level in
/// rising order, by the operating system's numbers. A machine without NUMA domains is taken for one
/// that has one in each package. If nothing is known of caches, no cores share one.
struct CpuSurroundings {
    std::vector<std::uint32_t> package;
    std::vector<std::uint32_t> numa;
    std::vector<std::uint32_t> cache; ///< CPUs that share the last-level cache.
    std::vector<std::uint32_t> core;

    bool operator==(const CpuSurroundings&) const = default;
};

/// Returns the levels around `cpu` from what the kernel writes in /sys, which `read` reads: about a
/// dozen small files, however large the machine is. Returns nothing if /sys does not tell which
/// CPUs the core and the package of `cpu` have.
std::optional<CpuSurroundings> surroundings(std::uint32_t cpu, const ReadFile& read);
/// Returns the levels around `cpu` in `machine`, or nothing if the machine lacks that CPU.
std::optional<CpuSurroundings> surroundings(std::uint32_t cpu, const Machine& machine);

/// Returns the place of a process bound to `cpus`, one of which `around` surrounds: the innermost
/// levels that contain them all. A level's index is the number of its lowest CPU. So indexes grow
/// in the order of hwloc's logical indexes, and all processes of a host number a level alike.
Place place_within(const CpuSurroundings& around, const std::vector<std::uint32_t>& cpus);

/// Returns the place, on host 0 of this machine, of a process bound to `cpus`. Only the host is
/// known if `cpus` is empty. The place comes from /sys, or from hwloc where there is no /sys or
/// where the user has hwloc show another machine (HWLOC_SYNTHETIC, HWLOC_XMLFILE, HWLOC_FSROOT).
/// hwloc takes milliseconds, and may fail with io_error, logged.
Result<Place> place_of_binding(const std::vector<std::uint32_t>& cpus);

} // namespace ucg::topo
