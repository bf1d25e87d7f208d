// How a sender writes what another core has read last and reads next: by ordinary stores, which
// leave it in a cache, or past the caches. Which is faster depends on where the two cores are: with
// a last-level cache between them ordinary stores are, without one each line is fetched from the
// other core's first (AMD Zen 4: 45 GB/s and 20 inside a group of cores, 2.1 and 25 across). A
// virtual machine does not tell, and moves. So it is measured, now and then, on the way.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shm/copy.hpp"
#include "ucg_coll/base/copy.hpp"

namespace ucg::shm {

/// Decides by the times that copies took; apart from the clock, so that it can be tested.
class CopyPace {
  public:
    enum class Way : std::uint8_t { ordinary, streaming };

    /// The way of the next copy.
    Way next() const {
        if (copies_ + 1 < period_) {
            return way_;
        }
        return copies_ + 1 == period_ ? way_ : other();
    }
    /// Is the next copy's time wanted?
    bool timed() const { return copies_ + 1 >= period_; }

    void passed() { ++copies_; }
    /// The same of a copy that was timed.
    void passed(double per_byte_ns) {
        if (++copies_ == period_) {
            usual_ns_ = per_byte_ns;
            return;
        }
        compare(per_byte_ns);
        copies_ = 0;
    }

    Way way() const { return way_; }

  private:
    /// Before that a ring's buffers have new pages, and are few, so that the receiver's own cache
    /// still has each when it is written again: there ordinary stores look worse than they are.
    static constexpr std::uint32_t kFirstPeriod = 2048;
    static constexpr std::uint32_t kPeriod = 64;
    static constexpr std::uint32_t kPeriodMax = 2048;
    /// What the sender gains is not all: the receiver reads from memory then, by which it may take
    /// three times as long (AMD Zen 5 inside a group of cores: 14 GB/s in all, where the sender
    /// alone makes 30-50 and ordinary stores 60 in all). Where streaming is right its gain is
    /// tenfold.
    static constexpr double kBegins = 3;
    static constexpr double kEnds = 2.5;

    Way other() const { return way_ == Way::ordinary ? Way::streaming : Way::ordinary; }

    /// Two comparisons in a row must speak for a change; while they do not, they become rarer.
    void compare(double other_ns) {
        const bool change =
            way_ == Way::ordinary ? usual_ns_ > kBegins * other_ns : other_ns < kEnds * usual_ns_;
        if (change && doubted_) {
            way_ = other();
        }
        doubted_ = change && !doubted_;
        period_ = change ? kPeriod : std::min(std::max(2 * period_, kPeriod), kPeriodMax);
    }

    double usual_ns_ = 0;
    std::uint32_t copies_ = 0;
    std::uint32_t period_ = kFirstPeriod;
    Way way_ = Way::ordinary;
    bool doubted_ = false;
};

/// Copies that way, and tells the pace what it took.
inline void copy_at_pace(CopyPace& pace, std::byte* target, const std::byte* source,
                         std::size_t bytes) {
    using Clock = std::chrono::steady_clock;
    const bool timed = pace.timed();
    const Clock::time_point start = timed ? Clock::now() : Clock::time_point();
    if (pace.next() == CopyPace::Way::ordinary) {
        copy_bytes(target, source, bytes);
    } else {
        copy_streaming(target, source, bytes);
    }
    if (timed) {
        const std::chrono::duration<double, std::nano> taken = Clock::now() - start;
        pace.passed(taken.count() / static_cast<double>(bytes));
    } else {
        pace.passed();
    }
}

} // namespace ucg::shm
