// Executes programs over transports. Blocking, nonblocking and restartable collectives of one group
// are one mechanism. The engine knows the graph and the Transport interface, and nothing else.
//
// Threading: one thread at a time may use an engine; the caller locks. Nothing here blocks or calls
// the program back.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/engine/execution.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::engine {

/// How many collectives of one group may be in progress at once, and how far the newest may be from
/// the oldest: later starts queue until the oldest completes. This bounds the memory that early
/// arrivals can occupy at a peer. A bound on their number alone would not suffice, since one long
/// collective would let any number of others pass it.
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
    /// An execution that has failed is not started again: a transport may still hold its messages.
    /// `looks`: how often to look again for what peers are about to share, before anything else
    /// (transport::FlagSlotExchange).
    /// REQUIRES: `execution` is bound and not in progress. It and the buffers stay valid until it
    /// completes.
    void start(Execution& execution, std::uint32_t looks = 0) {
        if (execution.startable() && execution.program_.exchange && first() == nullptr) [[likely]] {
            execution.exchange_.looks = looks;
            exchange(execution);
        } else {
            start_any(execution);
        }
    }
    void start(Execution& execution, const Binding& binding) {
        execution.bind(binding);
        start(execution);
    }

    /// Moves messages and issues the steps that became ready. Returns how many things happened: 0
    /// if nothing did.
    unsigned progress();

    /// Is nothing in progress? Any thread may ask; the answer may be out of date.
    bool idle() const { return first_.load(std::memory_order_relaxed) == nullptr; }

    /// The program's own operators are called by the caller of the engine, between these two, so
    /// that it can hold no lock meanwhile:
    ///
    ///     if (Execution* execution = engine.take_operator()) {
    ///         execution->call_operator(); // Without the lock.
    ///         engine.operator_called(*execution, failed);
    ///     }
    ///
    /// Returns a collective whose operator is due and that is not kept for a thread; null if there
    /// is none. No other caller gets the same one.
    Execution* take_operator();
    /// Takes the operator of this collective, kept or not. Returns whether it was due.
    bool take_operator(Execution& execution) {
        if (execution.state_ != ExecutionState::operator_due) [[likely]] {
            return false;
        }
        execution.state_ = ExecutionState::in_operator;
        return true;
    }
    /// Tells the engine that the operator was called. progress() then goes on with the collective,
    /// even if the operator has `failed`, so that no peer waits for it; then it ends as spoilt.
    void operator_called(Execution& execution, bool failed = false);

    /// Returns the next collective that has ended and whose end is to be told
    /// (Execution::tell_end), in the order in which they ended; null if there is none.
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
    bool fail_all();
    unsigned advance_all();
    void remove_finished(Execution& execution, Execution* previous);
    void append_ended(Execution& execution);
    void finish_turn(const Execution& execution) const;
    Execution* first() const { return first_.load(std::memory_order_relaxed); }
    void set_first(Execution* execution) { first_.store(execution, std::memory_order_relaxed); }

    std::vector<transport::Transport*> transports_;
    std::atomic<Execution*> first_ = nullptr; // In progress, in order of sequence; see idle().
    Execution* last_ = nullptr;
    Execution* first_ended_ = nullptr; // For take_ended().
    Execution* last_ended_ = nullptr;
    const Execution* exposed_ = nullptr; // The one that uses the memory which peers read.
    std::uint32_t next_sequence_ = 0;
    std::uint64_t next_turn_ = 0; // The next turn of the flag slots.
};

/// The short path, for a program that shares something first and then only reads what its peers
/// have shared, and that starts while nothing else is in progress. Most short collectives on one
/// host are such programs; one that has to wait goes on like any other program.
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
