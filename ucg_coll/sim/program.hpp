// Internal to ucg_coll/sim: a rank's schedule in the form that the simulator keeps, a tenth of the
// schedule's size, as it keeps those of all ranks. One step for each op, in the order of issue;
// slices are gone, only their lengths are left and whose they are, and of the dependencies those on
// messages: what the processor does itself is done when the next op is looked at.
#pragma once

#include <cstdint>
#include <span>
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

/// A slice of a peer's that a copy or a reduction reads, as long as the step.
struct Read {
    Rank owner = kNoRank;
    bool board = false; ///< The owner's board, which is waited for; else its memory, which is not.
};

struct Step {
    std::uint64_t bytes = 0; ///< A segment's, in a repeat, may be shorter in the last iteration.
    Rank peer = kNoRank;
    std::uint32_t first_wait = 0; ///< Into Program::waits; ends where the next step's begin.
    std::uint32_t first_read = 0; ///< Into Program::reads, likewise.
    std::uint32_t slot = kNoSlot;
    std::uint16_t operand_count = 0;
    graph::OpKind kind = graph::OpKind::copy;
    std::uint8_t mask = 0;
};
static_assert(sizeof(Step) <= 32);

struct Program {
    std::vector<Step> steps; ///< One more than the schedule has ops; the last waits for nothing.
    std::vector<Wait> waits;
    std::vector<Read> reads;
    std::vector<graph::Repeat> repeats;
    std::uint32_t slot_count = 0;

    /// What step `index` reads of peers.
    std::span<const Read> reads_of(std::uint32_t index) const {
        return std::span(reads).subspan(steps[index].first_read,
                                        steps[index + 1].first_read - steps[index].first_read);
    }
};

/// How many ranks look at each rank's board.
std::vector<std::uint32_t> board_readers(std::span<const Program> programs);

Program compile(const graph::Schedule& schedule);

/// Where a rank is in its program.
struct Cursor {
    std::uint64_t iteration = 0;
    std::uint32_t step = 0;
    std::uint32_t repeat = 0; ///< The one that `step` is in or before.
};

/// The repeat that the next step is in; null if none.
inline const graph::Repeat* repeat_of(const Cursor& cursor, const Program& program) {
    if (cursor.repeat == program.repeats.size() ||
        cursor.step < program.repeats[cursor.repeat].first_op) {
        return nullptr;
    }
    return &program.repeats[cursor.repeat];
}

/// The next step's.
inline std::uint64_t bytes_of(const Cursor& cursor, const Program& program) {
    const graph::Repeat* repeat = repeat_of(cursor, program);
    const std::uint64_t bytes = program.steps[cursor.step].bytes;
    const bool last = repeat != nullptr && bytes == repeat->segment_bytes &&
                      cursor.iteration + 1 == repeat->iterations;
    return last ? repeat->last_bytes : bytes;
}

/// The slot of the next step, a message.
inline std::uint32_t slot_of(const Cursor& cursor, const Program& program) {
    const Step& step = program.steps[cursor.step];
    return step.slot + static_cast<std::uint32_t>(cursor.iteration & step.mask);
}

inline void next_step(Cursor& cursor, const Program& program) {
    const graph::Repeat* repeat = repeat_of(cursor, program);
    ++cursor.step;
    if (repeat == nullptr || cursor.step < repeat->first_op + repeat->op_count) {
        return;
    }
    if (++cursor.iteration < repeat->iterations) {
        cursor.step = repeat->first_op;
    } else {
        cursor.iteration = 0;
        ++cursor.repeat;
    }
}

/// Calls `visit(slot)` for all that the next step waits for.
template <typename Visit>
void for_each_wait(const Cursor& cursor, const Program& program, Visit visit) {
    const auto begin = program.waits.begin();
    const auto last = begin + program.steps[cursor.step + 1].first_wait;
    for (auto it = begin + program.steps[cursor.step].first_wait; it != last; ++it) {
        if (it->every_slot) {
            for (std::uint32_t i = 0; i <= it->mask; ++i) {
                visit(it->slot + i);
            }
        } else if (it->mask == 0) {
            visit(it->slot);
        } else if (cursor.iteration >= it->distance) {
            visit(it->slot +
                  static_cast<std::uint32_t>((cursor.iteration - it->distance) & it->mask));
        }
    }
}

} // namespace ucg::sim
