// Times multicasts between the processes of a bootstrap over UCX.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/ucg_tune/bootstrap.hpp"
#include "tools/ucg_tune/network_fit.hpp"

namespace ucg::tools {

struct NetworkOptions {
    std::uint32_t messages_max = 8;                     ///< At least two different lengths.
    std::vector<std::uint64_t> bytes = {8, 1024, 8192}; ///< Two different ones at least.
    double seconds = 10;                                ///< Approximate, without connecting.
    std::function<void(const std::string&)> progress = [](const std::string&) {};
};

struct NetworkResult {
    std::vector<Multicast> multicasts;
    StreamTimes stream;
    PairwiseTimes exchange;
    NetworkFit fit;
    std::vector<std::string> hosts; ///< By rank.
    std::vector<std::string> notes;
};

/// Times multicasts, which rank 0 sends and all others answer; its messages go to them in rotation.
/// Multicasts of all kinds are repeated in rounds until the time is over, so that a disturbance
/// affects all kinds alike; then rank 0 streams to rank 1, and all ranks exchange messages. Called
/// by all ranks with equal options; the result of ranks other than 0 has hosts only. Fails when UCX
/// does.
Result<NetworkResult> probe_network(TcpStar& bootstrap, const NetworkOptions& options);

} // namespace ucg::tools
