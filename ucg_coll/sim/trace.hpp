// What happened in a simulation, for pictures and reports.
#pragma once

#include <cstdint>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"
#include "ucg_coll/sim/time.hpp"

namespace ucg::sim {

/// A time for which the processor of a rank works, or waits for what it may not go on without.
struct Activity {
    enum class Kind : std::uint8_t {
        late,    ///< The rank has not entered the collective yet.
        wait,    ///< It has nothing to do until a message arrives or has left.
        issue,   ///< Sending, as far as it costs the processor.
        take,    ///< Receiving, as far as it costs the processor.
        poll,    ///< Taking in the lines of peers' flag slots.
        copy,    ///< Copying, also to or from a peer's memory.
        reduce,  ///< Reducing, also to or from a peer's memory.
        publish, ///< Copying to a staging buffer that peers reach.
        share,   ///< Writing the rank's own flag slot.
    };
    Kind kind = Kind::wait;
    Rank rank = 0;
    std::uint32_t op = 0;        ///< Index into the rank's Schedule::ops; for `wait`, what waits:
                                 ///< ops.size() is the end.
    std::uint64_t iteration = 0; ///< Of the repeat that the op is in; else 0.
    Picoseconds start = 0;
    Picoseconds end = 0;
};

/// One message or signal, or what one reader takes in of a flag slot.
/// begin <= left <= arrived <= taken.
struct Transfer {
    enum class Kind : std::uint8_t { message, signal, flag_slot };

    Rank from = 0;
    Rank to = 0;
    std::uint32_t send_op = 0; ///< The sender's op; for a flag slot, its share.
    std::uint64_t bytes = 0;
    Kind kind = Kind::message;
    Picoseconds begin = 0;   ///< When it begins to leave.
    Picoseconds left = 0;    ///< When the last byte has left: the sender may write there again.
    Picoseconds arrived = 0; ///< When the last byte has arrived.
    Picoseconds taken = 0;   ///< When the receiver's processor has taken it in.
};

/// The moment at which a rank has come to an op and all that the op waits for is there.
struct Issue {
    Rank rank = 0;
    std::uint32_t op = 0;
    std::uint64_t iteration = 0;
    Picoseconds time = 0;
};

struct Trace {
    std::vector<Activity> activities; ///< Of each rank in order of time; ranks intermixed.
    /// Messages and signals in the order in which their rank sent them, flag slots in the order in
    /// which their reader took them in.
    std::vector<Transfer> transfers;
    std::vector<Issue> issues; ///< Of each rank in the order of its ops; ranks intermixed.
};

} // namespace ucg::sim
