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
/// was there once is forgotten; a timer's interrupt, which looks like one, never amounts to it.
/// Neighbours that wait give the processor back soon, so one slice that is lost among many quick
/// turns says little. Any thread; what threads learn at the same time may overwrite one another,
/// which delays a lesson.
class Neighbours {
  public:
    using Nanoseconds = std::chrono::nanoseconds;

    /// A yield that finds nobody takes 0.2 to 0.5 us; one that finds somebody takes two context
    /// switches and what is done between them.
    static constexpr Nanoseconds kSwitched = std::chrono::nanoseconds(1500);
    /// Who computes keeps the processor for a slice of the scheduler (0.7 to 4 ms on Linux); who
    /// waits gives it back within microseconds, even if a dozen do so in turn.
    static constexpr Nanoseconds kSlice = std::chrono::microseconds(500);
    /// One yield in so many that finds somebody keeps up the belief in neighbours, and one of those
    /// that misses the processor for a slice the belief that they compute.
    static constexpr int kWeight = 8;
    static constexpr int kBelieved = 3 * kWeight;
    static constexpr int kMost = 8 * kWeight;

    /// `expected`: the host says that there are neighbours, until yields show that there are none.
    explicit Neighbours(bool expected = false) : present_(expected ? kMost : 0) {}

    /// This thread gave the processor away (sched_yield) and had it back after `took`.
    void gave_way(Nanoseconds took) {
        add(present_, took >= kSwitched ? kWeight : -1);
        if (took >= kSwitched) {
            add(computing_, took >= kSlice ? kWeight : -1);
        }
    }

    /// Polls of a few microseconds in all took so long, without anything having been found.
    void polled(Nanoseconds took) {
        if (took >= kSlice) {
            add(present_, kWeight);
        }
    }

    /// This thread slept, where it would have given the processor to who computes.
    void slept() { add(computing_, -1); }

    /// Does somebody else want this processor?
    bool present() const { return present_.load(std::memory_order_relaxed) >= kBelieved; }
    /// Does somebody compute on it, so that who gives it away misses it for long?
    bool computing() const { return computing_.load(std::memory_order_relaxed) >= kBelieved; }

  private:
    static void add(std::atomic<int>& score, int change) {
        const int before = score.load(std::memory_order_relaxed);
        const int after = std::clamp(before + change, 0, kMost);
        if (after != before) {
            score.store(after, std::memory_order_relaxed);
        }
    }

    std::atomic<int> present_;
    std::atomic<int> computing_ = 0;
};

} // namespace ucg::shm
