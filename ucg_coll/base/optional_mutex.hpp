// Mutexes for what several threads may share, if the program says so; else they cost a test.
#pragma once

#include <mutex>

namespace ucg {

/// For std::lock_guard and std::unique_lock. Not used, it is free at any time, for its own thread
/// too.
template <typename Mutex>
class OptionallyUsed {
  public:
    explicit OptionallyUsed(bool used) : used_(used) {}
    OptionallyUsed(const OptionallyUsed&) = delete;
    OptionallyUsed& operator=(const OptionallyUsed&) = delete;

    void lock() {
        if (used_) {
            mutex_.lock();
        }
    }
    bool try_lock() { return !used_ || mutex_.try_lock(); }
    void unlock() {
        if (used_) {
            mutex_.unlock();
        }
    }

  private:
    const bool used_;
    Mutex mutex_;
};

using OptionalMutex = OptionallyUsed<std::mutex>;
using OptionalRecursiveMutex = OptionallyUsed<std::recursive_mutex>;

} // namespace ucg
