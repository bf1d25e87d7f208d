// Times multicasts between the processes of a meeting over UCX.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/ucg_tune/meeting.hpp"
#include "tools/ucg_tune/network_fit.hpp"

namespace ucg::tools {

struct NetworkOptions {
    std::uint32_t messages_max = 8;                     ///< k: multicasts of 1 to k, k >= 2.
    std::vector<std::uint64_t> bytes = {8, 1024, 8192}; ///< Two different ones at least.
    double seconds = 10;                                ///< About, without connecting.
    std::function<void(const std::string&)> progress = [](const std::string&) {};
};

struct NetworkResult {
    std::vector<Multicast> multicasts;
    Stream stream;
    Exchange exchange;
    NetworkFit fit;
    std::vector<std::string> hosts; ///< By rank.
    std::vector<std::string> notes;
};

/// Rank 0 sends, all others answer; messages go to them in turn. Multicasts of all kinds are
/// repeated in rounds until time is out, so that a disturbance meets all alike; then rank 0 streams
/// to rank 1, and all exchange messages. Called by all ranks with equal options; the result of
/// others than rank 0 has hosts only. Fails when UCX does.
Result<NetworkResult> probe_network(Meeting& meeting, const NetworkOptions& options);

} // namespace ucg::tools
