// What all-to-all personalized communication (AAPC) asks of the links of a cluster: section 3 of
// Faraj and Yuan, "Message Scheduling for All-to-All Personalized Communication on Ethernet
// Switched Clusters" (2005).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topo/cluster.hpp"

namespace ucg::topo {

/// How AAPC loads a cluster: each rank sends one message to each other rank; what stays on a
/// machine uses no link.
struct AapcLoad {
    /// By node: messages in each direction of the link to its parent, |Mu| x |Mv|; of the root 0.
    std::vector<std::uint64_t> by_node;
    std::uint64_t max = 0;   ///< The load of the pattern: of the most loaded link.
    std::uint64_t total = 0; ///< Messages that leave their machine.
    /// Seconds for each byte of a message: the largest load / rate, among the links whose rate is
    /// known; 0 if none is.
    double seconds_per_byte = 0;
    /// Nodes whose link to the parent needs the time above; where no rate is known, has load `max`.
    std::vector<std::uint32_t> bottlenecks;
    bool rates_known = false; ///< Of all links that carry something.
    bool rates_equal = false; ///< ... and they are the same.

    /// Peak aggregate throughput in bytes per second, total / seconds_per_byte; 0 if unknown.
    double peak() const {
        return seconds_per_byte > 0 ? static_cast<double>(total) / seconds_per_byte : 0;
    }
    bool operator==(const AapcLoad&) const = default;
};

/// One rank on each machine.
AapcLoad aapc_load(const Cluster& cluster);
/// `ranks[machine]` of them. REQUIRES: one entry per machine; fewer than 2^32 ranks in all.
AapcLoad aapc_load(const Cluster& cluster, std::span<const std::uint32_t> ranks);

} // namespace ucg::topo
