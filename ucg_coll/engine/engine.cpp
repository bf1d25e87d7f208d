#include "ucg_coll/engine/engine.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace ucg::engine {

/// Is the collective near enough to the oldest one in progress to begin, or to have begun? Those
/// after one that is not are not, either. REQUIRES: some collective is in progress.
inline bool Engine::is_near(const Execution& execution) const {
    return execution.sequence_ - first()->sequence_ < kOutstandingMax;
}

/// Returns whether a collective may begin: it is not too far ahead of the oldest one in progress,
/// and, if peers read its buffers, no other such collective is running. Later collectives may begin
/// while it waits for that one. No collective waits for a later one, on any rank.
inline bool Engine::may_begin(const Execution& execution) const {
    const bool room = first() == nullptr || is_near(execution);
    return room && (execution.program_.memory == nullptr || exposed_ == nullptr);
}

/// Called when a transport got no memory for a part of a collective's work. The collective has
/// failed: nobody knows which of its messages are posted, or whether peers see its share.
void Engine::lose_memory(Execution& execution) {
    lost_ = Code::out_of_memory;
    execution.state_ = ExecutionState::failed;
}

/// Does a part of a collective's work.
template <typename Work>
inline void Engine::attempt(Execution& execution, Work work) {
    try {
        work();
    } catch (const std::bad_alloc&) {
        lose_memory(execution);
    }
}

inline void Engine::begin(Execution& execution) {
    execution.state_ = ExecutionState::running;
    if (execution.program_.memory != nullptr) {
        begin_exposed(execution);
    } else if (execution.helps()) { // No unit is done here: the caller is to go on at once.
        attempt(execution, [&] { execution.begin_helped(); });
        if (execution.state_ == ExecutionState::failed) [[unlikely]] {
            abandon();
        }
    } else {
        advance(execution);
    }
}

void Engine::begin_exposed(Execution& execution) {
    exposed_ = &execution;
    bool exposed = false;
    attempt(execution, [&] { exposed = execution.expose(); });
    if (!exposed) {
        abandon();
        exposed_ = nullptr;
        return;
    }
    advance(execution);
    if (!execution.in_progress()) {
        exposed_ = nullptr;
    }
}

/// Makes progress on a collective and returns how many units of a helped one were done. If it has
/// failed, its caller gets its buffers back, so all transports abandon the group in order not to
/// use them any more.
inline unsigned Engine::advance(Execution& execution) {
    unsigned units = 0;
    attempt(execution, [&] {
        if (execution.helps()) [[unlikely]] {
            units = execution.advance_helped() ? 1 : 0;
        } else {
            execution.advance();
        }
    });
    if (execution.state_ == ExecutionState::failed) [[unlikely]] {
        abandon();
    }
    return units;
}

void Engine::start_any(Execution& execution) {
    if (execution.state_ == ExecutionState::failed) [[unlikely]] {
        return;
    }
    UCG_ASSERT(!execution.in_progress());
    if (lost_ != Code::ok) [[unlikely]] {
        execution.state_ = ExecutionState::failed;
        return;
    }
    execution.sequence_ = next_sequence_++;
    execution.next_ = nullptr;
    execution.at_ = {};
    execution.spoilt_ = false;
    if (execution.program_.flag_slots != nullptr) {
        execution.exchange_.sequence.sequence = next_flag_slot_sequence_++;
        execution.exchange_.sequence.collective = execution.sequence_;
        execution.flag_slots_seen_ = 0;
    }
    if (may_begin(execution)) {
        begin(execution);
    } else {
        execution.state_ = ExecutionState::queued;
    }
    if (!execution.in_progress()) {
        finish_flag_slot_sequence(execution);
        return;
    }
    append(execution);
}

/// Appends the execution to the list of those in progress.
void Engine::append(Execution& execution) {
    if (last_ != nullptr) {
        last_->next_ = &execution;
    } else {
        set_first(&execution);
    }
    last_ = &execution;
}

void Engine::abandon() {
    for (transport::Transport* transport : transports_) {
        transport->abandon();
    }
}

unsigned Engine::progress() {
    unsigned events = 0;
    try {
        for (transport::Transport* transport : transports_) {
            events += transport->progress();
        }
    } catch (const std::bad_alloc&) {
        static_cast<void>(lose(Code::out_of_memory));
    }
    if (idle()) {
        return events;
    }
    const unsigned found = events + advance_all();
    if (found == 0 && fail_all()) [[unlikely]] {
        return advance_all();
    }
    return found;
}

bool Engine::transport_failed() const {
    return std::any_of(transports_.begin(), transports_.end(),
                       [](transport::Transport* transport) { return transport->has_failed(); });
}

/// If a transport has failed, makes all transports abandon the group: collectives may wait for
/// messages of a transport that has not failed, from ranks that cannot go on themselves. Returns
/// false if none has failed.
bool Engine::fail_all() {
    if (!transport_failed()) {
        return false;
    }
    abandon();
    return true;
}

bool Engine::lose(Code reason) {
    UCG_ASSERT(reason != Code::ok);
    const bool first = lost_ == Code::ok && !transport_failed();
    lost_ = first ? reason : lost_;
    abandon();
    return first;
}

/// As many may be queued as the program likes: only those that may have begun are looked at.
unsigned Engine::advance_all() {
    unsigned completed = 0;
    Execution* previous = nullptr;
    for (Execution* execution = first(); execution != nullptr && is_near(*execution);) {
        Execution* next = execution->next_;
        if (execution->state_ == ExecutionState::running) {
            completed += advance(*execution);
        } else if (execution->state_ == ExecutionState::queued && may_begin(*execution)) {
            begin(*execution);
        }
        if (execution->in_progress()) {
            previous = execution;
        } else {
            remove_finished(*execution, previous);
            ++completed;
        }
        execution = next;
    }
    return completed;
}

void Engine::remove_finished(Execution& execution, Execution* previous) {
    if (previous != nullptr) {
        previous->next_ = execution.next_;
    } else {
        set_first(execution.next_);
    }
    if (last_ == &execution) {
        last_ = previous;
    }
    execution.next_ = nullptr;
    if (exposed_ == &execution) {
        exposed_ = nullptr;
    }
    finish_flag_slot_sequence(execution);
    if (execution.listener_ != nullptr) {
        append_ended(execution);
    }
}

void Engine::append_ended(Execution& execution) {
    if (first_ended_ == nullptr) {
        first_ended_ = &execution;
    } else {
        last_ended_->next_ = &execution;
    }
    last_ended_ = &execution;
}

Execution* Engine::take_ended() {
    Execution* const ended = first_ended_;
    if (ended != nullptr) {
        first_ended_ = std::exchange(ended->next_, nullptr);
    }
    return ended;
}

Execution* Engine::take_operator() {
    for (Execution* execution = first(); execution != nullptr && is_near(*execution);
         execution = execution->next_) {
        if (!execution->kept_ && take_operator(*execution)) {
            return execution;
        }
    }
    return nullptr;
}

void Engine::operator_called(Execution& execution, bool failed) {
    UCG_ASSERT(execution.state_ == ExecutionState::in_operator);
    execution.spoilt_ = execution.spoilt_ || failed;
    execution.state_ = ExecutionState::running;
    ++execution.at_.step;
}

/// Tells the flag slots that this rank reads nothing any more of collectives before the first one
/// that is still in progress. A failed collective ends as well: nothing moves after it.
void Engine::finish_flag_slot_sequence(const Execution& execution) const {
    if (execution.program_.flag_slots == nullptr) {
        return;
    }
    std::uint64_t sequence = next_flag_slot_sequence_;
    for (const Execution* other = first(); other != nullptr; other = other->next_) {
        if (other->program_.flag_slots != nullptr && other->in_progress()) {
            sequence = other->exchange_.sequence.sequence;
            break;
        }
    }
    execution.program_.flag_slots->finish(sequence);
}

namespace {

Status status_of(Code lost) {
    return Status(lost, lost == Code::out_of_memory ? "there was no memory for a collective"
                                                    : "this rank has given the group up");
}

} // namespace

Status Engine::status() const {
    if (lost_ != Code::ok) {
        return status_of(lost_);
    }
    for (const transport::Transport* transport : transports_) {
        if (Status status = transport->status(); !status.ok()) {
            return status;
        }
    }
    return Status();
}

} // namespace ucg::engine
