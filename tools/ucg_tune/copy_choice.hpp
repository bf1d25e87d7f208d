// Which way of copying messages to take, given what each took: by thresholds from short lists, so
// that a machine comes to the same ones in each measurement.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace ucg::tools {

/// What a message took, by its length in bytes; in nanoseconds. Of several uses: their geometric
/// mean.
using TimesByLength = std::map<std::uint64_t, double>;

/// The mean of these uses, of lengths that all have. REQUIRES: at least one.
TimesByLength mean_of(std::span<const TimesByLength> uses);

/// The shortest of `lengths`, which rise, from which on the second way takes hardly longer than the
/// first at any length that was measured of both; the last one if there is none.
std::uint64_t turning_point(const TimesByLength& first, const TimesByLength& second,
                            std::span<const std::uint64_t> lengths);

/// The first of these ways that over all lengths takes hardly longer than the best of them.
/// REQUIRES: at least one; all have times of the same lengths.
std::size_t good_enough(std::span<const TimesByLength> ways);

} // namespace ucg::tools
