// How to wait for another process's write: a ladder of rungs, each kinder to the machine and slower
// to notice than the one before.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <sched.h>

#include "shm/neighbours.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace ucg::shm {

/// Tells the core that this is a spin loop.
inline void cpu_pause() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

/// What a wait knows before it begins.
struct WaitFacts {
    unsigned ranks_on_host = 1;
    /// CPUs that the affinity masks and control groups of the ranks allow, not those that exist. At
    /// least 1.
    unsigned usable_cpus = 1;
    /// How long a wait is in vain before it sleeps, whatever is known of neighbours. If empty: a
    /// millisecond where processors are shared; never where each rank has one for itself; and at
    /// once where neighbours compute that are no ranks of the group.
    std::optional<std::chrono::nanoseconds> sleep_after;
    /// A network is waited for, too, which takes longer than a yield.
    bool over_network = false;
    /// What the process has learned of its neighbours so far, and learns from this wait; null:
    /// nothing. Not owned; must outlive the wait.
    Neighbours* neighbours = nullptr;
};

/// One wait. A wait that found something starts again from the first rung.
///
///     Waiter waiter(facts);
///     while (!done()) {
///         if (progress() > 0) { waiter.reset(); }
///         else if (waiter.rung() != Waiter::Rung::sleep) { waiter.idle(); }
///         else { ... } // Announce, look again, sleep for waiter.nap(): doorbell.hpp.
///         // Now and then: waiter.tick(clock);
///     }
///
/// Ranks that outnumber the CPUs yield at once: a rank that spins keeps the one it waits for from
/// running until the scheduler's tick, which costs milliseconds where a yield costs two
/// microseconds. The same holds where yields have found other neighbours that wait as well. Ranks
/// with a CPU each spin, then pause, and after some thousand polls yield, since a stranger may hold
/// the peer's CPU; earlier where they wait for a network, beside which a yield is short.
///
/// A rank that yields to a neighbour that computes misses its processor for a time slice,
/// milliseconds, while the peer's answer may come within a microsecond; a rank that sleeps is woken
/// by the answer. So a wait that has met such a neighbour sleeps where it would yield, unless
/// `sleep_after` says when to. Where ranks outnumber CPUs the neighbour is most often a rank of the
/// group, the wait lasts until that one is done in any case, and each sleep would cost a wake-up
/// besides: so a wait there sleeps at once only if slices were lost to strangers, while all peers
/// waited. Where ranks outnumber CPUs or have neighbours, a wait that has found nothing for
/// `sleep_after` sleeps: being woken costs tens of microseconds, little beside that, and less than
/// the processor time that a computing neighbour, or the peer itself, can use meanwhile. Ranks with
/// a CPU each do not sleep: what no doorbell tells of, such as messages from the network, is then
/// found at once.
///
/// The ladder reads no clock: the caller reads one where it costs nothing and hands the time in
/// (tick()). A wait that is never told the time sleeps only where it would at once.
class Waiter {
  public:
    enum class Rung : std::uint8_t { spin, pause, yield, sleep };
    using Nanoseconds = std::chrono::nanoseconds;

    static constexpr std::uint32_t kSpinPolls = 16;
    static constexpr std::uint32_t kPausePolls = 4096;       ///< Polls of spin and pause together,
    static constexpr std::uint32_t kPausePollsNetwork = 256; ///< and where a network is waited for.
    static constexpr Nanoseconds kSleepAfter = std::chrono::milliseconds(1);
    static constexpr Nanoseconds kNever = Nanoseconds::max();

    /// A nap lasts as long as the time waited so far divided by this. What no doorbell tells of,
    /// such as messages from the network, is noticed at the end of a nap: late by a sixteenth of
    /// the wait at most.
    static constexpr int kNapShare = 16;
    /// The shortest nap: Linux lets a timer be late by 50 us (timer slack) anyway.
    static constexpr Nanoseconds kNapMin = std::chrono::microseconds(50);
    /// The longest nap of a rank with a CPU for itself. The end of a nap costs some 5 us of
    /// processor time, polls and progress of MPI included: once in a millisecond, half a percent.
    /// Ranks that share a CPU share this budget, so their naps are longer,
    static constexpr Nanoseconds kNapMax = std::chrono::milliseconds(1);
    /// but never longer than this.
    static constexpr Nanoseconds kNapMaxShared = std::chrono::milliseconds(16);

    explicit Waiter(const WaitFacts& facts)
        : oversubscribed_(facts.ranks_on_host > facts.usable_cpus),
          told_when_(facts.sleep_after.has_value()),
          pause_polls_(facts.over_network ? kPausePollsNetwork : kPausePolls),
          sleep_after_(facts.sleep_after.value_or(kSleepAfter)),
          nap_max_(std::clamp<Nanoseconds>(kNapMax * facts.ranks_on_host / facts.usable_cpus,
                                           kNapMax, kNapMaxShared)),
          neighbours_(facts.neighbours) {
        reset();
    }
    Waiter(unsigned ranks_on_host, unsigned usable_cpus)
        : Waiter(WaitFacts{ranks_on_host, usable_cpus, std::nullopt, false, nullptr}) {}

    /// Says that something moved: the wait begins anew.
    void reset() {
        const bool yields_at_once =
            oversubscribed_ ||
            (neighbours_ != nullptr && neighbours_->present() && !neighbours_->computing());
        polls_ = yields_at_once ? pause_polls_ : 0;
        ticking_ = false;
        waited_ = Nanoseconds::zero();
    }

    /// To be called when nothing moved. Waits a little, as the rung says; on the last rung, for
    /// callers that cannot sleep, it yields.
    void idle() {
        switch (rung()) {
        case Rung::spin: ++polls_; break;
        case Rung::pause:
            ++polls_;
            cpu_pause();
            break;
        case Rung::yield:
        case Rung::sleep: ::sched_yield(); break;
        }
    }

    /// Says that the yield of the latest idle() took so long, by the caller's clock.
    /// `to_stranger()` returns whether all peers have been waiting since before it.
    template <typename ToStranger>
    void gave_way(Nanoseconds took, ToStranger&& to_stranger) {
        if (neighbours_ != nullptr) {
            neighbours_->gave_way(took, to_stranger);
        }
    }
    void gave_way(Nanoseconds took) {
        gave_way(took, [] { return false; });
    }

    /// Tells the time of a clock that only rises. The wait begins with the first after reset().
    void tick(Nanoseconds now) {
        if (!ticking_) {
            ticking_ = true;
            began_ = now;
        } else if (neighbours_ != nullptr && polls_ < pause_polls_) {
            neighbours_->polled(now - began_ - waited_);
        }
        waited_ = now - began_;
    }

    /// Says that the caller has slept.
    void slept() {
        if (neighbours_ != nullptr) {
            neighbours_->slept();
        }
    }

    /// Returns what to do next.
    Rung rung() const {
        if (waited_ >= sleep_after_ && may_sleep()) {
            return Rung::sleep;
        }
        if (polls_ < pause_polls_) {
            return polls_ < kSpinPolls ? Rung::spin : Rung::pause;
        }
        return misses_its_processor() ? Rung::sleep : Rung::yield;
    }

    /// Returns how long to sleep at most.
    Nanoseconds nap() const { return std::clamp(waited_ / kNapShare, kNapMin, nap_max_); }

  private:
    bool may_sleep() const {
        return told_when_ || oversubscribed_ || (neighbours_ != nullptr && neighbours_->present());
    }
    bool misses_its_processor() const {
        return !told_when_ && neighbours_ != nullptr &&
               (oversubscribed_ ? neighbours_->strangers_computing() : neighbours_->computing());
    }

    bool oversubscribed_;
    bool told_when_; ///< WaitFacts::sleep_after has a value, which then decides alone.
    bool ticking_ = false;
    std::uint32_t pause_polls_;
    std::uint32_t polls_ = 0;
    Nanoseconds began_{};
    Nanoseconds waited_{};
    Nanoseconds sleep_after_;
    Nanoseconds nap_max_;
    Neighbours* neighbours_;
};

} // namespace ucg::shm
