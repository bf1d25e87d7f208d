// A schedule lowered to a form that runs in a straight line: done once, when a plan enters the
// cache.
//
// Issue is in schedule order. Local ops (copy, reduce) complete when issued, so dependencies on
// them vanish; what remains is "before this instruction, these messages must have completed". Runs
// of messages to one transport become one post.
#pragma once

#include <cstdint>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/boards.hpp"
#include "ucg_coll/graph/schedule.hpp"
#include "ucg_coll/graph/windows.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::engine {

/// An execution's table of where buffers begin: the own input, output and scratch, then the peers'
/// boards, in the order of Program::boards.
inline constexpr std::uint32_t kOwnBases = 3;
static_assert(static_cast<std::uint32_t>(graph::BufferKind::board) == kOwnBases);

/// Where bytes are, relative to buffers that are known when the collective starts.
struct Address {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint32_t base = 0; ///< Index into that table; not of what is a peer's.
    Rank owner = kNoRank;   ///< Of input, output or scratch. kNoRank: the own rank.
    graph::BufferKind buffer = graph::BufferKind::input;
    graph::Stride stride = graph::Stride::fixed;
    bool moves = false; ///< With the iterations, or it is a peer's: more than base and offset.
};

/// "These message slots must have completed." A message op outside repeats has one slot; inside, it
/// has `mask + 1` slots used round robin, so that iterations may overlap.
struct Wait {
    std::uint32_t slot = 0;
    std::uint8_t mask = 0;     ///< Number of slots - 1; a power of two minus one.
    std::uint8_t distance = 0; ///< Iterations back, for waits within a repeat.
    bool every_slot = false;   ///< All of them: the wait of an op after the repeat.
};

enum class InstructionKind : std::uint8_t {
    post,          ///< Post messages [first, first + count).
    copy,          ///< source to target
    publish,       ///< source to its window, unless peers reach it in place
    reduce,        ///< operands [first, first + count) to target
    reduce_parts,  ///< The same; `message` brings one of them, and is combined where it arrives.
    share,         ///< source to the own board, then a look at those that the next one reads
    wait,          ///< Nothing more than the waits.
    end_iteration, ///< Back to instruction `first`, or on after the last iteration.
    finish,        ///< The collective is complete.
};

struct Instruction {
    InstructionKind kind = InstructionKind::finish;
    bool in_repeat = false;
    bool waits = false; ///< For messages or boards.
    std::uint32_t count = 0;
    std::uint32_t first = 0;
    std::uint32_t first_wait = 0;
    std::uint32_t wait_count = 0;
    std::uint32_t boards_until = 0; ///< Waits for all of Program::boards before this one.
    std::uint32_t message = 0;      ///< reduce_parts: of Program::messages.
    std::uint32_t arriving = 0;     ///< reduce_parts: which of its operands that is.
    Address source;                 ///< copy, publish, share
    Address target;                 ///< copy, reduce
};

/// A message as the program knows it; the execution adds address and sequence.
struct MessagePlan {
    Address address;
    transport::Transport* transport = nullptr; ///< Not owned.
    std::uint32_t slot = 0;                    ///< First message slot.
    std::uint8_t mask = 0;                     ///< Number of slots - 1.
    std::uint16_t first_step = 0;              ///< These count modulo 2^16, as Message::step.
    std::uint16_t steps_per_iteration = 0;
};

struct Program {
    std::vector<Instruction> instructions; ///< Ends with `finish`.
    std::vector<Wait> waits;
    std::vector<MessagePlan> messages;
    std::vector<Address> operands;
    std::vector<graph::Repeat> repeats;
    std::vector<transport::Message> slots; ///< Template of the execution's messages.
    std::vector<std::uint32_t> parts;      ///< Those of `slots` that reduce_parts reads.
    std::uint64_t input_bytes = 0;
    std::uint64_t output_bytes = 0;
    std::uint64_t scratch_bytes = 0;
    std::uint64_t window_bytes = 0;           ///< As in the schedule.
    transport::PeerMemory* memory = nullptr;  ///< Of an exposed schedule; not owned.
    graph::StagingLayout staging;             ///< In that memory.
    transport::Board* board = nullptr;        ///< Of a schedule that takes a turn; not owned.
    std::vector<transport::BoardRead> boards; ///< Each once, in the order of waiting for them.
    /// It shares something first, and waits for nothing but boards after that: an exchange, which
    /// the engine starts on a shorter path.
    bool exchange = false;
    std::uint16_t plan = 0;
};

/// Lowers `schedule`. `routes` must outlive the program. Fails with unreachable if the schedule
/// names a peer without a route, with unsupported if it needs more shared memory than there is,
/// boards that do not reach all peers or are shorter, or more of anything than the program can
/// number; the message names the rank, and the op where there is one.
/// REQUIRES: graph::verify accepts the schedules of all ranks, of which this is one.
/// `plan` marks the messages: equal on all ranks, for different plans mostly different.
Result<Program> lower(const graph::Schedule& schedule, transport::Routes routes,
                      std::uint16_t plan = 0);

} // namespace ucg::engine
