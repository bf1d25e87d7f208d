#include "test/unit/engine/draft.hpp"

#include <algorithm>
#include <utility>

namespace ucg::test {

using graph::Dependency;
using graph::Op;
using graph::OpKind;
using graph::Repeat;
using graph::Schedule;

Draft take_apart(const Schedule& schedule) {
    Draft draft{schedule, {}};
    for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
        const Op& op = schedule.ops[i];
        const graph::IndexRange range = graph::dependency_range(schedule, i);
        DraftStep step{op, {}, {}};
        for (std::uint32_t d = range.first; d < range.last; ++d) {
            step.after.push_back(schedule.dependencies[d]);
        }
        for (std::uint32_t k = 0; op.kind == OpKind::reduce && k < op.operand_count; ++k) {
            step.operands.push_back(schedule.operands[op.first_operand + k]);
        }
        draft.steps.push_back(std::move(step));
    }
    return draft;
}

Schedule put_together(const Draft& draft) {
    Schedule schedule = draft.header;
    schedule.ops.clear();
    schedule.dependencies.clear();
    schedule.operands.clear();
    for (const DraftStep& step : draft.steps) {
        Op op = step.op;
        op.first_dependency = static_cast<std::uint32_t>(schedule.dependencies.size());
        op.first_operand = 0;
        op.operand_count = 0;
        if (op.kind == OpKind::reduce) {
            op.first_operand = static_cast<std::uint32_t>(schedule.operands.size());
            op.operand_count = static_cast<std::uint16_t>(step.operands.size());
            schedule.operands.insert(schedule.operands.end(), step.operands.begin(),
                                     step.operands.end());
        }
        schedule.dependencies.insert(schedule.dependencies.end(), step.after.begin(),
                                     step.after.end());
        schedule.ops.push_back(op);
    }
    return schedule;
}

Dependency dependency(std::size_t op, std::size_t distance) {
    Dependency result;
    result.op = op & 0x0fffffffU;
    result.distance = distance & 0xfU;
    return result;
}

void remove(Draft& draft, std::size_t index, bool inherit) {
    const std::vector<Dependency> inherited =
        inherit ? draft.steps[index].after : std::vector<Dependency>{};
    draft.steps.erase(draft.steps.begin() + static_cast<std::ptrdiff_t>(index));
    for (DraftStep& step : draft.steps) {
        const bool depends = std::any_of(step.after.begin(), step.after.end(),
                                         [&](Dependency on) { return on.op == index; });
        std::erase_if(step.after, [&](Dependency on) { return on.op == index; });
        if (depends) {
            step.after.insert(step.after.end(), inherited.begin(), inherited.end());
        }
        for (Dependency& on : step.after) {
            on = dependency(on.op - (on.op > index ? 1 : 0), on.distance);
        }
    }
    for (Repeat& repeat : draft.header.repeats) {
        const bool inside = index >= repeat.first_op && index - repeat.first_op < repeat.op_count;
        repeat.op_count -= inside ? 1 : 0;
        repeat.first_op -= index < repeat.first_op ? 1 : 0;
    }
    std::erase_if(draft.header.repeats, [](const Repeat& repeat) { return repeat.op_count == 0; });
}

void insert_after(Draft& draft, std::size_t index, DraftStep added) {
    for (DraftStep& step : draft.steps) {
        for (Dependency& on : step.after) {
            on = dependency(on.op + (on.op > index ? 1 : 0), on.distance);
        }
    }
    for (Dependency& on : added.after) {
        on = dependency(on.op + (on.op > index ? 1 : 0), on.distance);
    }
    for (Repeat& repeat : draft.header.repeats) {
        const bool inside = index >= repeat.first_op && index - repeat.first_op < repeat.op_count;
        repeat.op_count += inside ? 1 : 0;
        repeat.first_op += index < repeat.first_op ? 1 : 0;
    }
    draft.steps.insert(draft.steps.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                       std::move(added));
}

} // namespace ucg::test
