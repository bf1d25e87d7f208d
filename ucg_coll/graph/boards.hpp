// Boards (OpKind::share) and the messages that they stand for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// A peer's board that is read.
struct BoardRead {
    Rank owner = kNoRank;
    std::uint64_t bytes = 0; ///< From the board's start; what is read may begin behind it.

    bool operator==(const BoardRead&) const = default;
};

/// The ranks whose boards an op of `schedule` reads, or waits for; each once, in order of use.
std::vector<Rank> boards_read(const Schedule& schedule, const Op& op);

/// Is it a copy of no bytes from a board to nowhere?
inline bool only_waits(const Op& op) {
    return op.kind == OpKind::copy && op.source.buffer == BufferKind::board &&
           op.source.length == 0 && op.target.length == 0;
}

/// Schedules without boards that do the same by messages: for the proof, and as the
/// meaning of a board. A share becomes a copy and a send of that to each rank that reads it, or
/// signals where it has no bytes; a reader receives the whole into scratch of its own before its
/// first op that names it. Repeats are written out. REQUIRES: all ranks' schedules, in rank order,
/// which verify accepts as far as their boards go. Time and memory O(ops + ranks * ranks).
std::vector<Schedule> with_messages(std::span<const Schedule> schedules);

} // namespace ucg::graph
