// Chooses a way of copying messages from the times that each way took. Thresholds come from short
// lists, so that each measurement of a machine yields the same ones.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace ucg::tools {

/// The times of messages in nanoseconds, by their length in bytes. A time for several uses is their
/// geometric mean.
using TimesByLength = std::map<std::uint64_t, double>;

/// Returns the geometric mean of these uses, for the lengths that all of them have. REQUIRES: at
/// least one use.
TimesByLength mean_of(std::span<const TimesByLength> uses);

/// The shortest of `lengths`, which rise, from which on the second way takes hardly longer than the
/// first at any length that was measured of both; the last one if there is none.
std::uint64_t turning_point(const TimesByLength& first, const TimesByLength& second,
                            std::span<const std::uint64_t> lengths);

/// Returns the index of the first of these ways that over all lengths takes hardly longer than the
/// best of them. REQUIRES: at least one; all have times of the same lengths.
std::size_t good_enough(std::span<const TimesByLength> ways);

} // namespace ucg::tools
