#include "ucg_coll/engine/execution.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>

namespace ucg::engine {

using graph::Repeat;
using graph::Stride;
using transport::Message;
using transport::MessageState;

void Execution::FreeScratch::operator()(std::byte* memory) const {
    ::operator delete(memory);
}

Execution::Execution(const Program& program) : program_(program), slots_(program.slots) {
    std::size_t operand_count = 0;
    for (const Instruction& instruction : program.instructions) {
        if (instruction.kind == InstructionKind::reduce ||
            instruction.kind == InstructionKind::reduce_parts) {
            operand_count = std::max<std::size_t>(operand_count, instruction.count);
        }
    }
    operands_.resize(operand_count);
    bases_.resize(kOwnBases + program.boards.size());
    exchange_.turn.plan = program.plan;
    exchange_.bytes = program.exchange ? program.instructions.front().source.length : 0;
    exchange_.reads = program.boards;
    exchange_.places = places();
    if (program.memory != nullptr) {
        base(graph::BufferKind::scratch) = program.memory->staging().data();
    } else if (program.scratch_bytes > 0) {
        // Aligned here: what glibc's aligned allocation leaves around such blocks is not used again
        // where their lengths differ, and a program may have thousands of communicators.
        std::size_t room = program.scratch_bytes + kCacheLine - 1;
        scratch_.reset(static_cast<std::byte*>(::operator new(room)));
        void* start = scratch_.get();
        base(graph::BufferKind::scratch) =
            static_cast<std::byte*>(std::align(kCacheLine, program.scratch_bytes, start, room));
    }
}

/// Tells peers where this collective's buffers are: in place, or in windows behind the scratch.
/// False if there is no memory for these; then the collective has failed.
bool Execution::expose() {
    transport::PeerMemory& memory = *program_.memory;
    std::byte* staging = memory.staging().data();
    const std::uint64_t bytes[] = {program_.input_bytes, program_.output_bytes};
    std::byte* const windows[] = {staging + program_.staging.input_window,
                                  staging + program_.staging.output_window};
    transport::SharedBuffers buffers;
    for (std::size_t i = 0; i < 2; ++i) {
        const bool in_place = memory.reached_in_place(bases_[i], bytes[i]);
        windows_[i] = in_place ? nullptr : windows[i];
        buffers[i] = in_place ? transport::SharedBuffer{bases_[i], false}
                              : transport::SharedBuffer{windows[i], true};
    }
    buffers[2] = {staging, false};
    const bool exposed = memory.expose(sequence_, buffers, program_.staging.total_bytes);
    state_ = exposed ? state_ : ExecutionState::failed;
    return exposed;
}

inline bool Execution::slot_ready(std::uint32_t slot) {
    const auto state = static_cast<MessageState>(
        transport::shared_state(slots_[slot]).load(std::memory_order_acquire));
    if (__builtin_expect(state == MessageState::failed, 0)) {
        state_ = ExecutionState::failed;
    }
    return state != MessageState::posted;
}

inline bool Execution::wait_over(const Wait& wait) {
    if (wait.mask == 0) [[likely]] {
        return slot_ready(wait.slot);
    }
    if (wait.every_slot) {
        bool over = true;
        for (std::uint32_t i = 0; i <= wait.mask; ++i) {
            over = slot_ready(wait.slot + i) && over;
        }
        return over;
    }
    return iteration_ < wait.distance ||
           slot_ready(wait.slot +
                      static_cast<std::uint32_t>((iteration_ - wait.distance) & wait.mask));
}

inline bool Execution::ready(const Instruction& instruction) {
    const Wait* const waits = program_.waits.data() + instruction.first_wait;
    for (std::uint32_t i = 0; i < instruction.wait_count; ++i) {
        if (!wait_over(waits[i])) {
            return false;
        }
    }
    return state_ != ExecutionState::failed &&
           (instruction.boards_until <= boards_seen_ || boards_ready(instruction));
}

bool Execution::boards_ready(const Instruction& instruction) {
    const std::span reads = unseen(instruction.boards_until);
    const std::size_t seen = program_.board->look(exchange_.turn, reads, places());
    boards_seen_ += static_cast<std::uint32_t>(seen);
    if (seen < reads.size() && program_.board->broken()) {
        state_ = ExecutionState::failed;
    }
    return seen == reads.size();
}

/// False while there is no room.
inline bool Execution::share(const Instruction& instruction) {
    const Address& source = instruction.source;
    const std::byte* const data = source.length > 0 ? resolve(source) : nullptr;
    if (!program_.board->share(exchange_.turn, data, source.length)) [[unlikely]] {
        state_ = program_.board->broken() ? ExecutionState::failed : state_;
        return false;
    }
    return true;
}

std::uint64_t Execution::offset(const Address& address) const {
    if (address.stride == Stride::fixed) {
        return address.offset;
    }
    const Repeat& repeat = program_.repeats[repeat_];
    const std::uint64_t turn =
        address.stride == Stride::advance ? iteration_ : iteration_ % repeat.rotation;
    return address.offset + turn * repeat.segment_bytes;
}

/// What moves with the iterations, or is a peer's.
std::byte* Execution::resolve_moving(const Address& address) const {
    if (address.owner == kNoRank) {
        return bases_[address.base] + offset(address);
    }
    const transport::SharedBuffer buffer =
        program_.memory->peer_buffer(address.owner, address.buffer, sequence_);
    UCG_ASSERT(buffer.data != nullptr);
    return buffer.data +
           (buffer.window ? offset(address) % program_.window_bytes : offset(address));
}

/// REQUIRES: within a repeat. Only parts of segments keep their length to the end.
std::uint64_t Execution::length(const Address& address) const {
    const Repeat& repeat = program_.repeats[repeat_];
    const bool last = iteration_ + 1 == repeat.iterations && address.length == repeat.segment_bytes;
    return last ? repeat.last_bytes : address.length;
}

inline void Execution::post(const Instruction& instruction) {
    const MessagePlan* plans = &program_.messages[instruction.first];
    if (instruction.in_repeat) {
        post_in_repeat(*plans);
        return;
    }
    Message* messages = &slots_[plans->slot];
    const std::uint32_t count = instruction.count;
    for (std::uint32_t i = 0; i < count; ++i) {
        messages[i].data = resolve(plans[i].address);
        messages[i].sequence = sequence_;
    }
    plans->transport->post({messages, count});
}

void Execution::post_in_repeat(const MessagePlan& plan) {
    Message& message = slots_[plan.slot + static_cast<std::uint32_t>(iteration_ & plan.mask)];
    message.data = resolve(plan.address);
    if (plan.address.length > 0) { // Signals stay empty.
        message.bytes = length(plan.address);
    }
    message.sequence = sequence_;
    message.step =
        static_cast<std::uint16_t>(plan.first_step + iteration_ * plan.steps_per_iteration);
    plan.transport->post({&message, 1});
}

void Execution::copy(const Instruction& instruction) const {
    const std::uint64_t bytes =
        instruction.in_repeat ? length(instruction.target) : instruction.target.length;
    std::memcpy(resolve(instruction.target), resolve(instruction.source), bytes);
}

void Execution::publish(const Instruction& instruction) const {
    const Address& source = instruction.source;
    std::byte* window = windows_[static_cast<std::size_t>(source.buffer)];
    if (window != nullptr) {
        std::memcpy(window + offset(source) % program_.window_bytes, resolve(source),
                    instruction.in_repeat ? length(source) : source.length);
    }
}

inline void Execution::reduce(const Instruction& instruction) {
    const std::uint64_t bytes =
        instruction.in_repeat ? length(instruction.target) : instruction.target.length;
    const Address* const addresses = program_.operands.data() + instruction.first;
    const std::byte** const operands = operands_.data();
    for (std::uint32_t i = 0; i < instruction.count; ++i) {
        operands[i] = resolve(addresses[i]);
    }
    reduction_.combine(reduction_.context, operands, instruction.count, resolve(instruction.target),
                       bytes);
}

/// False for the program's operator, which is called from outside of the engine.
inline bool Execution::reduce_now(const Instruction& instruction) {
    if (reduction_.foreign()) [[unlikely]] {
        state_ = ExecutionState::operator_due;
        return false;
    }
    reduce(instruction);
    return true;
}

/// The program's operator gets whole vectors.
void Execution::bind_parts() {
    for (const std::uint32_t slot : program_.parts) {
        slots_[slot].in_place = !reduction_.foreign();
    }
}

/// Combines what has come of the message with the other operands, part by part, in the order of its
/// bytes. False while more is to come, or if it failed.
bool Execution::reduce_parts(const Instruction& instruction) {
    const MessagePlan& plan = program_.messages[instruction.message];
    const auto turn = instruction.in_repeat ? iteration_ & plan.mask : 0;
    Message& message = slots_[plan.slot + static_cast<std::uint32_t>(turn)];
    if (message.taken == 0 && message.state == MessageState::done) { // Whole, in its place.
        return reduce_now(instruction);
    }
    const Address* const addresses = program_.operands.data() + instruction.first;
    std::byte* const target = resolve(instruction.target);
    const auto combine = [&](const std::byte* arrived, std::uint64_t bytes) {
        for (std::uint32_t i = 0; i < instruction.count; ++i) {
            operands_[i] = resolve(addresses[i]) + message.taken;
        }
        operands_[instruction.arriving] = arrived;
        reduction_.combine(reduction_.context, operands_.data(), instruction.count,
                           target + message.taken, bytes);
        message.taken += bytes;
    };
    while (message.state == MessageState::part) {
        combine(message.part, message.part_bytes);
        plan.transport->take_part(message);
    }
    if (message.state != MessageState::done) {
        state_ = message.state == MessageState::failed ? ExecutionState::failed : state_;
        return false;
    }
    if (message.taken < message.bytes) { // What follows in a line.
        combine(message.data + message.taken, message.bytes - message.taken);
    }
    message.taken = 0;
    return true;
}

void Execution::call_operator() {
    UCG_ASSERT(state_ == ExecutionState::in_operator);
    reduce(program_.instructions[cursor_]);
}

/// The first instruction of another iteration, if there is one to run; else what follows.
const Instruction* Execution::next_iteration(const Instruction* at) {
    if (++iteration_ < program_.repeats[repeat_].iterations) {
        return &program_.instructions[at->first];
    }
    iteration_ = 0;
    ++repeat_;
    return at + 1;
}

/// Issues one instruction and returns the next; null if it must wait, or was the last.
inline const Instruction* Execution::issue(const Instruction* at) {
    if (at->waits && !ready(*at)) {
        return nullptr;
    }
    switch (at->kind) {
    case InstructionKind::post: post(*at); return at + 1;
    case InstructionKind::copy: copy(*at); return at + 1;
    case InstructionKind::reduce: return reduce_now(*at) ? at + 1 : nullptr;
    case InstructionKind::reduce_parts: return reduce_parts(*at) ? at + 1 : nullptr;
    case InstructionKind::publish: publish(*at); return at + 1;
    case InstructionKind::share: return share(*at) ? at + 1 : nullptr;
    case InstructionKind::wait: return at + 1;
    case InstructionKind::end_iteration: return next_iteration(at);
    case InstructionKind::finish: state_ = ExecutionState::done; return nullptr;
    }
    __builtin_unreachable();
}

void Execution::advance() {
    const Instruction* const instructions = program_.instructions.data();
    const Instruction* at = instructions + cursor_;
    while (const Instruction* next = issue(at)) {
        at = next;
    }
    cursor_ = static_cast<std::uint32_t>(at - instructions);
}

} // namespace ucg::engine
