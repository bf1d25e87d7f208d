// Flag slots (OpKind::share) and the messages that they stand for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// A peer's flag slot that is read.
struct FlagSlotRead {
    Rank owner = kNoRank;
    std::uint64_t bytes = 0; ///< From the flag slot's start; what is read may begin behind it.

    bool operator==(const FlagSlotRead&) const = default;
};

/// The ranks whose flag slots an op of `schedule` reads, or waits for; each once, in order of use.
std::vector<Rank> flag_slots_read(const Schedule& schedule, const Op& op);

/// Is it a copy of no bytes from a flag slot to nowhere?
inline bool only_waits(const Op& op) {
    return op.kind == OpKind::copy && op.source.buffer == BufferKind::flag_slot &&
           op.source.length == 0 && op.target.length == 0;
}

/// Schedules without flag slots that do the same by messages: for the proof, and as the
/// meaning of a flag slot. A share becomes a copy and a send of that to each rank that reads it, or
/// signals where it has no bytes; a reader receives the whole into scratch of its own before its
/// first op that names it. Repeats are written out. REQUIRES: all ranks' schedules, in rank order,
/// which verify accepts as far as their flag slots go. Time and memory O(ops + ranks * ranks).
std::vector<Schedule> with_messages(std::span<const Schedule> schedules);

} // namespace ucg::graph
