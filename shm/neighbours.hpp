// Who else wants this process's processors, as far as it can be felt from within.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace ucg::shm {

/// Since when a process has done nothing but call collectives and wait in them, for its peers to
/// see. Lies in memory that they map; zeros: it is not in a wait.
class WaitsOnly {
  public:
    using Nanoseconds = std::chrono::nanoseconds; ///< Of the host's steady clock.
    /// Between two waits a process that is away for longer has computed.
    static constexpr Nanoseconds kBetweenWaits = std::chrono::microseconds(250);

    /// The owner leaves its processor to others for the first time in a wait.
    void enter(Nanoseconds now) {
        if (now.count() - left_.load(std::memory_order_relaxed) > kBetweenWaits.count()) {
            began_.store(now.count(), std::memory_order_relaxed);
        }
        since_.store(began_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    /// The end of that wait.
    void leave(Nanoseconds now) {
        left_.store(now.count(), std::memory_order_relaxed);
        since_.store(0, std::memory_order_relaxed);
    }
    /// Any process: has it been so since then?
    bool since(Nanoseconds when) const {
        const std::int64_t since = since_.load(std::memory_order_relaxed);
        return since != 0 && since <= when.count();
    }

  private:
    std::atomic<std::int64_t> since_;
    std::atomic<std::int64_t> began_; ///< Used by the owner alone, as the next.
    std::atomic<std::int64_t> left_;
};

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
    /// `to_stranger` answers, of a slice that was lost, whether none of those that the thread waits
    /// for can have had it.
    template <typename ToStranger>
    void gave_way(Nanoseconds took, ToStranger&& to_stranger) {
        add(present_, took >= kSwitched ? kWeight : -1);
        if (took < kSwitched) {
            return;
        }
        if (took < kSlice) {
            computing_.quick_turn();
            strangers_.quick_turn();
            return;
        }
        computing_.missed_slice();
        if (to_stranger()) {
            strangers_.missed_slice();
        }
    }
    void gave_way(Nanoseconds took) {
        gave_way(took, [] { return false; });
    }

    /// Polls of a few microseconds in all took so long, without anything having been found.
    void polled(Nanoseconds took) {
        if (took >= kSlice) {
            add(present_, kWeight);
        }
    }

    /// This thread slept, where it would have given the processor to who computes.
    void slept() {
        computing_.slept();
        strangers_.slept();
    }

    /// Does somebody else want this processor?
    bool present() const { return present_.load(std::memory_order_relaxed) >= kBelieved; }
    /// Does somebody compute on it, so that who gives it away misses it for long?
    bool computing() const { return computing_.believed(); }
    /// Is that somebody for whom this process does not wait?
    bool strangers_computing() const { return strangers_.believed(); }

  private:
    static void add(std::atomic<int>& score, int change) {
        const int before = score.load(std::memory_order_relaxed);
        const int after = std::clamp(before + change, 0, std::max(before, kMost));
        if (after != before) {
            score.store(after, std::memory_order_relaxed);
        }
    }

    /// In somebody who computes. To see whether they are gone costs a slice: whenever they are
    /// found to be still there, the belief lasts for twice as many sleeps.
    class Belief {
      public:
        explicit Belief(int sleeps_most) : sleeps_most_(sleeps_most) {}
        bool believed() const { return score_.load(std::memory_order_relaxed) >= kBelieved; }
        void missed_slice() {
            if (score_.load(std::memory_order_relaxed) + kWeight < kBelieved) {
                add(score_, kWeight);
                return;
            }
            const int sleeps = sleeps_.load(std::memory_order_relaxed);
            score_.store(kBelieved - 1 + sleeps, std::memory_order_relaxed);
            sleeps_.store(std::min(2 * sleeps, sleeps_most_), std::memory_order_relaxed);
        }
        void quick_turn() {
            add(score_, -1);
            if (score_.load(std::memory_order_relaxed) == 0) {
                sleeps_.store(kSleepsLeast, std::memory_order_relaxed);
            }
        }
        void slept() { add(score_, -1); }

      private:
        static constexpr int kSleepsLeast = 1;

        std::atomic<int> score_ = 0;
        std::atomic<int> sleeps_ = kSleepsLeast; ///< How many the next belief outlasts.
        const int sleeps_most_;
    };

    std::atomic<int> present_;
    /// It may have been a rank of this or of another group, which will soon wait as well.
    Belief computing_{32};
    Belief strangers_{1024};
};

} // namespace ucg::shm
