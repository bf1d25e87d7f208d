#include "ucg_coll/engine/limits.hpp"

#include <limits>

#include "ucg_coll/graph/in_flight.hpp"

namespace ucg::engine {
namespace {

using graph::Op;
using graph::Schedule;

constexpr std::uint64_t kOpsMax = 1U << 28; // Dependency::op has 28 bits.
constexpr std::uint64_t kNumbersMax = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kRotationMax = 15; // Dependency::distance has 4 bits.

Status beyond(const Schedule& schedule, std::uint32_t op, std::string_view what, std::uint64_t is,
              std::uint64_t most) {
    return failure(Code::unsupported, "rank {}, op {} ({}): {} {}, at most {} can be run",
                   schedule.rank, op, graph::name(schedule.ops[op].kind), is, what, most);
}

} // namespace

Status check_limits(const Schedule& schedule) {
    // An op has one instruction; a message also waits for its slot, and the end for the message.
    if (schedule.ops.size() > kOpsMax ||
        schedule.dependencies.size() > kNumbersMax - 2 * schedule.ops.size()) {
        return failure(Code::unsupported,
                       "rank {}: {} ops with {} dependencies, at most {} and {} can be run",
                       schedule.rank, schedule.ops.size(), schedule.dependencies.size(), kOpsMax,
                       kNumbersMax - 2 * kOpsMax);
    }
    std::uint64_t slots = 0;
    std::uint64_t operands = 0;
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
        slots += !graph::has_peer(op.kind) ? 0 : repeated ? iterations_in_flight(*repeat) : 1;
        if (slots > kNumbersMax) {
            return beyond(schedule, i, "messages in flight", slots, kNumbersMax);
        }
        operands += op.kind == graph::OpKind::reduce ? op.operand_count : 0;
        if (operands > kNumbersMax) {
            return beyond(schedule, i, "operands of reductions", operands, kNumbersMax);
        }
    }
    return {};
}

} // namespace ucg::engine
