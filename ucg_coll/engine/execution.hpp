// One run of a program: its messages, scratch memory and position. Made when a plan enters the
// cache, started many times, never allocating again. A resource: messages in flight point into it.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ucg_coll/engine/program.hpp"
#include "ucg_coll/engine/reduction.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::engine {

/// First those that may be started, last those in progress: a compare tells.
enum class ExecutionState : std::uint8_t {
    idle,         ///< Never started.
    done,         ///< Complete: the output may be used.
    spoilt,       ///< Complete, but an operator of the program failed: the output is undefined.
    failed,       ///< A transport failed; the output is undefined. It is not started again.
    queued,       ///< Started, but too many earlier collectives of the group are outstanding.
    running,      ///< Waits for messages.
    operator_due, ///< The program's operator has to be called before it goes on.
    in_operator,  ///< Some thread is about that.
};

/// What a run works on.
struct Binding {
    std::byte* input = nullptr;
    std::byte* output = nullptr;
    Reduction reduction;
};

class Execution {
  public:
    /// `program` must outlive the execution.
    explicit Execution(const Program& program);
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;

    ExecutionState state() const { return state_; }
    bool in_progress() const { return state_ >= ExecutionState::queued; }
    bool startable() const { return state_ <= ExecutionState::spoilt; }
    const Program& program() const { return program_; }
    /// What it is bound to.
    const Reduction& reduction() const { return reduction_; }
    /// Do ranks help one another with it? Then each look at it may take as long as a unit.
    bool helps() const { return helped_ != nullptr; }

    /// For the next start and those after it, until it is bound again. REQUIRES: not in progress.
    void bind(const Binding& binding) {
        bind_buffers(binding.input, binding.output);
        reduction_ = binding.reduction;
        if (!program_.parts.empty()) {
            bind_parts();
        }
    }

    /// The same with the reduction that it is bound to.
    void bind_buffers(std::byte* input, std::byte* output) {
        base(graph::BufferKind::input) = input;
        base(graph::BufferKind::output) = output;
    }

    /// Only the thread that waits for the collective may call its operator, until it says
    /// otherwise: others leave it alone.
    void keep_operator(bool kept) { kept_ = kept; }

    /// Once it is no longer in progress, Engine::take_ended() gives it out, with this; null: it
    /// does not. REQUIRES: in progress.
    void tell_end(void* listener) { listener_ = listener; }
    void* take_listener() { return std::exchange(listener_, nullptr); }

    /// Calls the operator for what is due, unless it has failed in this run. REQUIRES: taken from
    /// the engine. The one call that needs no lock: nothing else touches a collective in that
    /// state, nor what it reads.
    void call_operator();

  private:
    friend class Engine;

    struct FreeScratch {
        void operator()(std::byte* memory) const;
    };

    void lay_out_scratch();
    void begin_helped();
    /// Does a unit, at most. Returns whether it did.
    bool advance_helped();
    /// Issues instructions until one must wait, or the end.
    void advance();
    /// The same from the start of a program that is an exchange, whose turn is set.
    void exchange();
    [[gnu::noinline]] void await_exchange(std::size_t seen);
    [[gnu::noinline]] void await_operator(const graph::Step* at);
    void read_flag_slots();
    void fold_flag_slots(const graph::Step& step);
    // What short collectives do is inlined in advance(), the rest is kept out of its way.
    bool ready(const graph::Step& step);
    bool slot_ready(std::uint32_t slot);
    bool wait_over(const graph::Wait& wait);
    std::byte* resolve(const graph::Address& address) const {
        return address.moves ? resolve_moving(address) : bases_[address.base] + address.offset;
    }
    [[gnu::noinline]] std::byte* resolve_moving(const graph::Address& address) const;
    [[gnu::noinline]] bool flag_slots_ready(const graph::Step& step);
    bool share(const graph::Step& step);
    std::span<const graph::FlagSlotRead> unseen(std::uint32_t until) const {
        return {program_.lowered.flag_slots.data() + flag_slots_seen_, until - flag_slots_seen_};
    }
    /// Where the next flag slot's place is to be written: the engine only reads there.
    const std::byte** places() {
        return const_cast<const std::byte**>(bases_.data() + graph::kOwnBases + flag_slots_seen_);
    }
    std::byte*& base(graph::BufferKind buffer) { return bases_[static_cast<std::size_t>(buffer)]; }
    [[gnu::noinline]] std::uint64_t length(const graph::Address& address) const;
    /// REQUIRES: within a repeat, or the address does not move.
    std::uint64_t offset(const graph::Address& address) const;
    /// What the step writes, if anything, and what it reads behind that.
    const graph::Address* addresses(const graph::Step& step) const {
        return program_.lowered.addresses.data() + step.first;
    }
    bool may_leave(const graph::Step& step);
    void post(const graph::Step& step);
    [[gnu::noinline]] void post_in_repeat(const graph::Step& step);
    void copy(const graph::Step& step) const;
    [[gnu::noinline]] void publish(const graph::Step& step) const;
    bool expose();
    void reduce(const graph::Step& step);
    bool reduce_now(const graph::Step& step);
    [[gnu::noinline]] void bind_parts();
    [[gnu::noinline]] bool reduce_parts(const graph::Step& step);
    [[gnu::noinline]] const graph::Step* next_iteration(const graph::Step* at);
    [[gnu::always_inline]] const graph::Step* issue(const graph::Step* at);

    const Program& program_;
    std::vector<transport::Message> slots_;
    std::unique_ptr<const std::byte*[]> operands_; // Of the reduction being issued.
    std::unique_ptr<std::byte, FreeScratch> scratch_;
    std::unique_ptr<HelpedRun> helped_; // Instead of the steps, where ranks help one another.
    Reduction reduction_;
    std::vector<std::byte*> bases_;                      // Flag slots so far as they are seen.
    std::byte* staging_buffers_[2] = {nullptr, nullptr}; // Of input and output; null: in place.
    std::uint32_t flag_slots_seen_ = 0;
    transport::FlagSlotExchange
        exchange_;       // Its turn is that of the flag slots, where it takes one.
    graph::Position at_; // Its step is set when the steps have been left.
    std::uint32_t sequence_ = 0;
    ExecutionState state_ = ExecutionState::idle;
    bool kept_ = false;
    bool spoilt_ = false; // The program's operator has failed in this run.
    void* listener_ = nullptr;
    Execution* next_ = nullptr; // In the engine's list of those in progress, or of those ended.
};

// ---- exchanges, which are inlined where collectives start

inline void Execution::fold_flag_slots(const graph::Step& step) {
    std::byte* const* const bases = bases_.data();
    const graph::Address& target = *addresses(step);
    const graph::Address* address = &target;
    const std::byte** const operands = operands_.get();
    std::uint32_t i = 0;
    do { // At least two.
        ++address;
        operands[i] = bases[address->base] + address->offset;
    } while (++i < step.count);
    reduction_.combine(reduction_.context, operands, step.count, bases[target.base] + target.offset,
                       target.length);
}

/// What follows the share, once all flag slots are there: no address moves.
inline void Execution::read_flag_slots() {
    for (const graph::Step* at = program_.lowered.steps.data() + 1;; ++at) {
        if (at->kind == graph::StepKind::finish) {
            state_ = ExecutionState::done;
            return;
        }
        if (at->kind == graph::StepKind::reduce) {
            if (reduction_.foreign()) [[unlikely]] {
                await_operator(at);
                return;
            }
            fold_flag_slots(*at);
        } else if (at->kind == graph::StepKind::copy) {
            const graph::Address* const target = addresses(*at);
            const graph::Address* const source = target + 1;
            std::memcpy(bases_[target->base] + target->offset,
                        bases_[source->base] + source->offset, target->length);
        }
    }
}

inline void Execution::exchange() {
    const graph::Address& source = program_.lowered.addresses.front();
    exchange_.data = bases_[source.base] + source.offset;
    const std::size_t seen = program_.flag_slot->exchange(exchange_);
    if (seen == exchange_.reads.size()) [[likely]] {
        read_flag_slots();
    } else {
        await_exchange(seen);
    }
}

} // namespace ucg::engine
