// How a sender writes what another core has read last and reads next: by ordinary stores, which
// leave it in a cache, or past the caches. Which is faster depends on where the two cores are: with
// a last-level cache between them ordinary stores are, without one each line is fetched from the
// other core's first (AMD Zen 4: ordinary stores 45 GB/s and streaming ones 20 inside a group of
// cores, 2.1 and 25 across). A virtual machine does not tell where its cores are, and moves them.
// So the sender measures it, now and then, with copies that it makes anyway.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shm/copy.hpp"
#include "ucg_coll/base/copy.hpp"

namespace ucg::shm {

/// Shorter copies are made by ordinary stores: what the sender of 1 KiB gains by streaming, its
/// receiver loses (AMD Zen 3 across groups of cores: 0.33 us, and 0.55 streaming; of 2 KiB 1.2 and
/// 0.7, of 4 KiB 2.1 and 0.6).
inline constexpr std::size_t kPacedBytesMin = 2048;

/// Decides how to copy, by the times that copies took. It reads no clock, so that it can be tested.
class CopyPace {
  public:
    enum class Way : std::uint8_t { ordinary, streaming };

    CopyPace() = default;
    /// `first_period`: copies before the first comparison.
    explicit CopyPace(std::uint32_t first_period) : period_(first_period) {}

    /// Returns the way of the next copy.
    Way next() const {
        if (copies_ + 1 < period_) {
            return way_;
        }
        return copies_ + 1 == period_ ? way_ : other();
    }
    /// Returns whether the next copy is to be timed.
    bool timed() const { return copies_ + 1 >= period_; }

    /// Notes a copy that was not timed.
    void passed() { ++copies_; }
    /// Notes a copy that was timed.
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
    /// Copies before the first comparison. Until then a ring's buffers have new pages, and are few,
    /// so that the receiver's own cache still has each when it is written again: there ordinary
    /// stores look worse than they are.
    static constexpr std::uint32_t kFirstPeriod = 2048;
    static constexpr std::uint32_t kPeriod = 64;      ///< Copies before the next one, at least,
    static constexpr std::uint32_t kPeriodMax = 2048; ///< and at most.
    /// How many times as fast streaming copies must be to be begun, and to be kept. What the sender
    /// gains is not all: the receiver reads from memory then, by which it may take
    /// three times as long (AMD Zen 5 inside a group of cores: 14 GB/s in all, where the sender
    /// alone makes 30-50 and ordinary stores 60 in all). Where streaming is right it is ten times
    /// as fast.
    static constexpr double kBegins = 3;
    static constexpr double kEnds = 2.5;

    Way other() const { return way_ == Way::ordinary ? Way::streaming : Way::ordinary; }

    /// Compares a copy of the other way with the usual one. Two comparisons in a row must speak for
    /// a change of the way; while they do not, they become rarer.
    void compare(double other_ns) {
        const bool change =
            way_ == Way::ordinary ? usual_ns_ > kBegins * other_ns : other_ns < kEnds * usual_ns_;
        if (change && doubted_) {
            way_ = other();
        }
        doubted_ = change && !doubted_;
        period_ = change ? kPeriod : std::min(std::max(2 * period_, kPeriod), kPeriodMax);
    }

    double usual_ns_ = 0;      ///< For each byte, by the latest copy that was timed of way_.
    std::uint32_t copies_ = 0; ///< Since the last comparison.
    std::uint32_t period_ = kFirstPeriod;
    Way way_ = Way::ordinary;
    bool doubted_ = false; ///< The last comparison spoke for a change.
};

/// Copies by `pace.next()`, and tells the pace how long that took. Not inlined, so that shorter
/// copies beside it take few instructions.
[[gnu::noinline]] inline void copy_at_pace(CopyPace& pace, std::byte* target,
                                           const std::byte* source, std::size_t bytes) {
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
