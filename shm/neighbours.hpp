// Whether other processes or threads want this process's processors, as far as it can tell by the
// times that its own yields and polls take.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace ucg::shm {

/// Tells peers since when a process has done nothing but call collectives and wait in them. Lies in
/// memory that they map; zeros: it is not in a wait.
class WaitsOnly {
  public:
    using Nanoseconds = std::chrono::nanoseconds; ///< Of the host's steady clock.
    /// A process that is away for longer between two waits has computed.
    static constexpr Nanoseconds kBetweenWaits = std::chrono::microseconds(250);

    /// Says that the owner leaves its processor to others for the first time in a wait.
    void enter(Nanoseconds now) {
        if (now.count() - left_.load(std::memory_order_relaxed) > kBetweenWaits.count()) {
            began_.store(now.count(), std::memory_order_relaxed);
        }
        since_.store(began_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    /// Says that this wait ends.
    void leave(Nanoseconds now) {
        left_.store(now.count(), std::memory_order_relaxed);
        since_.store(0, std::memory_order_relaxed);
    }
    /// Returns whether the owner has done nothing but wait since `when`. For any process.
    bool since(Nanoseconds when) const {
        const std::int64_t since = since_.load(std::memory_order_relaxed);
        return since != 0 && since <= when.count();
    }

  private:
    std::atomic<std::int64_t> since_; ///< began_ while the owner waits, else 0.
    // Used by the owner alone.
    std::atomic<std::int64_t> began_; ///< When the first of the waits without computation began.
    std::atomic<std::int64_t> left_;  ///< When the last wait ended.
};

/// What a process has learned about its neighbours, those with whom it shares its processors: ranks
/// of other virtual hosts, containers or jobs, threads of its own ranks, other programs. Counts of
/// ranks and masks of CPUs do not show them; a processor that was given away and came back late
/// does.
///
/// Evidence fades with every yield that finds nobody and with every sleep, so that a neighbour that
/// was there once is forgotten; a timer's interrupt, which looks like one, never amounts to one.
/// Neighbours that wait give the processor back soon, so one time slice that is lost among many
/// quick yields says little. For any thread; what threads learn at the same time may overwrite one
/// another, which delays a lesson.
class Neighbours {
  public:
    using Nanoseconds = std::chrono::nanoseconds;

    /// A yield that takes this or longer has found somebody: that takes two context switches and
    /// what is done between them. One that finds nobody takes 0.2 to 0.5 us.
    static constexpr Nanoseconds kSwitched = std::chrono::nanoseconds(1500);
    /// A yield that takes this or longer has found somebody that computes: it keeps the processor
    /// for a slice of the scheduler (0.7 to 4 ms on Linux). A neighbour that waits gives it back
    /// within microseconds, even if a dozen do so one after the other.
    static constexpr Nanoseconds kSlice = std::chrono::microseconds(500);
    /// One yield in so many that finds somebody keeps up the belief in neighbours; one in so many
    /// of those yields that misses the processor for a slice keeps up the belief that they compute.
    static constexpr int kWeight = 8;
    static constexpr int kBelieved = 3 * kWeight; ///< From this score on it is believed.
    static constexpr int kMost = 8 * kWeight;     ///< The highest score.

    /// `expected`: the host says that there are neighbours, until yields show that there are none.
    explicit Neighbours(bool expected = false) : present_(expected ? kMost : 0) {}

    /// Notes that this thread gave the processor away (sched_yield) and had it back after `took`.
    /// `to_stranger()` returns, if a slice was lost, whether none of those for whom the thread
    /// waits can have had it.
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

    /// Notes that polls of a few microseconds in all took so long, and found nothing.
    void polled(Nanoseconds took) {
        if (took >= kSlice) {
            add(present_, kWeight);
        }
    }

    /// Notes that this thread slept where it would have given the processor to a neighbour that
    /// computes.
    void slept() {
        computing_.slept();
        strangers_.slept();
    }

    /// Returns whether somebody else wants this processor.
    bool present() const { return present_.load(std::memory_order_relaxed) >= kBelieved; }
    /// Returns whether somebody computes on it, so that a thread that gives it away misses it for
    /// long.
    bool computing() const { return computing_.believed(); }
    /// Returns whether somebody computes on it for whom this process does not wait.
    bool strangers_computing() const { return strangers_.believed(); }

  private:
    static void add(std::atomic<int>& score, int change) {
        const int before = score.load(std::memory_order_relaxed);
        const int after = std::clamp(before + change, 0, std::max(before, kMost));
        if (after != before) {
            score.store(after, std::memory_order_relaxed);
        }
    }

    /// The belief in a neighbour that computes. To find out whether it is gone costs a slice:
    /// whenever it is found to be still there, the belief lasts for twice as many sleeps.
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
        std::atomic<int> sleeps_ = kSleepsLeast; ///< How many sleeps the next belief outlasts.
        const int sleeps_most_;
    };

    std::atomic<int> present_;
    /// Lasts for few sleeps: it may be a rank of this or another group, which will soon wait as
    /// well.
    Belief computing_{32};
    Belief strangers_{1024};
};

} // namespace ucg::shm
