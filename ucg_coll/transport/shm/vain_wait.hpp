// When a wait has been in vain for so long that it is worth a system call.
#pragma once

#include <chrono>

namespace ucg::transport {

/// Tells whether a wait is long. Reads the clock only when is_long() is called, which a caller that
/// waits does once in many looks.
class VainWait {
  public:
    using Clock = std::chrono::steady_clock;
    /// Longer than a message or share takes that comes at all, even where processors are shared.
    static constexpr Clock::duration kPatience = std::chrono::seconds(1);

    /// Says that what was awaited has come, or that nothing is awaited.
    void end() { since_ = {}; }

    /// To be called after looks in vain. Returns true once for each kPatience that the wait lasts.
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
    Clock::time_point since_; ///< Start of the wait; the clock's epoch: nothing was in vain yet.
};

} // namespace ucg::transport
