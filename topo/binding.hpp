// Where a process is, by the CPUs that it is bound to, without a look at the rest of the machine:
// every process of a job asks when it starts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topo/cpus.hpp"
#include "topo/machine.hpp"

namespace ucg::topo {

/// The levels around one CPU: the CPUs of each (the operating system's numbers), rising. A level
/// that the machine lacks is the one outside it.
struct Surroundings {
    std::vector<std::uint32_t> package;
    std::vector<std::uint32_t> numa;
    std::vector<std::uint32_t> cache; ///< The last level.
    std::vector<std::uint32_t> core;

    bool operator==(const Surroundings&) const = default;
};

/// By what the kernel tells of `cpu` in /sys, as `read` shows it: a dozen small files, however
/// large the machine is. Nothing where it does not tell of the CPU's core.
std::optional<Surroundings> surroundings(std::uint32_t cpu, const ReadFile& read);
/// Nothing if the machine lacks that CPU.
std::optional<Surroundings> surroundings(std::uint32_t cpu, const Machine& machine);

/// The place of a process bound to `cpus`, of which one is amid `around`: the innermost levels that
/// contain them all. A level's number is that of its lowest CPU; numbers so grow in the order of
/// hwloc's logical indexes, and all processes of a host number alike.
Place place_within(const Surroundings& around, const std::vector<std::uint32_t>& cpus);

/// The same for this machine, on host 0. Only the host is known if `cpus` is empty. hwloc is asked
/// where the user has it show another machine (HWLOC_SYNTHETIC, HWLOC_XMLFILE, HWLOC_FSROOT), and
/// where there is no /sys; it takes milliseconds, and may fail with io_error, logged.
Result<Place> place_of_binding(const std::vector<std::uint32_t>& cpus);

} // namespace ucg::topo
