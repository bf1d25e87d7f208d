// Small types that every folder shares.
#pragma once

#include <array>
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

/// What a collective does with its messages, which decides from which length on those between ranks
/// of a host are copied once.
enum class MessageUse : std::uint8_t {
    exchanged,          ///< Ranks send and receive at the same time.
    exchanged_combined, ///< So, and most receivers combine what comes.
    one_way,            ///< Few ranks do.
    combined,           ///< Few ranks do, and receivers combine what comes.
};
inline constexpr std::array kMessageUses = {MessageUse::exchanged, MessageUse::exchanged_combined,
                                            MessageUse::one_way, MessageUse::combined};
inline constexpr std::size_t kMessageUseCount = kMessageUses.size();

} // namespace ucg
