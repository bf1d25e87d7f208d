// When calls run the host's progress function.
#pragma once

#include <atomic>

#include "ucg/ucg.h"

namespace ucg::capi {

/// The progress function that the program has given, if it has. Any thread may use the object; the
/// caller holds no lock, since a function of the program runs.
class HostProgress {
  public:
    using Function = unsigned (*)(void* arg, unsigned flags);
    /// `function`: null if there is none.
    HostProgress(Function function, void* argument) : function_(function), argument_(argument) {}

    /// Lets the host make progress: on its messages, and on everything if there are none, else in
    /// each eighth call, since messages may keep coming. Returns how many things happened there.
    unsigned progress() {
        const unsigned found = messages();
        return found > 0 && !drives_everything() ? found : found + drive(0);
    }
    /// Lets the host make progress on its messages alone. Returns how many things happened.
    unsigned messages() { return drive(UCG_PROGRESS_FLAG_MESSAGES); }
    /// Lets the host make progress at the end of a call: on its messages and on everything by
    /// turns, in each call while there are messages, else in each eighth. Calls `others` first in
    /// each eighth.
    template <typename Others>
    void progress_at_end(Others&& others) {
        const unsigned rests = rests_.load(std::memory_order_relaxed);
        unsigned next = rests - 1;
        if (rests % kRest == 0) {
            others();
            if (rests == 0) {
                next = messages() > 0 ? kBusy : 2 * kRest - 1;
            } else {
                const bool busy = drive(0) > 0 || rests == kBusy;
                next = busy ? 0 : next;
            }
        }
        rests_.store(next, std::memory_order_relaxed);
    }

  private:
    static constexpr unsigned kRest = 8;
    static constexpr unsigned kBusy = 2 * kRest; ///< rests_ after there were messages.

    unsigned drive(unsigned flags) {
        return function_ == nullptr ? 0 : function_(argument_, flags);
    }
    /// Is it time to drive everything of the host, although it has messages?
    bool drives_everything() {
        const unsigned calls = streams_.load(std::memory_order_relaxed) + 1;
        streams_.store(calls, std::memory_order_relaxed); // A lost count does no harm.
        return calls % kRest == 0;
    }

    const Function function_;
    void* const argument_;
    /// Calls that end before the host is driven for its messages; halfway it is driven as a whole.
    std::atomic<unsigned> rests_ = 0;
    std::atomic<unsigned> streams_ = 0; ///< Calls of progress() that found messages.
};

} // namespace ucg::capi
