// How many CPUs this process may use: its affinity mask, limited by the CPU quota of its cgroups.
// Ranks that wait for others decide by it whether to spin.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ucg::topo {

/// Returns the CPUs that the calling thread may run on (its affinity mask), by the operating
/// system's numbers, in rising order. Empty if the system does not tell.
std::vector<std::uint32_t> usable_cpus();

/// Returns how many threads of this process can run at once: the CPUs of the affinity mask, limited
/// by the CPU quota of the process's cgroups (versions 1 and 2); at least 1. Reads files, so it is
/// for set-up.
unsigned usable_cpu_count();

/// Stands for a quota that does not limit.
inline constexpr unsigned kNoCpuQuota = ~0U;

/// What the cgroups of a process grant, whatever its affinity mask says.
struct CpuGrant {
    unsigned cpus = kNoCpuQuota; ///< Whole CPUs, at least 1; kNoCpuQuota if they do not limit it.
    /// The cgroup whose quota that is: equal exactly for processes under one kernel that share this
    /// quota, whatever paths they see (up to a collision of 64 bits). 0: not known, or no quota.
    std::uint64_t group = 0;
};
/// Returns what this process's cgroups grant. Reads files, so it is for set-up.
CpuGrant cpu_grant();

/// A function that returns the content of a file, or nothing if it cannot be read.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;
/// Reads a file of this machine.
std::optional<std::string> read_file(const std::string& path);

/// A CPU quota of a cgroup.
struct CpuQuota {
    double cpus = 0;       ///< 1.5: 150 ms in every 100 ms.
    std::string directory; ///< That of the cgroup.
};
/// Returns the tightest CPU quota of the process whose /proc/self files `read` reads, over its
/// cgroups and all their parents; of equal ones the outermost, which more processes share. Nothing
/// where none is set.
std::optional<CpuQuota> tightest_cpu_quota(const ReadFile& read);
/// Returns this quota in CPUs.
std::optional<double> cpu_quota(const ReadFile& read);

/// Returns the quota in CPUs that cgroup v2's cpu.max holds: "150000 100000", or nothing for "max
/// 100000".
std::optional<double> parse_cpu_max(std::string_view text);
/// Returns the quota in CPUs that cgroup v1's cpu.cfs_quota_us (-1: none) and cpu.cfs_period_us
/// hold.
std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period);

/// Returns how many of `affinity` CPUs a process can use under a quota, at least 1. Rounds down:
/// two threads spinning on a quota of 1.5 CPUs use up each period's share early and then both stand
/// still for the rest of it.
unsigned limit_cpu_count(std::size_t affinity, std::optional<double> quota);

/// Returns numbers as Linux writes lists of CPUs, "0-3,8": consecutive ones as a range. REQUIRES:
/// rising order.
std::string format_ranges(const std::vector<std::uint32_t>& numbers);
/// Reads such a list; a newline may follow it. Returns nothing for what Linux does not write, such
/// as falling order.
std::optional<std::vector<std::uint32_t>> parse_ranges(std::string_view text);

} // namespace ucg::topo
