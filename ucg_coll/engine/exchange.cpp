// What the short path leaves to be waited for: engine.hpp has the rest of it.
#include "ucg_coll/engine/engine.hpp"

namespace ucg::engine {

/// Some peers have not shared anything yet, or there was no room to share: advance() goes on, and
/// what it needs none of those for is done at once.
void Execution::await_exchange(std::size_t seen) {
    const bool shared = seen != transport::kNotShared;
    state_ = program_.flag_slot->broken() ? ExecutionState::failed : ExecutionState::running;
    at_.step = shared ? 1 : 0;
    spoilt_ = false;
    flag_slots_seen_ = shared ? static_cast<std::uint32_t>(seen) : 0;
    if (shared && state_ == ExecutionState::running) {
        advance();
    }
}

/// All flag slots are there, and the next step needs the program's operator.
void Execution::await_operator(const graph::Step* at) {
    state_ = ExecutionState::operator_due;
    spoilt_ = false;
    at_.step = static_cast<std::uint32_t>(at - program_.lowered.steps.data());
    flag_slots_seen_ = static_cast<std::uint32_t>(exchange_.reads.size());
}

/// An exchange that has not come to its end at once.
void Engine::await(Execution& execution) {
    if (execution.in_progress()) {
        execution.next_ = nullptr;
        append(execution);
    } else if (execution.state_ == ExecutionState::failed) {
        abandon();
    }
}

} // namespace ucg::engine
