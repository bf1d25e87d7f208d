// Executes programs over transports. Blocking, nonblocking and restartable collectives of one group
// are one mechanism. The engine knows the graph and the Transport interface, and nothing else.
//
// Threading: one thread at a time may use an engine, for which the caller has a lock. Nothing here
// blocks or calls the program back.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "ucg_coll/engine/execution.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::engine {

/// The most collectives of one group that may be in progress at once, and the greatest distance in
/// sequence numbers from the oldest of them to the newest. Further starts queue until the oldest
/// completes. This bounds the memory that messages which arrive early can occupy at a peer. A bound
/// on the number alone would not suffice, since any number of collectives could pass one long one.
inline constexpr std::uint32_t kOutstandingMax = 64;

class Engine {
  public:
    /// Makes an engine over the distinct transports of the group, which must outlive the engine.
    explicit Engine(std::vector<transport::Transport*> transports)
        : transports_(std::move(transports)) {}
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Starts `execution` as the group's next collective and issues what can be issued. Every rank
    /// starts the same collectives in the same order. Does not allocate. Does nothing for an
    /// execution that has failed: a transport may still hold its messages.
    /// `looks` says how often an exchange looks again for what peers are about to share before the
    /// call returns (transport::FlagSlotExchange).
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

    /// Makes progress on the transports and issues the steps that have become ready. Returns how
    /// many things happened: events of the transports, units done for others, collectives ended.
    unsigned progress();

    /// Returns whether nothing is in progress. Thread-safe; the answer may be out of date.
    bool idle() const { return first_.load(std::memory_order_relaxed) == nullptr; }

    /// Returns the collective that has been in progress for longest; null if nothing is.
    Execution* oldest() const { return first(); }

    /// Returns a collective whose operator is due and that is not kept for one thread
    /// (Execution::keep_operator); null if there is none. No other caller gets the same one.
    ///
    /// The engine does not call operators of the program. Its caller does that, between
    /// take_operator() and operator_called(), where it need not hold the engine's lock:
    ///
    ///     if (Execution* execution = engine.take_operator()) {
    ///         execution->call_operator(); // Without the lock.
    ///         engine.operator_called(*execution, failed);
    ///     }
    Execution* take_operator();
    /// Takes the operator of this collective, whether or not it is kept for one thread. Returns
    /// false, and does nothing, if no operator is due.
    bool take_operator(Execution& execution) {
        if (execution.state_ != ExecutionState::operator_due) [[likely]] {
            return false;
        }
        execution.state_ = ExecutionState::in_operator;
        return true;
    }
    /// Tells the engine that the operator was called. progress() then goes on with the collective,
    /// even if the operator has `failed`, since peers wait for this rank's messages; a collective
    /// whose operator has failed ends in the state `spoilt`.
    void operator_called(Execution& execution, bool failed = false);

    /// Returns the next collective, in the order in which they ended, that has ended and that has a
    /// listener (Execution::tell_end); null if there is none.
    Execution* take_ended();

    /// Gives the group up, for a reason that no transport has found. Whatever is in progress fails
    /// at the next call of progress(), and whatever is started later fails, too. Peers that a
    /// transport tells of its failures are told. Returns false if the group was lost before. Does
    /// not allocate. REQUIRES: `reason` is not ok.
    bool lose(Code reason);

    /// Returns why an execution failed: the first reason to lose the group, or the status of the
    /// first transport that has failed; else ok.
    Status status() const;

  private:
    bool is_near(const Execution& execution) const;
    bool may_begin(const Execution& execution) const;
    void begin(Execution& execution);
    void begin_exposed(Execution& execution);
    void start_any(Execution& execution);
    [[gnu::cold]] void lose_memory(Execution& execution);
    template <typename Work>
    void attempt(Execution& execution, Work work);
    [[gnu::always_inline]] void exchange(Execution& execution);
    [[gnu::noinline]] void await(Execution& execution);
    void append(Execution& execution);
    unsigned advance(Execution& execution);
    void abandon();
    bool transport_failed() const;
    bool fail_all();
    unsigned advance_all();
    void remove_finished(Execution& execution, Execution* previous);
    void append_ended(Execution& execution);
    void finish_flag_slot_sequence(const Execution& execution) const;
    Execution* first() const { return first_.load(std::memory_order_relaxed); }
    void set_first(Execution* execution) { first_.store(execution, std::memory_order_relaxed); }

    std::vector<transport::Transport*> transports_;
    std::atomic<Execution*> first_ = nullptr; // List of those in progress, by sequence; see idle().
    Execution* last_ = nullptr;
    Execution* first_ended_ = nullptr; // List of those that take_ended() will return.
    Execution* last_ended_ = nullptr;
    const Execution* exposed_ = nullptr; // The running one whose buffers peers read, if any.
    Code lost_ = Code::ok; // Why the group is lost, if it is not because a transport has failed.
    std::uint32_t next_sequence_ = 0;
    std::uint64_t next_flag_slot_sequence_ = 0; // Counts uses of the flag slots.
};

/// Starts a flag-slot exchange, a program that first shares something and then only reads what its
/// peers have shared, on a short path. Most short collectives on one host are of this kind; one
/// that has to wait goes on like any other program. REQUIRES: nothing else is in progress.
inline void Engine::exchange(Execution& execution) {
    execution.sequence_ = next_sequence_;
    execution.exchange_.sequence.collective = next_sequence_++;
    execution.exchange_.sequence.sequence = next_flag_slot_sequence_++;
    try { // This costs no instruction unless something is thrown.
        execution.exchange();
    } catch (const std::bad_alloc&) {
        lose_memory(execution);
    }
    if (execution.state_ != ExecutionState::done) [[unlikely]] {
        await(execution);
    }
}

} // namespace ucg::engine
