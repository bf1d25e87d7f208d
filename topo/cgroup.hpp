// Where the kernel keeps the limits of a process: the directories of its cgroups. Private to topo.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ucg::topo {

struct CgroupDirectory {
    int version = 2;  ///< 1 or 2: the two name their files differently.
    std::string path; ///< Without a slash at the end.

    bool operator==(const CgroupDirectory&) const = default;
};

/// The directories that limit the CPU time of a process, from its own groups up to each mount's
/// root. `groups` is the content of /proc/self/cgroup, `mounts` of /proc/self/mountinfo (proc(5)).
/// Lines that are not understood are skipped: no limit is then found there.
std::vector<CgroupDirectory> cpu_cgroup_directories(std::string_view groups,
                                                    std::string_view mounts);

} // namespace ucg::topo
