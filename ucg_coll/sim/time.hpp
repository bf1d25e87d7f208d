// Simulated time: whole picoseconds. Sums of integers do not depend on their order, so ranks that
// do the same take exactly as long, equal times are equal, and a closed form can be compared with a
// simulation without a tolerance. A double has none of this once 0.4 ns is added up in two orders.
// Only prices are rounded, each once, by at most half a picosecond. 63 bits are 106 days.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ucg::sim {

using Picoseconds = std::int64_t;

/// When a run is given up (3.3 days). It is the longest price, too: a run in which some price is
/// longer comes to it, so no result has a price that was cut short.
inline constexpr Picoseconds kTimeEnd = Picoseconds{1} << 58;

/// Rounds to the nearest picosecond, at most kTimeEnd. REQUIRES: ns >= 0.
inline Picoseconds to_picoseconds(double ns) {
    return std::llround(std::min(ns * 1000, static_cast<double>(kTimeEnd)));
}

/// Returns `time + price`, at most kTimeEnd, so that prices without number may be added up.
inline Picoseconds later(Picoseconds time, Picoseconds price) {
    return std::min(time + price, kTimeEnd);
}

inline double to_ns(Picoseconds time) {
    return static_cast<double>(time) / 1000;
}

} // namespace ucg::sim
