// How far the iterations of a repeat overlap: part of what a Repeat means, for whoever runs, proves
// or prices it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// How many iterations of one message or event of a body may be in flight at once; at most 16. One
/// does not start before that of so many iterations earlier has completed, without a dependency
/// that says so. More than the rotation, so that buffers, not this, decide how far they overlap.
constexpr std::uint32_t iterations_in_flight(const Repeat& repeat) {
    return std::bit_ceil(std::max(4U, repeat.rotation + 1));
}

} // namespace ucg::graph
