// Who else wants this process's processors, as far as it can be felt from within.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

namespace ucg::shm {

/// What a process has learned of those that it shares its processors with: ranks of other virtual
/// hosts, containers or jobs, threads of its own ranks, strangers. Counts of ranks and masks of
/// CPUs do not show them; a processor that was given away and came back late does.
///
/// Evidence fades with every yield that finds nobody and with every sleep, so that a stranger who
/// was there once is forgotten; a timer's interrupt, which looks like one, never amounts to it. Any
/// thread; what threads learn at the same time may overwrite one another, which delays a lesson.
class Neighbours {
  public:
    using Nanoseconds = std::chrono::nanoseconds;

    /// A yield that finds nobody takes 0.2 to 0.5 us; one that finds somebody takes two context
    /// switches and what is done between them.
    static constexpr Nanoseconds kSwitched = std::chrono::nanoseconds(1500);
    /// Who computes keeps the processor for a slice of the scheduler (0.7 to 4 ms on Linux); who
    /// waits gives it back within microseconds, even if a dozen do so in turn.
    static constexpr Nanoseconds kSlice = std::chrono::microseconds(500);
    /// One yield in so many that finds somebody keeps up the belief in neighbours.
    static constexpr int kWeight = 8;
    static constexpr int kPresent = 3 * kWeight;
    static constexpr int kMost = 8 * kWeight;
    static constexpr int kRememberedSleeps = 16;

    /// `expected`: the host says that there are neighbours, until yields show that there are none.
    explicit Neighbours(bool expected = false) : switches_(expected ? kMost : 0) {}

    /// This thread gave the processor away (sched_yield) and had it back after `took`.
    void gave_way(Nanoseconds took) {
        const int seen = switches_.load(std::memory_order_relaxed);
        const int now = took >= kSwitched ? std::min(seen + kWeight, kMost) : std::max(seen - 1, 0);
        if (now != seen) {
            switches_.store(now, std::memory_order_relaxed);
        }
        lost(took);
    }

    /// Polls of a few microseconds in all took so long, without anything having been found.
    void lost(Nanoseconds took) {
        if (took >= kSlice) {
            sleeps_.store(kRememberedSleeps, std::memory_order_relaxed);
        }
    }

    /// This thread slept, where it would have given the processor to who computes.
    void slept() {
        if (const int left = sleeps_.load(std::memory_order_relaxed); left > 0) {
            sleeps_.store(left - 1, std::memory_order_relaxed);
        }
    }

    /// Does somebody else want this processor?
    bool present() const { return switches_.load(std::memory_order_relaxed) >= kPresent; }
    /// Does somebody compute on it, so that who gives it away misses it for long?
    bool computing() const { return sleeps_.load(std::memory_order_relaxed) > 0; }

  private:
    std::atomic<int> switches_;   ///< How much speaks for neighbours.
    std::atomic<int> sleeps_ = 0; ///< Left until one that computes is looked for anew.
};

} // namespace ucg::shm
