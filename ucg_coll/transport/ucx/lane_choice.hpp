// Which interfaces the short lane keeps of those that could serve it. Does not use UCX.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ucg::transport::ucx {

/// What UCX says of an interface, as far as it decides.
struct LaneCandidate {
    std::string transport;
    std::string device;
    bool network = false;          ///< It is an adapter, not memory that processes share.
    double latency_s = 0;          ///< With one peer.
    double latency_per_peer_s = 0; ///< More for each peer: adapters forget connections.
    double overhead_s = 0;         ///< Processor time for each message.
    std::size_t endpoints_max = 0; ///< So many peers it is meant for.
};

/// Returns the cost of a message over the interface, in seconds, in a job of so many processes.
double lane_cost(const LaneCandidate& candidate, std::size_t peers);

/// Returns why each interface is not kept; empty for those that are. Of the interfaces to one
/// adapter only the cheapest is: each costs its receive buffers in every process, and a look in
/// every wait, even if nobody connects to it. `peers`: as many in all processes, so that all choose
/// alike; 0: not known, which counts as 1.
std::vector<std::string> lanes_left_out(std::span<const LaneCandidate> candidates,
                                        std::size_t peers);

} // namespace ucg::transport::ucx
