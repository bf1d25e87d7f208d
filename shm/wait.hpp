// How to wait for another process's write: a ladder of rungs, each kinder to the machine and slower
// to notice than the one before.
#pragma once

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
///     while (!done()) { if (progress() > 0) waiter.reset(); else waiter.idle(); }
///
/// Ranks that outnumber the CPUs yield at once: a rank that spins keeps the one it waits for from
/// running until the scheduler's tick, which costs milliseconds where a yield costs two
/// microseconds. Ranks with a CPU each spin, then pause, and after some thousand polls yield as
/// well, since a stranger may hold the peer's CPU. A sleep on a futex would be the rung after
/// `yield`.
class Waiter {
  public:
    enum class Rung : std::uint8_t { spin, pause, yield };

    static constexpr std::uint32_t kSpinPolls = 16;
    static constexpr std::uint32_t kPausePolls = 4096; ///< Polls of spin and pause together.

    /// `usable_cpus`: what the affinity masks and control groups of the ranks allow, not what
    /// exists.
    Waiter(unsigned ranks_on_host, unsigned usable_cpus)
        : first_poll_(ranks_on_host > usable_cpus ? kPausePolls : 0), polls_(first_poll_) {}

    /// Something moved.
    void reset() { polls_ = first_poll_; }

    /// Nothing moved: waits as the rung says.
    void idle() {
        switch (rung()) {
        case Rung::spin: ++polls_; break;
        case Rung::pause:
            ++polls_;
            cpu_pause();
            break;
        case Rung::yield: ::sched_yield(); break;
        }
    }

    /// What the next idle() does.
    Rung rung() const {
        return polls_ < kSpinPolls ? Rung::spin
                                   : (polls_ < kPausePolls ? Rung::pause : Rung::yield);
    }

  private:
    std::uint32_t first_poll_;
    std::uint32_t polls_;
};

} // namespace ucg::shm
