// How long rounds of recursive doubling in which each rank only sends upwards keep hosts' links.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {

/// Returns Link::sends_before_ns() for messages of `bytes` in `rounds` rounds. A host's link
/// carries the bytes of fewer messages: over short distances only some of its ranks send to other
/// hosts.
inline double rounds_before_ns(const Link& link, unsigned rounds, std::uint64_t bytes) {
    double across = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        across +=
            std::min(1.0, static_cast<double>(std::uint64_t{1} << round) / link.inner_ranks());
    }
    const double fixed_ns = link.sends_before_ns(1, 0);
    return rounds * fixed_ns + across * (link.sends_before_ns(1, bytes) - fixed_ns);
}

} // namespace ucg::plan
