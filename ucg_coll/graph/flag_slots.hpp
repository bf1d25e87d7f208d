// Flag slots (OpKind::share) and the messages that they stand for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// The read of a peer's flag slot.
struct FlagSlotRead {
    Rank owner = kNoRank;
    std::uint64_t bytes = 0; ///< Bytes from the slot's start to the end of what is read.

    bool operator==(const FlagSlotRead&) const = default;
};

/// Returns the peers whose flag slots `op` of `schedule` reads or waits for; each once, in order of
/// use.
std::vector<Rank> flag_slots_read(const Schedule& schedule, const Op& op);

/// Returns whether the op only waits for a flag slot: whether it copies no bytes from one.
inline bool only_waits(const Op& op) {
    return op.kind == OpKind::copy && op.source.buffer == BufferKind::flag_slot &&
           op.source.length == 0 && op.target.length == 0;
}

/// Returns schedules that do by messages what `schedules` do by flag slots. They define what a flag
/// slot means, and verify proves them. A share becomes a copy to scratch and a send of that copy to
/// each rank that reads the flag slot, or signals to these ranks where it has no bytes. A reader
/// receives all shared bytes into its own scratch before its first op that names the flag slot.
/// Repeats are written out. Takes time and memory O(ops + ranks * ranks). REQUIRES: `schedules` are
/// those of all ranks, in rank order, and verify accepts their use of flag slots.
std::vector<Schedule> with_messages(std::span<const Schedule> schedules);

} // namespace ucg::graph
