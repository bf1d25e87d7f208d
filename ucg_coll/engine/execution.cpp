#include "ucg_coll/engine/execution.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>

#include "ucg_coll/base/copy.hpp"

namespace ucg::engine {

using graph::Address;
using graph::Step;
using graph::StepKind;
using graph::Wait;
using transport::Message;
using transport::MessageState;

void Execution::FreeScratch::operator()(std::byte* memory) const {
    ::operator delete(memory);
}

Execution::Execution(const Program& program) : program_(program), slots_(program.slots) {
    std::size_t operand_count = 0;
    for (const Step& step : program.lowered.steps) {
        if (step.kind == StepKind::reduce || step.kind == StepKind::reduce_parts) {
            operand_count = std::max<std::size_t>(operand_count, step.count);
        }
    }
    operands_ = std::make_unique<const std::byte*[]>(operand_count);
    bases_.resize(graph::kOwnBases + program.lowered.flag_slots.size());
    exchange_.sequence.plan = program.plan;
    exchange_.bytes = program.exchange ? program.lowered.addresses.front().length : 0;
    exchange_.reads = program.lowered.flag_slots;
    exchange_.places = places();
    lay_out_scratch();
    if (program.helped.help != nullptr) {
        helped_ = std::make_unique<HelpedRun>(program.helped);
    }
}

void Execution::begin_helped() {
    helped_->begin({sequence_, program_.plan, base(graph::BufferKind::input), program_.input_bytes,
                    base(graph::BufferKind::output), program_.output_bytes, reduction_});
}

bool Execution::advance_helped() {
    const HelpedRun::Outcome outcome = helped_->advance();
    if (outcome == HelpedRun::Outcome::over) {
        state_ = ExecutionState::done;
    } else if (outcome == HelpedRun::Outcome::failed) {
        state_ = ExecutionState::failed;
    }
    return outcome == HelpedRun::Outcome::did_unit;
}

/// Sets where scratch lies: the part that peers name in staging memory, the rest in memory of the
/// execution.
void Execution::lay_out_scratch() {
    const std::uint64_t shared_bytes = program_.scratch_bytes - program_.own_scratch_bytes;
    const std::uint64_t here_bytes =
        program_.memory != nullptr ? 0 : round_up(shared_bytes, kCacheLine);
    std::byte* here = nullptr;
    if (const std::uint64_t bytes = here_bytes + program_.own_scratch_bytes; bytes > 0) {
        // The block is aligned here: glibc does not reuse the gaps that its aligned allocation
        // leaves between blocks of various lengths, and a program may have thousands of
        // communicators.
        std::size_t room = bytes + kCacheLine - 1;
        scratch_.reset(static_cast<std::byte*>(::operator new(room)));
        void* start = scratch_.get();
        here = static_cast<std::byte*>(std::align(kCacheLine, bytes, start, room));
    }
    base(graph::BufferKind::scratch) =
        program_.memory != nullptr ? program_.memory->staging().data() : here;
    bases_[graph::kOwnScratchBase] = here + here_bytes;
}

/// Tells peers where they find this collective's buffers: in place, or in staging buffers behind
/// the scratch. Returns false if there is no memory for the staging buffers; then the collective
/// has failed.
bool Execution::expose() {
    transport::PeerMemory& memory = *program_.memory;
    std::byte* staging = memory.staging().data();
    const std::uint64_t bytes[] = {program_.input_bytes, program_.output_bytes};
    std::byte* const staging_buffers[] = {staging + program_.staging.input_staging_buffer,
                                          staging + program_.staging.output_staging_buffer};
    transport::SharedBuffers buffers;
    for (std::size_t i = 0; i < 2; ++i) {
        const bool mapped =
            program_.lowered.helped || memory.is_mapped_by_peers(bases_[i], bytes[i]);
        staging_buffers_[i] = mapped ? nullptr : staging_buffers[i];
        buffers[i] = mapped ? transport::SharedBuffer{bases_[i], false}
                            : transport::SharedBuffer{staging_buffers[i], true};
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
    bool over = true;
    graph::for_each_slot(wait, at_.iteration,
                         [&](std::uint32_t slot) { over = slot_ready(slot) && over; });
    return over;
}

inline bool Execution::ready(const Step& step) {
    const Wait* const waits = program_.lowered.waits.data() + step.first_wait;
    for (std::uint32_t i = 0; i < step.wait_count; ++i) {
        if (!wait_over(waits[i])) {
            return false;
        }
    }
    return state_ != ExecutionState::failed &&
           (step.flag_slots_until <= flag_slots_seen_ || flag_slots_ready(step));
}

bool Execution::flag_slots_ready(const Step& step) {
    const std::span reads = unseen(step.flag_slots_until);
    const std::size_t seen = program_.flag_slots->poll(exchange_.sequence, reads, places());
    flag_slots_seen_ += static_cast<std::uint32_t>(seen);
    if (seen < reads.size() && program_.flag_slots->broken()) {
        state_ = ExecutionState::failed;
    }
    return seen == reads.size();
}

/// Shares what the step says. Returns false, and shares nothing, while the flag slot has no room or
/// if the flag slots are broken; in the latter case the collective has failed.
inline bool Execution::share(const Step& step) {
    const Address& source = *addresses(step);
    const std::byte* const data = source.length > 0 ? resolve(source) : nullptr;
    if (!program_.flag_slots->share(exchange_.sequence, data, source.length)) [[unlikely]] {
        state_ = program_.flag_slots->broken() ? ExecutionState::failed : state_;
        return false;
    }
    return true;
}

std::uint64_t Execution::offset(const Address& address) const {
    return address.stride == graph::Stride::fixed
               ? address.offset
               : program_.lowered.repeats[at_.repeat].offset_at(address.offset, address.stride,
                                                                at_.iteration);
}

/// Returns where an address is that has a stride or that is a peer's.
std::byte* Execution::resolve_moving(const Address& address) const {
    if (!address.of_peer) {
        return bases_[address.base] + offset(address);
    }
    const transport::SharedBuffer buffer =
        program_.memory->peer_buffer(static_cast<Rank>(address.base), address.buffer, sequence_);
    UCG_ASSERT(buffer.data != nullptr);
    return buffer.data + (buffer.staging_buffer ? offset(address) % program_.staging_buffer_bytes
                                                : offset(address));
}

/// Returns the address's length in this iteration. REQUIRES: the position is within a repeat.
std::uint64_t Execution::length(const Address& address) const {
    return program_.lowered.repeats[at_.repeat].length_at(address.length, at_.iteration);
}

/// Returns whether the step may post its messages; otherwise the collective has failed. Messages
/// may contain what was read from peers' memory, which is wrong if an owner had failed before the
/// read. Ranks on the same host notice that themselves, but other ranks do not.
inline bool Execution::may_leave(const Step& step) {
    if (program_.memory == nullptr ||
        program_.carriers[step.carrier]->peer_memory() == program_.memory ||
        program_.memory->intact()) {
        return true;
    }
    state_ = ExecutionState::failed;
    return false;
}

inline void Execution::post(const Step& step) {
    if (step.in_repeat) {
        post_in_repeat(step);
        return;
    }
    const graph::MessagePlan* const plans = &program_.lowered.messages[step.first];
    Message* const messages = &slots_[plans->slot];
    const std::uint32_t count = step.count;
    for (std::uint32_t i = 0; i < count; ++i) {
        messages[i].data = resolve(plans[i].address);
        messages[i].sequence = sequence_;
    }
    program_.carriers[step.carrier]->post({messages, count});
}

void Execution::post_in_repeat(const Step& step) {
    const graph::MessagePlan& plan = program_.lowered.messages[step.first];
    Message& message = slots_[plan.slot_at(at_.iteration)];
    message.data = resolve(plan.address);
    message.bytes = length(plan.address);
    message.sequence = sequence_;
    message.step =
        static_cast<std::uint16_t>(plan.first_step + at_.iteration * plan.steps_per_iteration);
    program_.carriers[step.carrier]->post({&message, 1});
}

void Execution::copy(const Step& step) const {
    const Address* const target = addresses(step);
    const std::uint64_t bytes = step.in_repeat ? length(*target) : target->length;
    copy_bytes(resolve(*target), resolve(target[1]), bytes);
}

void Execution::publish(const Step& step) const {
    const Address& source = *addresses(step);
    std::byte* staging_buffer = staging_buffers_[static_cast<std::size_t>(source.buffer)];
    if (staging_buffer != nullptr) {
        copy_bytes(staging_buffer + offset(source) % program_.staging_buffer_bytes, resolve(source),
                   step.in_repeat ? length(source) : source.length);
    }
}

inline void Execution::reduce(const Step& step) {
    const Address& target = *addresses(step);
    const Address* const sources = &target + 1;
    const std::uint64_t bytes = step.in_repeat ? length(target) : target.length;
    const std::byte** const operands = operands_.get();
    for (std::uint32_t i = 0; i < step.count; ++i) {
        operands[i] = resolve(sources[i]);
    }
    reduction_.combine(reduction_.context, operands, step.count, resolve(target), bytes);
}

/// Reduces at once, unless the operator is the program's: then it returns false, and the engine's
/// caller has to call the operator.
inline bool Execution::reduce_now(const Step& step) {
    if (reduction_.foreign()) [[unlikely]] {
        state_ = ExecutionState::operator_due;
        return false;
    }
    reduce(step);
    return true;
}

/// Sets whether messages may be combined where they arrive, in parts: an operator of the program
/// gets whole vectors.
void Execution::bind_parts() {
    for (const std::uint32_t slot : program_.parts) {
        slots_[slot].read_on_arrival = !reduction_.foreign();
    }
}

/// Combines the parts of the message that have arrived with the other operands, in the order of the
/// message's bytes. Returns false if the step must wait: more parts are to arrive, an operator of
/// the program is due, or the message has failed.
bool Execution::reduce_parts(const Step& step) {
    const graph::MessagePlan& plan = program_.lowered.messages[step.message];
    Message& message = slots_[plan.slot_at(at_.iteration)];
    if (message.taken == 0 && message.state == MessageState::done) { // All of it is at `data`.
        return reduce_now(step);
    }
    const Address* const sources = addresses(step) + 1;
    std::byte* const target = resolve(*addresses(step));
    const auto combine = [&](const std::byte* arrived, std::uint64_t bytes) {
        for (std::uint32_t i = 0; i < step.count; ++i) {
            operands_[i] = resolve(sources[i]) + message.taken;
        }
        operands_[step.arriving] = arrived;
        reduction_.combine(reduction_.context, operands_.get(), step.count, target + message.taken,
                           bytes);
        message.taken += bytes;
    };
    while (message.state == MessageState::part) {
        combine(message.part, message.part_bytes);
        program_.carriers[step.carrier]->take_part(message);
    }
    if (message.state != MessageState::done) {
        state_ = message.state == MessageState::failed ? ExecutionState::failed : state_;
        return false;
    }
    if (message.taken < message.bytes) { // The rest is at `data`, and was not given out as a part.
        combine(message.data + message.taken, message.bytes - message.taken);
    }
    message.taken = 0;
    return true;
}

void Execution::call_operator() {
    UCG_ASSERT(state_ == ExecutionState::in_operator);
    if (!spoilt_) {
        reduce(program_.lowered.steps[at_.step]);
    }
}

/// Returns the first step of the repeat, for its next iteration; after the last iteration, the step
/// that follows the repeat.
const Step* Execution::next_iteration(const Step* at) {
    const Step* const steps = program_.lowered.steps.data();
    at_.step = static_cast<std::uint32_t>(at - steps);
    at_.end_iteration(program_.lowered);
    return steps + at_.step;
}

/// Issues one step and returns the next; null if the step must wait, or was the last.
inline const Step* Execution::issue(const Step* at) {
    if (at->waits && !ready(*at)) {
        return nullptr;
    }
    switch (at->kind) {
    case StepKind::post:
        if (!may_leave(*at)) [[unlikely]] {
            return nullptr;
        }
        post(*at);
        return at + 1;
    case StepKind::copy: copy(*at); return at + 1;
    case StepKind::reduce: return reduce_now(*at) ? at + 1 : nullptr;
    case StepKind::reduce_parts: return reduce_parts(*at) ? at + 1 : nullptr;
    case StepKind::publish: publish(*at); return at + 1;
    case StepKind::share: return share(*at) ? at + 1 : nullptr;
    case StepKind::wait: return at + 1;
    case StepKind::end_iteration: return next_iteration(at);
    case StepKind::finish:
        state_ = program_.memory != nullptr && !program_.memory->intact() ? ExecutionState::failed
                 : spoilt_                                                ? ExecutionState::spoilt
                                                                          : ExecutionState::done;
        return nullptr;
    }
    __builtin_unreachable();
}

void Execution::advance() {
    const Step* const steps = program_.lowered.steps.data();
    const Step* at = steps + at_.step;
    while (const Step* next = issue(at)) {
        at = next;
    }
    at_.step = static_cast<std::uint32_t>(at - steps);
}

template <typename Visit>
void Execution::for_each_posted(Visit visit) {
    const auto look = [&](std::uint32_t slot) {
        const auto state = static_cast<MessageState>(
            transport::shared_state(slots_[slot]).load(std::memory_order_acquire));
        if (state == MessageState::posted) {
            visit(slots_[slot]);
        }
    };
    const Step& step = program_.lowered.steps[at_.step];
    for (const Wait& wait : program_.lowered.waits_of(step)) {
        graph::for_each_slot(wait, at_.iteration, look);
    }
    if (step.kind == StepKind::reduce_parts) {
        look(program_.lowered.messages[step.message].slot_at(at_.iteration));
    }
}

Execution::Progress Execution::how_far() {
    if (helps()) {
        return {{}, helped_->how_far()};
    }
    Progress progress = {at_, flag_slots_seen_};
    for_each_posted([&](const Message& message) { progress.left += 1 + message.taken; });
    return progress;
}

std::vector<Rank> Execution::awaited() {
    std::vector<Rank> ranks;
    if (state_ != ExecutionState::running || helps()) {
        return ranks;
    }
    for_each_posted([&](const Message& message) { ranks.push_back(message.peer); });
    const Step& step = program_.lowered.steps[at_.step];
    for (const graph::FlagSlotRead& read :
         unseen(std::max(step.flag_slots_until, flag_slots_seen_))) {
        if (program_.flag_slots->shared(exchange_.sequence, read.owner, read.bytes) == nullptr) {
            ranks.push_back(read.owner);
        }
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
}

} // namespace ucg::engine
