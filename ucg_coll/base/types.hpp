// Small types that every folder shares.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ucg {

/// A process's number within a group, from 0. Negative values mean "none".
using Rank = std::int32_t;

/// "No rank": no parent, no root, no owner.
inline constexpr Rank kNoRank = -1;

/// Bytes of a cache line, the unit in which cores hand memory to one another, on every machine that
/// the library supports.
inline constexpr std::size_t kCacheLine = 64;

} // namespace ucg
