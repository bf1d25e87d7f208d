// The limits of what a lowered schedule can number.
#include <limits>

#include "ucg_coll/graph/lowering.hpp"

namespace ucg::graph {
namespace {

constexpr std::uint64_t kNumbersMax = std::numeric_limits<std::uint32_t>::max();

Status beyond(const Schedule& schedule, std::uint32_t op, std::string_view what, std::uint64_t is,
              std::uint64_t most) {
    return failure(Code::unsupported, "rank {}, op {} ({}): {} {}, at most {} can be run",
                   schedule.rank, op, name(schedule.ops[op].kind), is, what, most);
}

/// Returns how many addresses the step for `op` has in LoweredSchedule::addresses.
std::uint64_t addresses(const Op& op) {
    if (has_peer(op.kind)) {
        return 0; // A MessagePlan has its address itself.
    }
    return (has_operands(op.kind) ? op.operand_count : 0) + (has_source(op.kind) ? 1 : 0) +
           (has_target(op.kind) ? 1 : 0);
}

} // namespace

Status check_limits(const Schedule& schedule) {
    // Waits are numbered: an op has one for each dependency; a message may also wait for its slot,
    // and the end for the message.
    if (schedule.ops.size() > kOpsMax ||
        schedule.dependencies.size() > kNumbersMax - 2 * schedule.ops.size()) {
        return failure(Code::unsupported,
                       "rank {}: {} ops with {} dependencies, at most {} and {} can be run",
                       schedule.rank, schedule.ops.size(), schedule.dependencies.size(), kOpsMax,
                       kNumbersMax - 2 * std::uint64_t{kOpsMax});
    }
    std::uint64_t slots = 0;
    std::uint64_t slices = 0;
    auto repeat = schedule.repeats.begin();
    const auto last = schedule.repeats.end();
    for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
        while (repeat != last && i >= std::uint64_t{repeat->first_op} + repeat->op_count) {
            ++repeat;
        }
        const bool repeated = repeat != last && i >= repeat->first_op;
        if (repeated && repeat->rotation > kRotationMax) {
            return beyond(schedule, i, "buffers of a rotation", repeat->rotation, kRotationMax);
        }
        const Op& op = schedule.ops[i];
        slots += !has_peer(op.kind) ? 0 : repeated ? iterations_in_flight(*repeat) : 1;
        if (slots > kNumbersMax) {
            return beyond(schedule, i, "messages in flight", slots, kNumbersMax);
        }
        slices += addresses(op);
        if (slices > kNumbersMax) {
            return beyond(schedule, i, "slices to copy or combine", slices, kNumbersMax);
        }
    }
    return {};
}

} // namespace ucg::graph
