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

/// The longest single price (3.3 days), and the time after which no clock runs on (53 days), so
/// that no sum of one step overflows.
inline constexpr Picoseconds kPriceMax = Picoseconds{1} << 58;
inline constexpr Picoseconds kTimeEnd = Picoseconds{1} << 62;

/// Rounds to the nearest picosecond, at most kPriceMax. REQUIRES: ns >= 0.
inline Picoseconds to_picoseconds(double ns) {
    return std::llround(std::min(ns * 1000, static_cast<double>(kPriceMax)));
}

inline double to_ns(Picoseconds time) {
    return static_cast<double>(time) / 1000;
}

} // namespace ucg::sim
