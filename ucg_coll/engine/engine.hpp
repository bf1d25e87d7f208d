// Executes programs over transports: blocking, nonblocking and restartable collectives of one group
// are one mechanism. It knows the graph and the Transport interface, nothing else.
//
// Threading: one thread at a time per engine; the caller locks. Nothing here blocks or calls the
// program back.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/engine/execution.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::engine {

/// How many collectives of one group may be outstanding at once, and how far apart: later starts
/// queue until the oldest completes. This bounds what early arrivals can occupy at a peer; how many
/// there are alone would not, since one that lasts would let any number of others pass it.
inline constexpr std::uint32_t kOutstandingMax = 64;

class Engine {
  public:
    /// The distinct transports of the group; they must outlive the engine.
    explicit Engine(std::vector<transport::Transport*> transports)
        : transports_(std::move(transports)) {}
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Starts `execution` as the group's next collective and issues what can be issued. Every rank
    /// starts the same collectives in the same order. Does not allocate.
    /// One that has failed stays failed: a transport may still hold its messages.
    /// REQUIRES: bound, not in progress. The execution and the buffers stay valid until it
    /// completes.
    void start(Execution& execution) {
        if (execution.startable() && execution.program_.exchange && first() == nullptr) [[likely]] {
            exchange(execution);
        } else {
            start_any(execution);
        }
    }
    void start(Execution& execution, const Binding& binding) {
        execution.bind(binding);
        start(execution);
    }

    /// Moves messages and issues what became ready. Returns how many things happened: 0 = idle.
    unsigned progress();

    /// Is nothing in progress? Any thread may ask; what it hears may be over.
    bool idle() const { return first_.load(std::memory_order_relaxed) == nullptr; }

    /// The program's own operators are called by the caller of the engine, between these two, so
    /// that it can hold no lock meanwhile:
    ///
    ///     if (Execution* execution = engine.take_operator()) {
    ///         execution->call_operator(); // Without the lock.
    ///         engine.operator_called(*execution, failed);
    ///     }
    ///
    /// A collective whose operator is due, if it is not kept for a thread; null if there is none.
    /// Nobody else gets it.
    Execution* take_operator();
    /// The same for this one, kept or not: is its operator due?
    bool take_operator(Execution& execution) {
        if (execution.state_ != ExecutionState::operator_due) [[likely]] {
            return false;
        }
        execution.state_ = ExecutionState::in_operator;
        return true;
    }
    /// progress() then goes on with it, so that no peer waits for it, also if the operator has
    /// `failed`: then it ends as spoilt.
    void operator_called(Execution& execution, bool failed = false);

    /// A collective that has ended since and whose end is to be told (Execution::tell_end); null if
    /// there is none. In the order in which they ended.
    Execution* take_ended();

    /// Why an execution failed; ok if none did.
    Status status() const;

  private:
    bool may_begin(const Execution& execution) const;
    void begin(Execution& execution);
    void begin_exposed(Execution& execution);
    void start_any(Execution& execution);
    [[gnu::always_inline]] void exchange(Execution& execution);
    [[gnu::noinline]] void await(Execution& execution);
    void append(Execution& execution);
    unsigned advance(Execution& execution);
    void abandon();
    unsigned advance_all();
    void remove_finished(Execution& execution, Execution* previous);
    void append_ended(Execution& execution);
    void finish_turn(const Execution& execution) const;
    Execution* first() const { return first_.load(std::memory_order_relaxed); }
    void set_first(Execution* execution) { first_.store(execution, std::memory_order_relaxed); }

    std::vector<transport::Transport*> transports_;
    std::atomic<Execution*> first_ = nullptr; // In progress, in order of sequence; see idle().
    Execution* last_ = nullptr;
    Execution* first_ended_ = nullptr; // To be told of.
    Execution* last_ended_ = nullptr;
    const Execution* exposed_ = nullptr; // Uses the memory that peers read: one at a time.
    std::uint32_t next_sequence_ = 0;
    std::uint64_t next_turn_ = 0; // Of the boards.
};

/// The short path: a program that shares something first and then only reads what its peers have
/// shared, started while nothing else is in progress. Most short collectives on one host are that;
/// whatever has to wait goes on as any other program.
inline void Engine::exchange(Execution& execution) {
    execution.sequence_ = next_sequence_;
    execution.exchange_.turn.sequence = next_sequence_++;
    execution.exchange_.turn.turn = next_turn_++;
    execution.exchange();
    if (execution.state_ != ExecutionState::done) [[unlikely]] {
        await(execution);
    }
}

} // namespace ucg::engine
