// How the threads of a process sleep, and who wakes them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "shm/shm.hpp"
#include "ucg_coll/base/optional_mutex.hpp"

namespace ucg::capi {

/// Any thread may use it. Its lock is taken after all others, and none under it.
class ProcessSleep {
  public:
    explicit ProcessSleep(bool threaded) : threaded_(threaded), mutex_(threaded) {}

    /// Returns that by which a thread of this process sleeps. It is replaced when the node heap is
    /// made, and when it is dropped: a thread that sleeps holds on to the one that it began with.
    std::shared_ptr<shm::Sleeper> sleeper() {
        const std::lock_guard lock(mutex_);
        return sleeper_;
    }
    /// Has threads sleep by that one, which peers ring. The pointer also owns the memory in which
    /// its bell lies. Rings the old bell: a thread that sleeps by it is to announce itself at the
    /// new one.
    void sleep_by(std::shared_ptr<shm::Sleeper> sleeper);
    /// Has threads sleep by one that only threads of this process ring, as at first.
    void sleep_alone();
    /// Wakes whoever sleeps.
    void ring();

    /// Returns how many threads sleep, or are about to. May be called under any lock.
    std::uint64_t count() const { return count_.load(); }
    /// Counts threads that sleep from now on, or do so no more. Returns how many there are now. The
    /// caller holds the lock of the list of groups, whose peers have to learn of it.
    std::uint64_t add(int threads) {
        count_ += static_cast<std::uint64_t>(threads);
        return count_;
    }
    /// Wakes this process's other threads if something has moved: it may be what one of them sleeps
    /// for, and no peer rings for it again (shm/PROTOCOL.md, "Threads"). May be called under any
    /// lock. Returns `events`.
    unsigned tell_threads(unsigned events) {
        // The compiler must leave the order of what was moved before and the load after.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (events > 0 && count_.load(std::memory_order_relaxed) > 0 && threaded_) {
            ring();
        }
        return events;
    }

  private:
    struct PrivateSleeper {
        shm::Doorbell bell = {};
        shm::Sleeper sleeper{bell};
    };

    const bool threaded_;
    std::atomic<std::uint64_t> count_ = 0;
    OptionalMutex mutex_; ///< Guards what follows.
    const std::shared_ptr<PrivateSleeper> private_ = std::make_shared<PrivateSleeper>();
    std::shared_ptr<shm::Sleeper> sleeper_{private_, &private_->sleeper};
};

} // namespace ucg::capi
