// Executes programs over transports: blocking, nonblocking and restartable collectives of one group
// are one mechanism. It knows the graph and the Transport interface, nothing else.
//
// Threading: one thread at a time per engine; the caller locks. Nothing here blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/engine/execution.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::engine {

/// How many collectives of one group may be outstanding at once. Later starts queue until the
/// oldest completes; this bounds what early arrivals can occupy at a peer.
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
    /// REQUIRES: bound, not in progress. The execution and the buffers stay valid until it
    /// completes.
    void start(Execution& execution);
    void start(Execution& execution, const Binding& binding) {
        execution.bind(binding);
        start(execution);
    }

    /// Moves messages and issues what became ready. Returns how many things happened: 0 = idle.
    unsigned progress();

    bool idle() const { return first_ == nullptr; }

    /// Why an execution failed; ok if none did.
    Status status() const;

  private:
    bool may_begin(const Execution& execution) const;
    void begin(Execution& execution);
    void advance(Execution& execution);
    unsigned advance_all();
    void remove_finished(Execution& execution, Execution* previous);
    void finish_turn(const Execution& execution) const;

    std::vector<transport::Transport*> transports_;
    Execution* first_ = nullptr; // In progress, in order of sequence.
    Execution* last_ = nullptr;
    const Execution* exposed_ = nullptr; // Uses the memory that peers read: one at a time.
    std::uint32_t next_sequence_ = 0;
    std::uint64_t next_turn_ = 0; // Of the boards.
};

} // namespace ucg::engine
