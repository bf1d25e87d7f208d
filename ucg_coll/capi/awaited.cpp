#include "ucg_coll/capi/awaited.hpp"

#include <utility>

namespace ucg::capi {
namespace {

thread_local Awaited* innermost = nullptr;

} // namespace

Awaited::Awaited(Group& group, engine::Execution& execution)
    : group_(group), execution_(execution), outer_(std::exchange(innermost, this)) {}

Awaited::~Awaited() {
    innermost = outer_;
}

void Awaited::list_groups() {
    for (Awaited* awaited = innermost; awaited != nullptr; awaited = awaited->outer_) {
        awaited->list_group();
    }
}

void Awaited::list_group() {
    if (std::exchange(listed_, true)) {
        return;
    }
    Group::Lock lock = group_.lock();
    const bool unlisted = group_.to_be_listed();
    lock.unlock();
    if (unlisted) {
        group_.context().groups().list_busy(group_);
    }
}

Progress Awaited::progress(const Awaited* looked_at) {
    Progress made;
    for (Awaited* awaited = innermost; awaited != nullptr; awaited = awaited->outer_) {
        if (awaited == looked_at) {
            continue;
        }
        Group::Lock lock = awaited->group_.lock();
        const unsigned calls = awaited->group_.call_operator(awaited->execution_, lock);
        made.called_operator = made.called_operator || calls > 0;
        made.events += calls + awaited->group_.progress();
    }
    return made;
}

} // namespace ucg::capi
