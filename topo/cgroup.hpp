// Finds the directories of a process's cgroups, in which the kernel keeps its limits. Private to
// topo.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ucg::topo {

struct CgroupDirectory {
    int version = 2;  ///< The cgroup version, 1 or 2: the two name their files differently.
    std::string path; ///< Path of the directory, without a slash at the end.

    bool operator==(const CgroupDirectory&) const = default;
};

/// Returns the directories that limit the CPU time of a process: for each mount of a cgroup
/// hierarchy, from the process's own group up to the mount's root. `groups` is the content of
/// /proc/self/cgroup, `mounts` that of /proc/self/mountinfo (proc(5)). Lines that are not
/// understood are skipped, so that no limit is found there.
std::vector<CgroupDirectory> cpu_cgroup_directories(std::string_view groups,
                                                    std::string_view mounts);

} // namespace ucg::topo
