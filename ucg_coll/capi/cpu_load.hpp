// How many ranks share how many CPUs.
#pragma once

#include <cstdint>

namespace ucg::capi {

/// Ranks, and the CPUs that they may use by affinity masks and control groups.
struct CpuLoad {
    unsigned ranks = 1;
    unsigned cpus = 1; ///< At least 1.

    bool oversubscribed() const { return ranks > cpus; }
    /// Compares ranks per CPU.
    bool operator<(const CpuLoad& other) const {
        return std::uint64_t{ranks} * other.cpus < std::uint64_t{other.ranks} * cpus;
    }
};

} // namespace ucg::capi
