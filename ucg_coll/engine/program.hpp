// A schedule made ready to run: done once, when a plan enters the cache. What its steps are is
// graph::lower()'s matter; added here is by which transports they happen, and where their memory
// is.
#pragma once

#include <cstdint>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/engine/helped.hpp"
#include "ucg_coll/graph/lowering.hpp"
#include "ucg_coll/graph/schedule.hpp"
#include "ucg_coll/graph/staging.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::engine {

struct Program {
    graph::LoweredSchedule lowered;
    std::vector<transport::Transport*> carriers; ///< By graph::Step::carrier; not owned.
    std::vector<transport::Message> slots;       ///< Template of the execution's messages.
    std::vector<std::uint32_t> parts;            ///< Those of `slots` that reduce_parts reads.
    std::uint64_t input_bytes = 0;
    std::uint64_t output_bytes = 0;
    std::uint64_t scratch_bytes = 0;
    std::uint64_t own_scratch_bytes = 0;       ///< As in the schedule: of these, the last.
    std::uint64_t staging_buffer_bytes = 0;    ///< As in the schedule.
    transport::PeerMemory* memory = nullptr;   ///< Of an exposed schedule; not owned.
    graph::StagingLayout staging;              ///< In that memory.
    transport::FlagSlots* flag_slot = nullptr; ///< Of a schedule that takes a turn; not owned.
    /// It shares something first, and waits for nothing but flag slots after that: an exchange,
    /// which the engine starts on a shorter path.
    bool exchange = false;
    HelpedProgram helped; ///< Where ranks help one another, else without `help`.
    std::uint16_t plan = 0;
};

/// Lowers `schedule`. `routes` must outlive the program. Fails with unreachable if the schedule
/// names a peer without a route, with unsupported if it needs more shared memory than there is,
/// flag slots that are shorter or not reached, or more of anything than the program can
/// number; the message names the rank, and the op where there is one.
/// REQUIRES: graph::verify accepts the schedules of all ranks, of which this is one.
/// `plan` marks the messages: equal on all ranks, for different plans mostly different.
/// `of_all`: of a helped schedule those of all ranks, in rank order, this one's among them; without
/// them, or where no transport lets ranks help one another, each does its own part.
Result<Program> lower(const graph::Schedule& schedule, transport::Routes routes,
                      std::uint16_t plan = 0, std::span<const graph::Schedule> of_all = {});

} // namespace ucg::engine
