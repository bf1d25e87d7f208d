// A mutex for what several threads may share, if the program says so; else it costs a test.
#pragma once

#include <mutex>

namespace ucg {

/// For std::lock_guard and std::unique_lock. Not used, it is free at any time, for its own thread
/// too.
class OptionalMutex {
  public:
    explicit OptionalMutex(bool used) : used_(used) {}
    OptionalMutex(const OptionalMutex&) = delete;
    OptionalMutex& operator=(const OptionalMutex&) = delete;

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
    std::mutex mutex_;
};

} // namespace ucg
