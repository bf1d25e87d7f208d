#include "ucg_coll/sim/program.hpp"

#include <algorithm>
#include <bit>

namespace ucg::sim {

namespace {

using graph::OpKind;

/// More than the rotation, so that no wait looks at a slot that its own iteration uses again, and
/// at least four, as many as the engine keeps in flight.
std::uint32_t slots_of(const graph::Repeat& repeat) {
    return std::bit_ceil(std::max(4U, repeat.rotation + 1));
}

std::uint64_t bytes_of(const graph::Op& op) {
    if (op.kind == OpKind::signal || op.kind == OpKind::await) {
        return 0;
    }
    return op.kind == OpKind::recv || op.kind == OpKind::reduce ? op.target.length
                                                                : op.source.length;
}

bool contains(const graph::Repeat* repeat, std::uint32_t op) {
    return repeat != nullptr && op >= repeat->first_op && op - repeat->first_op < repeat->op_count;
}

/// The repeats are in order, so one index goes along with the ops.
class RepeatCursor {
  public:
    explicit RepeatCursor(const std::vector<graph::Repeat>& repeats) : repeats_(repeats) {}

    /// The repeat that `op` is in; null if none. REQUIRES: `op` does not fall from call to call.
    const graph::Repeat* at(std::uint32_t op) {
        while (next_ < repeats_.size() &&
               op >= repeats_[next_].first_op + repeats_[next_].op_count) {
            ++next_;
        }
        return next_ < repeats_.size() && contains(&repeats_[next_], op) ? &repeats_[next_]
                                                                         : nullptr;
    }

  private:
    const std::vector<graph::Repeat>& repeats_;
    std::size_t next_ = 0;
};

void add_steps(Program& program, const graph::Schedule& schedule) {
    RepeatCursor cursor(schedule.repeats);
    program.steps.resize(schedule.ops.size() + 1);
    for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
        const graph::Op& op = schedule.ops[i];
        const graph::Repeat* repeat = cursor.at(i);
        Step& step = program.steps[i];
        step.bytes = bytes_of(op);
        step.peer = op.peer;
        step.operand_count = op.operand_count;
        step.kind = op.kind;
        if (graph::has_peer(op.kind)) {
            const std::uint32_t slots = repeat != nullptr ? slots_of(*repeat) : 1;
            step.slot = program.slot_count;
            step.mask = static_cast<std::uint8_t>(slots - 1);
            program.slot_count += slots;
        }
    }
}

/// A wait that an earlier step outside of repeats has passed needs no second look. `known` is by
/// slot.
void add_waits(Program& program, const graph::Schedule& schedule) {
    std::vector<bool> known(program.slot_count, false);
    RepeatCursor cursor(schedule.repeats);
    for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
        const graph::Repeat* repeat = cursor.at(i);
        Step& step = program.steps[i];
        step.first_wait = static_cast<std::uint32_t>(program.waits.size());
        const graph::IndexRange range = graph::dependency_range(schedule, i);
        for (std::uint32_t d = range.first; d < range.last; ++d) {
            const graph::Dependency dependency = schedule.dependencies[d];
            const Step& on = program.steps[dependency.op];
            if (on.slot == kNoSlot || known[on.slot]) {
                continue;
            }
            const bool within = contains(repeat, dependency.op);
            program.waits.push_back({on.slot, on.mask,
                                     static_cast<std::uint8_t>(dependency.distance),
                                     !within && on.mask > 0});
            known[on.slot] = repeat == nullptr;
        }
        if (repeat != nullptr && step.slot != kNoSlot) { // The slot's earlier user has completed.
            program.waits.push_back(
                {step.slot, step.mask, static_cast<std::uint8_t>(step.mask + 1), false});
        }
    }
    program.steps.back().first_wait = static_cast<std::uint32_t>(program.waits.size());
}

} // namespace

Program compile(const graph::Schedule& schedule) {
    Program program;
    program.repeats = schedule.repeats;
    add_steps(program, schedule);
    add_waits(program, schedule);
    program.waits.shrink_to_fit();
    return program;
}

} // namespace ucg::sim
