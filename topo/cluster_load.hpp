// How all-to-all personalized communication (AAPC) loads the links of a cluster: section 3 of Faraj
// and Yuan, "Message Scheduling for All-to-All Personalized Communication on Ethernet Switched
// Clusters" (2005).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topo/cluster.hpp"

namespace ucg::topo {

/// The load of AAPC on a cluster, in which each rank sends one message to each other rank. Messages
/// within a machine use no link.
struct AapcLoad {
    /// For each node, the messages in each direction of the link to its parent: |Mu| x |Mv|, the
    /// ranks on one side of the link times those on the other. 0 for the root.
    std::vector<std::uint64_t> by_node;
    std::uint64_t max = 0;   ///< The load of the pattern: that of the most loaded link.
    std::uint64_t total = 0; ///< Messages that leave their machine.
    /// Seconds that the pattern takes for each byte of a message: the largest load / rate among the
    /// links whose rate is known; 0 if none is.
    double seconds_per_byte = 0;
    /// Nodes whose link to the parent takes `seconds_per_byte`; where no rate is known, nodes whose
    /// link has the load `max`.
    std::vector<std::uint32_t> bottlenecks;
    bool rates_known = false; ///< All links that carry messages have a known rate.
    bool rates_equal = false; ///< These rates are known and equal.

    /// Returns the peak aggregate throughput in bytes per second, total / seconds_per_byte; 0 if
    /// unknown.
    double peak() const {
        return seconds_per_byte > 0 ? static_cast<double>(total) / seconds_per_byte : 0;
    }
    bool operator==(const AapcLoad&) const = default;
};

/// Returns the load with one rank on each machine.
AapcLoad aapc_load(const Cluster& cluster);
/// Returns the load with `ranks[machine]` ranks on each machine. REQUIRES: one entry per machine;
/// fewer than 2^32 ranks in all.
AapcLoad aapc_load(const Cluster& cluster, std::span<const std::uint32_t> ranks);

} // namespace ucg::topo
