// When a wait has been in vain for so long that it is worth a system call.
#pragma once

#include <chrono>

namespace ucg::transport {

/// Reads the clock only when it is asked, which who waits does after many looks.
class VainWait {
  public:
    using Clock = std::chrono::steady_clock;
    /// As long as no message or share takes that comes at all, even where processors are shared.
    static constexpr Clock::duration kPatience = std::chrono::seconds(1);

    /// What was awaited has come, or nothing is.
    void end() { since_ = {}; }

    /// After looks in vain: once for each time that this takes.
    bool is_long() {
        const Clock::time_point now = Clock::now();
        if (since_ == Clock::time_point()) {
            since_ = now;
        }
        if (now - since_ < kPatience) {
            return false;
        }
        since_ = now;
        return true;
    }

  private:
    Clock::time_point since_; ///< The clock's epoch: nothing was in vain yet.
};

} // namespace ucg::transport
