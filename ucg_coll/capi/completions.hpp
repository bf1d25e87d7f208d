// The ends of collectives of which their callers want to be told.
#pragma once

#include <atomic>

#include "ucg/ucg.h"
#include "ucg_coll/base/optional_mutex.hpp"

namespace ucg::capi {

/// The end of a collective whose caller wants to be told of it, until it was told.
struct Completion {
    void* user_data = nullptr;
    ucg_coll_cb_t callback = nullptr; ///< Null: whoever polls the context is told.
    ucg_coll_h coll = nullptr;        ///< An argument of the callback.
    ucg_status_t status = UCG_OK;
    Completion* next = nullptr;
};

/// Ends of collectives, in the order in which they came.
class CompletionQueue {
  public:
    void add(Completion& completion) {
        completion.next = nullptr;
        (first_ == nullptr ? first_ : last_->next) = &completion;
        last_ = &completion;
    }
    bool empty() const { return first_ == nullptr; }
    /// Removes and returns the oldest end; null if there is none. Its collective stays busy until
    /// tell() is called.
    Completion* take() {
        Completion* const oldest = first_;
        if (oldest != nullptr) {
            first_ = oldest->next;
        }
        return oldest;
    }

  private:
    Completion* first_ = nullptr;
    Completion* last_ = nullptr;
};

/// Returns what the caller is told of an end that was taken from its queue. Afterwards any thread
/// may start the collective again or free it, so that `ended` is not used any more. The caller
/// holds no lock.
ucg_status_t tell(Completion& ended);

/// The ends of all groups of a process that nobody was told of yet. Any thread may use it. Its lock
/// is held for a few instructions, and may be taken under that of the list of groups: who polls
/// does not wait for a thread that goes through the groups.
class Completions {
  public:
    explicit Completions(bool threaded) : mutex_(threaded) {}

    /// Adds ends of posted collectives, and empties `ends`.
    void add(CompletionQueue& ends);
    /// Returns the oldest end that no callback is told of, which is for tell(); null if there is
    /// none. The caller holds no lock.
    Completion* take() {
        return some_polled_.load(std::memory_order_relaxed) ? take_polled() : nullptr;
    }
    /// Calls the callbacks of the ends that have come. Returns how many. The caller holds no lock.
    unsigned call_back() {
        return some_called_.load(std::memory_order_relaxed) ? call_due_back() : 0;
    }

  private:
    Completion* take_polled();
    unsigned call_due_back();

    std::atomic<bool> some_polled_ = false; ///< polled_ has some. Read without the lock, as is ...
    std::atomic<bool> some_called_ = false; ///< ... this of called_.
    OptionalMutex mutex_;                   ///< Guards what follows.
    CompletionQueue polled_;
    CompletionQueue called_; ///< Ends that have a callback.
};

} // namespace ucg::capi
