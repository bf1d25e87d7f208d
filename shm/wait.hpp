// How to wait for another process's write: a ladder of rungs, each kinder to the machine and slower
// to notice than the one before.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <sched.h>

#if defined(__x86_64__)
#include <immintrin.h>
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

/// One wait. A wait that found something starts again from the first rung.
///
///     Waiter waiter(ranks_on_host, usable_cpus);
///     while (!done()) {
///         if (progress() > 0) { waiter.reset(); }
///         else if (waiter.rung() != Waiter::Rung::sleep) { waiter.idle(); }
///         else { ... }                // Announce, look again, sleep for waiter.nap():
///         doorbell.hpp now and then: waiter.tick(clock);
///     }
///
/// Ranks that outnumber the CPUs yield at once: a rank that spins keeps the one it waits for from
/// running until the scheduler's tick, which costs milliseconds where a yield costs two
/// microseconds. Ranks with a CPU each spin, then pause, and after some thousand polls yield as
/// well, since a stranger may hold the peer's CPU. Whoever has found nothing for `sleep_after`
/// sleeps: being woken costs tens of microseconds, little beside that, and less than the processor
/// time that a computing neighbour, or the peer itself, can make of it.
///
/// The ladder has no clock: who waits reads one where it costs nothing and hands it in. A wait that
/// is never told the time never sleeps.
class Waiter {
  public:
    enum class Rung : std::uint8_t { spin, pause, yield, sleep };
    using Nanoseconds = std::chrono::nanoseconds;

    static constexpr std::uint32_t kSpinPolls = 16;
    static constexpr std::uint32_t kPausePolls = 4096; ///< Polls of spin and pause together.
    static constexpr Nanoseconds kSleepAfter = std::chrono::milliseconds(1);
    static constexpr Nanoseconds kNever = Nanoseconds::max();

    /// A nap's length is this part of the time waited so far. What no doorbell announces, messages
    /// from the network and the host's own, is noticed at the end of a nap: so late by a sixteenth
    /// of the wait at most.
    static constexpr int kNapShare = 16;
    /// Linux lets a timer be late by 50 us (timer slack) anyway.
    static constexpr Nanoseconds kNapMin = std::chrono::microseconds(50);
    /// The end of a nap costs some 5 us of processor time, polls and the host's progress included:
    /// once in a millisecond, half a percent. Ranks that share a CPU share this budget too ...
    static constexpr Nanoseconds kNapMax = std::chrono::milliseconds(1);
    /// ... but are never away for longer than this.
    static constexpr Nanoseconds kNapMaxShared = std::chrono::milliseconds(16);

    /// `usable_cpus`: what the affinity masks and control groups of the ranks allow, not what
    /// exists. REQUIRES: usable_cpus >= 1.
    Waiter(unsigned ranks_on_host, unsigned usable_cpus, Nanoseconds sleep_after = kSleepAfter)
        : first_poll_(ranks_on_host > usable_cpus ? kPausePolls : 0), polls_(first_poll_),
          sleep_after_(sleep_after),
          nap_max_(std::clamp<Nanoseconds>(kNapMax * ranks_on_host / usable_cpus, kNapMax,
                                           kNapMaxShared)) {}

    /// Something moved.
    void reset() {
        polls_ = first_poll_;
        ticking_ = false;
        waited_ = Nanoseconds::zero();
    }

    /// Nothing moved: waits as the rung says; on the last one, for those who cannot sleep, it
    /// yields.
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

    /// Tells the time of a clock that only rises. The wait begins with the first after reset().
    void tick(Nanoseconds now) {
        if (!ticking_) {
            ticking_ = true;
            began_ = now;
        }
        waited_ = now - began_;
    }

    /// What to do next.
    Rung rung() const {
        if (waited_ >= sleep_after_) {
            return Rung::sleep;
        }
        return polls_ < kSpinPolls ? Rung::spin
                                   : (polls_ < kPausePolls ? Rung::pause : Rung::yield);
    }

    /// How long to sleep at most.
    Nanoseconds nap() const { return std::clamp(waited_ / kNapShare, kNapMin, nap_max_); }

  private:
    std::uint32_t first_poll_;
    std::uint32_t polls_;
    bool ticking_ = false;
    Nanoseconds began_{};
    Nanoseconds waited_{};
    Nanoseconds sleep_after_;
    Nanoseconds nap_max_;
};

} // namespace ucg::shm
