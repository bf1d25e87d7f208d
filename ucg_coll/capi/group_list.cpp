#include "ucg_coll/capi/group_list.hpp"

#include <algorithm>

#include "ucg_coll/capi/group.hpp"

namespace ucg::capi {

GroupList::~GroupList() {
    UCG_ASSERT(count_ == 0 && busy_count() == 0);
}

void GroupList::expect() {
    const std::lock_guard lock(mutex_);
    const std::lock_guard queue(queue_mutex_);
    for (std::vector<Group*>* list : {&busy_, &newly_busy_}) {
        if (list->capacity() <= count_) {
            list->reserve(2 * (count_ + 1));
        }
    }
}

void GroupList::add(const Group& group) {
    const std::lock_guard lock(mutex_);
    UCG_ASSERT(count_ < busy_.capacity());
    ++count_;
    staging_count_ += group.has_staging() ? 1 : 0;
}

void GroupList::remove(Group& group) {
    const std::lock_guard lock(mutex_);
    take_over_busy();
    group.sleeping(0);
    busy_count_ -= std::erase(busy_, &group);
    --count_;
    staging_count_ -= group.has_staging() ? 1 : 0;
}

/// Threads that sleep announced themselves before the group was busy: the bell wakes them, so that
/// they tell its peers and do so again. A thread that counts itself among them later finds the
/// group.
void GroupList::list_busy(Group& group) {
    {
        const std::lock_guard lock(queue_mutex_);
        newly_busy_.push_back(&group);
        ++busy_count_;
    }
    if (sleep_.count() > 0) {
        sleep_.ring();
    }
}

void GroupList::drive_network(transport::ProcessNetwork* network) {
    const std::lock_guard lock(mutex_);
    network_ = network;
}

std::size_t GroupList::count() {
    const std::lock_guard lock(mutex_);
    return count_;
}

std::size_t GroupList::staging_count() {
    const std::lock_guard lock(mutex_);
    return staging_count_;
}

/// Moves the groups that have become busy to the list. The caller holds the list's lock.
void GroupList::take_over_busy() {
    const std::lock_guard lock(queue_mutex_);
    for (Group* group : newly_busy_) {
        busy_.push_back(group);
        if (const std::uint64_t threads = sleep_.count(); threads > 0) {
            group->sleeping(threads);
        }
    }
    newly_busy_.clear();
}

void GroupList::add_sleeping(int threads) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t sleeping = sleep_.add(threads);
    take_over_busy();
    for (Group* group : busy_) {
        group->sleeping(sleeping);
    }
}

Progress GroupList::progress(Busy busy) {
    DueOperator due;
    const unsigned events = sleep_.tell_threads(drive(busy, due));
    return due.group == nullptr ? Progress{events, false} : Progress{events + call(due), true};
}

/// Is UCX to be left out, unless a group in progress drives it? Collectives in progress on one host
/// may end within a microsecond, and a look at sockets is a system call that takes as long.
bool GroupList::rests_from_network(Busy busy) {
    return busy == Busy::skip && !busy_.empty() && ++network_rests_ % kNetworkRest != 0;
}

unsigned GroupList::drive(Busy busy, DueOperator& due) {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (busy == Busy::await) {
        lock.lock();
    } else if (!lock.try_lock()) {
        return 0;
    }
    if (busy_count() != busy_.size()) {
        take_over_busy();
    }
    unsigned events = 0;
    bool at_network = network_ == nullptr || rests_from_network(busy);
    CompletionQueue ends;
    for (std::size_t i = 0; i < busy_.size();) {
        const Looked looked = busy_[i]->progress_by_any(busy, due, ends);
        events += looked.events;
        at_network = at_network || looked.at_network;
        if (!ends.empty()) {
            completions_.add(ends);
        }
        if (looked.over) {
            busy_[i]->sleeping(0);
            busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(i)); // Turns: below.
            --busy_count_;
        } else {
            ++i;
        }
    }
    if (due.group != nullptr) { // Next time the operators of the others come first.
        const auto served = std::find(busy_.begin(), busy_.end(), due.group);
        UCG_ASSERT(served != busy_.end());
        std::rotate(served, served + 1, busy_.end());
    }
    return at_network ? events : events + network_->progress();
}

/// Calls an operator without the group's lock. The group stays meanwhile: one of its collectives is
/// in progress.
unsigned GroupList::call(const DueOperator& due) {
    due.execution->call_operator();
    const Group::Lock lock = due.group->lock();
    due.group->operator_called(*due.execution);
    return sleep_.tell_threads(1 + due.group->engine().progress());
}

bool GroupList::stuck() {
    const std::lock_guard lock(mutex_);
    take_over_busy(); // Before the caller's announcement.
    return std::any_of(busy_.begin(), busy_.end(),
                       [](Group* group) { return !group->engine().idle() && group->stuck(); });
}

} // namespace ucg::capi
