// Internal to ucg_coll/sim: a rank's schedule in the form that the simulator keeps, a tenth of the
// schedule's size, as it keeps those of all ranks. One step for each op, in the order of issue;
// slices are gone, only their lengths are left, and of the dependencies those on messages: what the
// processor does itself is done when the next op is looked at.
#pragma once

#include <cstdint>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::sim {

/// Where the state of a message op is kept. In a repeat there are mask + 1 slots in a row, used in
/// turn: as many iterations have messages in flight at once, as in the engine.
inline constexpr std::uint32_t kNoSlot = 0xffffffffU;

struct Wait {
    std::uint32_t slot = 0;
    std::uint8_t mask = 0;
    std::uint8_t distance = 0; ///< Iterations back.
    bool every_slot = false;   ///< A repeat's message seen from outside.
};

struct Step {
    std::uint64_t bytes = 0; ///< A segment's, in a repeat, may be shorter in the last iteration.
    Rank peer = kNoRank;
    std::uint32_t first_wait = 0; ///< Into Program::waits; ends where the next step's begin.
    std::uint32_t slot = kNoSlot;
    std::uint16_t operand_count = 0;
    graph::OpKind kind = graph::OpKind::copy;
    std::uint8_t mask = 0;
};
static_assert(sizeof(Step) == 24);

struct Program {
    std::vector<Step> steps; ///< One more than the schedule has ops; the last waits for nothing.
    std::vector<Wait> waits;
    std::vector<graph::Repeat> repeats;
    std::uint32_t slot_count = 0;
};

Program compile(const graph::Schedule& schedule);

} // namespace ucg::sim
