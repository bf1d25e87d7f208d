// Whether the core of a peer shares a cache with the own one. Virtual machines do not tell, and
// move their cores: some do many times a second. So a sender times reads of a line that the
// receiver has written since the last read: the line comes from the other core's cache.
#pragma once

#include <chrono>
#include <cstdint>

namespace ucg::shm {

/// Decides by the times of such reads. It reads no clock, so that it can be tested. A read that
/// takes long may have been interrupted, or the line may have gone to memory meanwhile; and cores
/// move. So several in a row must say the same.
class CoreDistance {
  public:
    CoreDistance() = default;
    /// `near_ns`: between cores that share a cache a read takes less.
    explicit CoreDistance(std::uint32_t near_ns) : near_ns_(near_ns) {}

    /// Notes how long a read took.
    void read_in(std::int64_t ns) {
        if (ns >= kInterrupted * near_ns_) {
            return;
        }
        const bool far = ns >= near_ns_;
        against_ = far == far_ ? 0 : against_ + 1;
        if (against_ == kInRow) {
            far_ = far;
            against_ = 0;
        }
    }

    /// Returns whether the cores share no cache, as far as is known; false at first.
    bool far() const { return far_; }

  private:
    static constexpr std::int64_t kInterrupted = 8; ///< Times near_ns_: such reads do not count.
    static constexpr unsigned kInRow = 3;           ///< Reads that must say the same.

    std::int64_t near_ns_ = 0;
    unsigned against_ = 0; ///< Reads in a row that have contradicted far_.
    bool far_ = false;
};

/// Returns the nanoseconds that `read()` takes, by a clock that waits for it.
template <typename Read>
std::int64_t time_of(Read read) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    read();
    return std::chrono::nanoseconds(Clock::now() - start).count();
}

} // namespace ucg::shm
