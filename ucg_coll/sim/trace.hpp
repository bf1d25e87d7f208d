// What happened in a simulation, for pictures and reports.
#pragma once

#include <cstdint>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"
#include "ucg_coll/sim/time.hpp"

namespace ucg::sim {

/// The processor of a rank works, or waits for what it may not go on without.
struct Activity {
    enum class Kind : std::uint8_t {
        late,  ///< Has not entered the collective yet.
        wait,  ///< Nothing to do until a message arrives or has left.
        issue, ///< Sending, as far as it costs the processor.
        take,  ///< Receiving, likewise.
        copy,
        reduce,
    };
    Kind kind = Kind::wait;
    Rank rank = 0;
    std::uint32_t op = 0;        ///< Index into the rank's Schedule::ops; for `wait`, what waits:
                                 ///< ops.size() is the end.
    std::uint64_t iteration = 0; ///< Of the repeat that the op is in, else 0.
    Picoseconds start = 0;
    Picoseconds end = 0;
};

/// One message or signal. begin <= left <= arrived <= taken.
struct Transfer {
    Rank from = 0;
    Rank to = 0;
    std::uint32_t send_op = 0;
    std::uint64_t bytes = 0;
    bool is_signal = false;
    Picoseconds begin = 0;   ///< It begins to leave.
    Picoseconds left = 0;    ///< The last byte has left: the sender may write there again.
    Picoseconds arrived = 0; ///< The last byte has arrived.
    Picoseconds taken = 0;   ///< The receiver's processor has it.
};

struct Trace {
    std::vector<Activity> activities; ///< Of each rank in order of time; ranks intermixed.
    std::vector<Transfer> transfers;  ///< In the order in which they were sent, by rank.
};

} // namespace ucg::sim
