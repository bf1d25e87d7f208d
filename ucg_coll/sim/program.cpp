#include "ucg_coll/sim/program.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace ucg::sim {

namespace {

using graph::OpKind;

/// More than the rotation, so that no wait looks at a slot that its own iteration uses again, and
/// at least four, as many as the engine keeps in flight.
std::uint32_t slots_of(const graph::Repeat& repeat) {
    return std::bit_ceil(std::max(4U, repeat.rotation + 1));
}

std::uint64_t bytes_of(const graph::Op& op) {
    switch (op.kind) {
    case OpKind::send:
    case OpKind::copy:
    case OpKind::publish:
    case OpKind::share: return op.source.length;
    case OpKind::recv:
    case OpKind::reduce: return op.target.length;
    case OpKind::signal:
    case OpKind::await: return 0;
    }
    return 0;
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

/// Writing to a peer's memory is as reading it: bytes cross between two ranks.
void add_reads(Program& program, const graph::Schedule& schedule) {
    const auto add = [&](const graph::Slice& slice) {
        if (slice.owner != schedule.rank) {
            program.reads.push_back({slice.owner, slice.buffer == graph::BufferKind::board});
        }
    };
    for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
        const graph::Op& op = schedule.ops[i];
        program.steps[i].first_read = static_cast<std::uint32_t>(program.reads.size());
        switch (op.kind) {
        case OpKind::copy:
            add(op.source);
            add(op.target);
            break;
        case OpKind::reduce:
            for (std::uint32_t k = 0; k < op.operand_count; ++k) {
                add(schedule.operands[op.first_operand + k]);
            }
            add(op.target);
            break;
        case OpKind::send:
        case OpKind::recv:
        case OpKind::signal:
        case OpKind::await:
        case OpKind::publish:
        case OpKind::share: break; // Own memory alone.
        }
    }
    program.steps.back().first_read = static_cast<std::uint32_t>(program.reads.size());
}

/// That iteration's slot has been taken again, by one that waited for it. An op that stands further
/// on in the body has not taken this iteration's yet.
bool long_completed(const Step& on, const graph::Dependency& dependency, std::uint32_t op) {
    const std::uint32_t slots = on.mask + 1U;
    return dependency.distance >= slots + (dependency.op < op ? 0U : 1U);
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
            if (within && long_completed(on, dependency, i)) {
                continue;
            }
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
    add_reads(program, schedule);
    program.waits.shrink_to_fit();
    program.reads.shrink_to_fit();
    return program;
}

std::vector<std::uint32_t> board_readers(std::span<const Program> programs) {
    std::vector<std::uint32_t> counts(programs.size(), 0);
    std::vector<std::size_t> last(programs.size(), programs.size()); // Reader counted, by owner.
    for (std::size_t reader = 0; reader < programs.size(); ++reader) {
        for (const Read& read : programs[reader].reads) {
            const auto owner = static_cast<std::size_t>(read.owner);
            if (read.board && std::exchange(last[owner], reader) != reader) {
                ++counts[owner];
            }
        }
    }
    return counts;
}

} // namespace ucg::sim
