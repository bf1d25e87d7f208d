// How many CPUs this process may use: its affinity mask, limited by the CPU quota of its cgroups.
// Those who wait for others decide by it whether to spin.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ucg::topo {

/// CPUs that the calling thread may run on (affinity mask), the operating system's numbers, rising.
/// Empty if the system does not tell.
std::vector<std::uint32_t> usable_cpus();

/// How many threads can run at once: the affinity mask limited by the CPU quota of the cgroups
/// (versions 1 and 2) that this process is in, at least 1. Reads files: ask at set-up.
unsigned usable_cpu_count();

/// The content of a file, nothing if it cannot be read.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;
/// Of this machine.
std::optional<std::string> read_file(const std::string& path);

/// The tightest CPU quota of the process whose /proc/self files `read` shows, over its cgroups and
/// all their parents, in CPUs (1.5: 150 ms in every 100 ms). Nothing where none is set.
std::optional<double> cpu_quota(const ReadFile& read);

/// Content of cgroup v2's cpu.max, "150000 100000" or "max 100000", in CPUs.
std::optional<double> parse_cpu_max(std::string_view text);
/// Content of cgroup v1's cpu.cfs_quota_us (-1: none) and cpu.cfs_period_us, in CPUs.
std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period);

/// `affinity` CPUs under a quota, at least 1. Rounds down: two threads spinning on a quota of 1.5
/// CPUs use up each period's share early and then both stand still for the rest of it.
unsigned limit_cpu_count(std::size_t affinity, std::optional<double> quota);

/// "0-3,8": numbers that follow one another as a range, as Linux writes lists of CPUs.
/// REQUIRES: rising order.
std::string format_ranges(const std::vector<std::uint32_t>& numbers);
/// The reverse; a newline may follow. Nothing for what Linux does not write, such as falling order.
std::optional<std::vector<std::uint32_t>> parse_ranges(std::string_view text);

} // namespace ucg::topo
