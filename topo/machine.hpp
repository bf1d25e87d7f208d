// The hardware of one host: packages, NUMA domains, last-level caches and cores, as a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topo/placement.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::topo {

/// One core and where it is. Indexes are within the machine, from 0 in the order in which the list
/// of cores first mentions them; where levels nest, these are hwloc's logical indexes.
struct Core {
    std::uint32_t package = 0;
    std::uint32_t numa = 0; ///< The nearest NUMA domain.
    std::uint32_t l3 = 0;   ///< Last-level cache group, whatever its level is; of no other core if
                            ///< nothing is known of caches.
    std::uint32_t l2 = 0;   ///< Cores with equal numbers share an L2.
    std::vector<std::uint32_t> threads = {}; ///< The operating system's CPU numbers of its threads.

    bool operator==(const Core&) const = default;
};

/// Sizes of the machine's caches and memory in bytes; 0 if unknown.
struct MemorySizes {
    std::uint64_t l2_bytes = 0;     ///< Of one L2.
    std::uint64_t l3_bytes = 0;     ///< Of one last-level cache.
    std::uint64_t memory_bytes = 0; ///< Of the whole machine.

    bool operator==(const MemorySizes&) const = default;
};

class Machine {
  public:
    /// Makes a machine of which nothing is known: it has no cores.
    Machine() = default;
    /// REQUIRES: every index is less than the count of cores.
    explicit Machine(std::vector<Core> cores, const MemorySizes& sizes = {});

    const std::vector<Core>& cores() const { return cores_; }
    std::uint32_t core_count() const { return static_cast<std::uint32_t>(cores_.size()); }
    std::uint32_t package_count() const { return package_count_; }
    std::uint32_t numa_count() const { return numa_count_; }
    std::uint32_t l3_count() const { return l3_count_; }
    std::uint32_t l2_count() const { return l2_count_; }
    const MemorySizes& sizes() const { return sizes_; }
    std::uint64_t l2_bytes() const { return sizes_.l2_bytes; }
    std::uint64_t l3_bytes() const { return sizes_.l3_bytes; }
    std::uint64_t memory_bytes() const { return sizes_.memory_bytes; }

    /// Returns the place of a process bound to one core, on host 0. REQUIRES: core < core_count().
    Place place_of_core(std::uint32_t core) const;
    /// Returns the place of a process bound to the given CPUs (the operating system's numbers): the
    /// innermost levels that contain them all, on host 0. Only the host is known if `cpus` is empty
    /// or the machine lacks one of them.
    Place place_of(const std::vector<std::uint32_t>& cpus) const;

    bool operator==(const Machine&) const = default;

  private:
    std::vector<Core> cores_;
    MemorySizes sizes_;
    std::uint32_t package_count_ = 0;
    std::uint32_t numa_count_ = 0;
    std::uint32_t l3_count_ = 0;
    std::uint32_t l2_count_ = 0;
};

/// Returns the text form, which parse_machine() reads back to an equal value: a header line and one
/// line per core:
///
///   machine cores 2 l2_bytes 1048576 l3_bytes 33554432 memory_bytes 25769803776
///   core 0: package 0 numa 0 l3 0 l2 0 threads 0,2
///   core 1: package 0 numa 0 l3 0 l2 1 threads 1,3
std::string to_text(const Machine& machine);
/// Reads the text form, skipping empty lines and what follows '#'. Fails with invalid_argument and
/// "line L, column C: expected ..., found ...".
Result<Machine> parse_machine(std::string_view text);

/// Returns the machine that this process runs on, all of it, whatever the process is bound to and
/// whatever its cgroup hides, so that all processes of a host number its cores alike. Like every
/// program that uses hwloc it heeds HWLOC_SYNTHETIC and HWLOC_XMLFILE. Takes milliseconds. Fails
/// with io_error, logged.
Result<Machine> discover_machine();
/// Returns the machine of hwloc's synthetic description, for example "package:2 numa:1 l3:2 core:4
/// pu:1". Fails with invalid_argument.
Result<Machine> machine_from_synthetic(const std::string& description);
/// Returns the machine of XML that lstopo exported (the text itself, not a file name). Fails with
/// invalid_argument.
Result<Machine> machine_from_xml(const std::string& xml);

} // namespace ucg::topo
