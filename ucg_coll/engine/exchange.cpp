// The parts of the short path of an exchange that are needed only if it has to wait. engine.hpp and
// execution.hpp have the rest.
#include "ucg_coll/engine/engine.hpp"

namespace ucg::engine {

/// Prepares an exchange for advance() when some peers have not shared yet (`seen` is the number of
/// flag slots that have been seen) or there was no room to share (`seen` is kNotShared). Runs the
/// steps that need no further flag slots at once.
void Execution::await_exchange(std::size_t seen) {
    const bool shared = seen != transport::kNotShared;
    state_ = program_.flag_slots->broken() ? ExecutionState::failed : ExecutionState::running;
    at_.step = shared ? 1 : 0;
    spoilt_ = false;
    flag_slots_seen_ = shared ? static_cast<std::uint32_t>(seen) : 0;
    if (shared && state_ == ExecutionState::running) {
        advance();
    }
}

/// Stops an exchange at the step `at`, whose operator is the program's, after all flag slots have
/// been seen.
void Execution::await_operator(const graph::Step* at) {
    state_ = ExecutionState::operator_due;
    spoilt_ = false;
    at_.step = static_cast<std::uint32_t>(at - program_.lowered.steps.data());
    flag_slots_seen_ = static_cast<std::uint32_t>(exchange_.reads.size());
}

/// Handles an exchange that has not ended at once: lists it as in progress, or abandons the group
/// if it has failed.
void Engine::await(Execution& execution) {
    if (execution.in_progress()) {
        execution.next_ = nullptr;
        append(execution);
    } else if (execution.state_ == ExecutionState::failed) {
        abandon();
    }
}

} // namespace ucg::engine
