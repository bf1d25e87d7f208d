#include "ucg_coll/capi/completions.hpp"

#include <mutex>

#include "ucg_coll/capi/group.hpp"

namespace ucg::capi {

ucg_status_t tell(Completion& ended) {
    return ended.coll->hand_back(ended.status);
}

void Completions::add(CompletionQueue& ends) {
    const std::lock_guard lock(mutex_);
    while (Completion* const ended = ends.take()) {
        const bool polled = ended->callback == nullptr;
        (polled ? polled_ : called_).add(*ended);
        (polled ? some_polled_ : some_called_).store(true, std::memory_order_relaxed);
    }
}

Completion* Completions::take_polled() {
    const std::lock_guard lock(mutex_);
    Completion* const ended = polled_.take();
    some_polled_.store(!polled_.empty(), std::memory_order_relaxed);
    return ended;
}

unsigned Completions::call_due_back() {
    unsigned called = 0;
    for (std::unique_lock lock(mutex_);; lock.lock()) {
        Completion* const ended = called_.take();
        some_called_.store(!called_.empty(), std::memory_order_relaxed);
        if (ended == nullptr) {
            return called;
        }
        const ucg_coll_cb_t callback = ended->callback;
        void* const argument = ended->user_data;
        const ucg_coll_h coll = ended->coll;
        lock.unlock();
        callback(argument, coll, tell(*ended));
        ++called;
    }
}

} // namespace ucg::capi
