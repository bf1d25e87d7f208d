// One run of a program: its messages, scratch memory and position. An execution is made when a plan
// enters the cache, and can be started many times without allocating. It can be neither copied nor
// moved, since messages in flight point into it.
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

/// The state of an execution. States in which it may be started come first and those in which it is
/// in progress come last, so that one comparison tells.
enum class ExecutionState : std::uint8_t {
    idle,         ///< Never started.
    done,         ///< Complete: the output may be used.
    spoilt,       ///< Complete, but an operator of the program failed: the output is undefined.
    failed,       ///< A transport failed; the output is undefined. It is not started again.
    queued,       ///< Started, but cannot begin before earlier collectives have ended.
    running,      ///< Has begun: waits for messages, flag slots or, where they help, peers.
    operator_due, ///< Waits until somebody calls the program's operator.
    in_operator,  ///< Some thread has taken the program's operator in order to call it.
};

/// The buffers and the operator of a run. Nothing in it is owned.
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
    /// Returns the operator that the execution is bound to.
    const Reduction& reduction() const { return reduction_; }
    /// Returns the number of the latest start among those of the engine, from 0, modulo 2^32.
    std::uint32_t sequence() const { return sequence_; }
    /// How far a run is: different once it has gone on, but for the bytes of single messages.
    struct Progress {
        graph::Position position; ///< The step that is to be issued next.
        std::uint64_t left = 0;   ///< What that step still awaits, or has taken; units and parts.
        bool operator==(const Progress&) const = default;
    };
    Progress how_far();
    /// Returns the ranks, rising and each once, without whose messages or shares the next step
    /// cannot be issued. Empty if it waits for something else: for the end of an earlier
    /// collective, an operator of the program, room, or units of a collective whose ranks help one
    /// another. Allocates; it is for reports.
    std::vector<Rank> awaited();
    /// Returns whether ranks help one another with this collective (helped.hpp). If so, each round
    /// of progress on it may take as long as a unit of work.
    bool helps() const { return helped_ != nullptr; }

    /// Sets the buffers and the operator of the next start and of all after it, until it is called
    /// again. REQUIRES: not in progress.
    void bind(const Binding& binding) {
        bind_buffers(binding.input, binding.output);
        reduction_ = binding.reduction;
        if (!program_.parts.empty()) {
            bind_parts();
        }
    }

    /// Like bind(), but keeps the operator.
    void bind_buffers(std::byte* input, std::byte* output) {
        base(graph::BufferKind::input) = input;
        base(graph::BufferKind::output) = output;
    }

    /// If `kept`, keeps the program's operator for the thread that waits for this collective:
    /// Engine::take_operator() does not give it to other threads until this is called with false.
    void keep_operator(bool kept) { kept_ = kept; }

    /// Has Engine::take_ended() return this execution once it is no longer in progress.
    /// take_listener() then returns `listener`. Null undoes this. REQUIRES: in progress.
    void tell_end(void* listener) { listener_ = listener; }
    void* take_listener() { return std::exchange(listener_, nullptr); }

    /// Calls the operator for the reduction that is due, unless the operator has failed in this
    /// run. This is the one call that needs no lock: nothing else touches a collective in that
    /// state, or what the operator reads. REQUIRES: it was taken by Engine::take_operator().
    void call_operator();

  private:
    friend class Engine;

    struct FreeScratch {
        void operator()(std::byte* memory) const;
    };

    /// Calls visit(Message&) for each message for which the next step waits.
    template <typename Visit>
    void for_each_posted(Visit visit);
    void lay_out_scratch();
    void begin_helped();
    /// Does at most one unit of a helped collective. Returns whether it did one.
    bool advance_helped();
    /// Issues steps until one must wait or the collective has ended.
    void advance();
    /// Runs a flag-slot exchange from its start until it must wait or has ended. REQUIRES: the
    /// sequence of exchange_ is set.
    void exchange();
    [[gnu::noinline]] void await_exchange(std::size_t seen);
    [[gnu::noinline]] void await_operator(const graph::Step* at);
    void read_flag_slots();
    void fold_flag_slots(const graph::Step& step);
    // What short collectives need is inlined in advance(); the rest is not.
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
    /// Returns where the transport writes the place of the next flag slot that has not been seen.
    /// The engine only reads from the places.
    const std::byte** places() {
        return const_cast<const std::byte**>(bases_.data() + graph::kOwnBases + flag_slots_seen_);
    }
    std::byte*& base(graph::BufferKind buffer) { return bases_[static_cast<std::size_t>(buffer)]; }
    [[gnu::noinline]] std::uint64_t length(const graph::Address& address) const;
    /// Returns the address's offset in this iteration. REQUIRES: the position is within a repeat,
    /// or the address has no stride.
    std::uint64_t offset(const graph::Address& address) const;
    /// Returns the step's addresses: what it writes, if it writes anything, then what it reads.
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
    std::unique_ptr<const std::byte*[]> operands_; // Room for the operands of one reduction.
    std::unique_ptr<std::byte, FreeScratch> scratch_;
    std::unique_ptr<HelpedRun> helped_; // Runs instead of the steps, where ranks help one another.
    Reduction reduction_;
    std::vector<std::byte*> bases_; // By Address::base; flag slots only once they are seen.
    std::byte* staging_buffers_[2] = {nullptr, nullptr}; // Of input and output; null: in place.
    std::uint32_t flag_slots_seen_ = 0;                  // How many have been seen, in order.
    transport::FlagSlotExchange exchange_; // Its sequence is set at each start with flag slots.
    graph::Position at_;                   // Its step is current only outside advance().
    std::uint32_t sequence_ = 0;
    ExecutionState state_ = ExecutionState::idle;
    bool kept_ = false;
    bool spoilt_ = false; // The program's operator has failed in this run.
    void* listener_ = nullptr;
    Execution* next_ = nullptr; // In the engine's list of those in progress, or of those ended.
};

// ---- Exchanges: these functions are inlined where collectives start.

inline void Execution::fold_flag_slots(const graph::Step& step) {
    std::byte* const* const bases = bases_.data();
    const graph::Address& target = *addresses(step);
    const graph::Address* address = &target;
    const std::byte** const operands = operands_.get();
    std::uint32_t i = 0;
    do { // A reduction has at least two operands.
        ++address;
        operands[i] = bases[address->base] + address->offset;
    } while (++i < step.count);
    reduction_.combine(reduction_.context, operands, step.count, bases[target.base] + target.offset,
                       target.length);
}

/// Runs the steps of an exchange that follow the share. Their addresses do not move. REQUIRES: all
/// flag slots have been seen.
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
    const std::size_t seen = program_.flag_slots->exchange(exchange_);
    if (seen == exchange_.reads.size()) [[likely]] {
        read_flag_slots();
    } else {
        await_exchange(seen);
    }
}

} // namespace ucg::engine
