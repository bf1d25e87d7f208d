// Mutexes for data that several threads may share, if the program says so. In other programs a lock
// costs one test.
#pragma once

#include <mutex>

namespace ucg {

/// A mutex, for std::lock_guard and std::unique_lock, that does nothing unless it is constructed as
/// used: otherwise any thread can lock it at any time, even the thread that has locked it already.
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
