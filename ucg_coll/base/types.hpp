// Small types that every folder shares.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ucg {

/// A process's number within a group, from 0. Negative values mean "none".
using Rank = std::int32_t;

/// "No rank": no parent, no root, no owner.
inline constexpr Rank kNoRank = -1;

/// What one core hands to another: the unit of coherence on every machine we support.
inline constexpr std::size_t kCacheLine = 64;

} // namespace ucg
