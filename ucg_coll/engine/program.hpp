// A schedule made ready to run. It is made once, when a plan enters the cache. graph::lower() makes
// the steps; this file adds which transports carry the messages, and where the memory of the steps
// lies.
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

/// A lowered schedule with its transports and memory. Runs do not change it.
struct Program {
    graph::LoweredSchedule lowered;
    std::vector<transport::Transport*> carriers; ///< By graph::Step::carrier; not owned.
    std::vector<transport::Message> slots;       ///< Initial values of an execution's messages.
    std::vector<std::uint32_t> parts; ///< Indexes into `slots` of messages of reduce_parts steps.
    std::uint64_t input_bytes = 0;
    std::uint64_t output_bytes = 0;
    std::uint64_t scratch_bytes = 0;
    std::uint64_t own_scratch_bytes = 0;        ///< Of the scratch, the last bytes: as in Schedule.
    std::uint64_t staging_buffer_bytes = 0;     ///< As in the schedule.
    transport::PeerMemory* memory = nullptr;    ///< For an exposed schedule, else null; not owned.
    graph::StagingLayout staging;               ///< Of this rank's part of `memory`.
    transport::FlagSlots* flag_slots = nullptr; ///< For a schedule with flag slots; not owned.
    /// Whether the program is a flag-slot exchange: it shares something first, and after that waits
    /// for nothing but flag slots. The engine starts it on a shorter path.
    bool exchange = false;
    HelpedProgram helped; ///< Its `help` is null unless ranks help one another.
    std::uint16_t plan = 0;
};

/// Returns `schedule` lowered, with the transports of `routes`. The transports must outlive the
/// program. Fails with unreachable if the schedule names a peer without a route, and with
/// unsupported if it needs more shared memory than there is, flag slots that are too short or that
/// no transport reaches, or more of anything than the program can number; the message names the
/// rank, and the op where there is one.
/// `plan` marks the messages; it is equal on all ranks, and mostly different for different plans.
/// `of_all` are, for a helped schedule, the schedules of all ranks in rank order, including this
/// one. Without them, or where no transport lets ranks help one another, each rank does its own
/// part.
/// REQUIRES: graph::verify accepts the schedules of all ranks, of which this is one.
Result<Program> lower(const graph::Schedule& schedule, const transport::Routes& routes,
                      std::uint16_t plan = 0, std::span<const graph::Schedule> of_all = {});

} // namespace ucg::engine
