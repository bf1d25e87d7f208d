// Internal to ucg_coll/sim: what the pricing of lowered schedules needs to know of a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/graph/lowering.hpp"
#include "ucg_coll/sim/simulator.hpp"

namespace ucg::sim {

/// Returns how many of the schedule's ops begin together with the step. It is 0 for a post, whose
/// ops follow one another.
constexpr std::uint32_t op_count(const graph::Step& step) {
    switch (step.kind) {
    case graph::StepKind::copy:
    case graph::StepKind::reduce:
    case graph::StepKind::reduce_parts:
    case graph::StepKind::publish:
    case graph::StepKind::share: return 1;
    case graph::StepKind::wait: return std::max(step.count, 1U);
    case graph::StepKind::post:
    case graph::StepKind::end_iteration:
    case graph::StepKind::finish: return 0;
    }
    return 0;
}

/// Returns the length of each slice that the step at `at` reads or writes, as all are equally long;
/// 0 for a post.
inline std::uint64_t bytes_of(const graph::Position& at, const graph::LoweredSchedule& program) {
    const std::span addresses = program.addresses_of(program.steps[at.step]);
    return addresses.empty() ? 0 : graph::length_at(addresses.front(), at, program);
}

/// Calls visit(owner, op) for each flag slot that a step reads or waits for, `op` being the op of
/// the schedule that does, until visit() returns false. Returns whether it never did.
template <typename Visit>
bool for_each_flag_slot(const graph::Step& step, const graph::LoweredSchedule& program,
                        Visit visit) {
    for (const graph::Address& address : program.addresses_of(step)) {
        if (address.is_flag_slot() &&
            !visit(program.flag_slots[address.base - graph::kOwnBases].owner, step.op)) {
            return false;
        }
    }
    for (std::uint32_t i = 0; step.kind == graph::StepKind::wait && i < step.count; ++i) {
        if (!visit(program.flag_slots[step.first + i].owner, step.op + i)) {
            return false;
        }
    }
    return true;
}

/// Returns how many bytes go through the caches with a reduction of `bytes`: the whole input and
/// output, if it reads or writes a part of these, and `bytes` for each other operand or target.
inline std::uint64_t touched_bytes(const graph::Step& step, const graph::LoweredSchedule& program,
                                   std::uint64_t bytes, const OwnBuffers& own) {
    std::uint64_t sum = 0;
    std::uint64_t input_bytes = 0;
    std::uint64_t output_bytes = 0;
    for (const graph::Address& address : program.addresses_of(step)) {
        const bool own_vector = !address.of_peer && !address.is_flag_slot();
        if (own_vector && address.buffer == graph::BufferKind::input) {
            input_bytes = std::max(own.input_bytes, bytes);
        } else if (own_vector && address.buffer == graph::BufferKind::output) {
            output_bytes = std::max(own.output_bytes, bytes);
        } else {
            sum += bytes;
        }
    }
    return sum + input_bytes + output_bytes;
}

/// Returns how many operands of a reduction lie in scratch that all iterations of a repeat use, and
/// that peers do not read.
inline unsigned passing_operands(const graph::Step& step, const graph::LoweredSchedule& program,
                                 const OwnBuffers& own) {
    const auto operands = program.addresses_of(step).subspan(1);
    const auto passes = [&](const graph::Address& address) {
        return !address.of_peer && address.buffer == graph::BufferKind::scratch &&
               (address.is_own_scratch() || !own.exposed);
    };
    return step.in_repeat
               ? static_cast<unsigned>(std::count_if(operands.begin(), operands.end(), passes))
               : 0;
}

/// Returns the length of the rank's input or output, if the address is in one of these; else 0.
inline std::uint64_t vector_bytes(const graph::Address& address, const OwnBuffers& own) {
    switch (address.buffer) {
    case graph::BufferKind::input: return own.input_bytes;
    case graph::BufferKind::output: return own.output_bytes;
    case graph::BufferKind::scratch:
    case graph::BufferKind::flag_slot: break;
    }
    return 0;
}

/// Returns how many bytes go through the caches while the step copies or publishes `bytes`: all of
/// the vectors that these are parts of, as the other parts follow. Buffers of peers count with
/// `bytes` only: they are staging buffers, which stay in caches, unless ranks help one another.
inline std::uint64_t copied_through_bytes(const graph::Step& step,
                                          const graph::LoweredSchedule& program,
                                          std::uint64_t bytes, const OwnBuffers& own) {
    std::uint64_t sum = 0;
    for (const graph::Address& address : program.addresses_of(step)) {
        const bool vector = !address.of_peer || program.helped;
        sum += std::max(bytes, vector ? vector_bytes(address, own) : 0);
    }
    return sum;
}

/// Returns whether a copy goes to scratch that peers name, and have read last.
inline bool copies_for_peers(const graph::Step& step, const graph::LoweredSchedule& program,
                             const OwnBuffers& own) {
    const graph::Address& target = program.addresses_of(step).front();
    return own.exposed && !target.of_peer && target.buffer == graph::BufferKind::scratch &&
           !target.is_own_scratch();
}

/// Returns whether a copy or a reduction reads flag slots.
inline bool has_flag_slots(const graph::Step& step, const graph::LoweredSchedule& program) {
    const std::span addresses = program.addresses_of(step);
    return std::any_of(addresses.begin(), addresses.end(),
                       [](const graph::Address& address) { return address.is_flag_slot(); });
}

/// Calls visit(owner) for each slice of a peer's input, output or scratch that a step names.
/// Writing to it counts as reading it: bytes cross between two ranks either way.
template <typename Visit>
void for_each_peer_read(const graph::Step& step, const graph::LoweredSchedule& program,
                        Visit visit) {
    for (const graph::Address& address : program.addresses_of(step)) {
        if (address.of_peer) {
            visit(static_cast<Rank>(address.base));
        }
    }
}

/// Returns, by rank, how many ranks look at its flag slot.
inline std::vector<std::uint32_t>
flag_slot_readers(std::span<const graph::LoweredSchedule> programs) {
    std::vector<std::uint32_t> counts(programs.size(), 0);
    for (const graph::LoweredSchedule& program : programs) {
        for (const graph::FlagSlotRead& flag_slot : program.flag_slots) {
            ++counts[static_cast<std::size_t>(flag_slot.owner)];
        }
    }
    return counts;
}

} // namespace ucg::sim
