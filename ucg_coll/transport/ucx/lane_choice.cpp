#include "ucg_coll/transport/ucx/lane_choice.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace ucg::transport::ucx {

double lane_cost(const LaneCandidate& candidate, std::size_t peers) {
    return candidate.latency_s +
           candidate.latency_per_peer_s * static_cast<double>(std::max<std::size_t>(peers, 1)) +
           candidate.overhead_s;
}

std::vector<std::string> lanes_left_out(std::span<const LaneCandidate> candidates,
                                        std::size_t peers) {
    std::vector<std::string> reasons(candidates.size());
    std::vector<std::size_t> best; // One for each adapter.
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const LaneCandidate& candidate = candidates[i];
        if (!candidate.network) {
            continue;
        }
        if (candidate.endpoints_max < peers) {
            reasons[i] = fmt::format("is for {} peers at most", candidate.endpoints_max);
            continue;
        }
        const auto rival = std::find_if(best.begin(), best.end(), [&](std::size_t each) {
            return candidates[each].device == candidate.device;
        });
        if (rival == best.end()) {
            best.push_back(i);
            continue;
        }
        const bool wins = lane_cost(candidate, peers) < lane_cost(candidates[*rival], peers);
        const std::size_t winner = wins ? i : *rival;
        const std::size_t loser = wins ? *rival : i;
        reasons[loser] = fmt::format("{} serves the same device", candidates[winner].transport);
        *rival = winner;
    }
    return reasons;
}

} // namespace ucg::transport::ucx
