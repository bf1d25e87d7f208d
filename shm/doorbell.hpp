// The doorbell of a process: how it sleeps until a peer has something for it, and how peers wake it
// at next to no cost while it is awake.
//
// The line is written only when somebody falls asleep or is woken, so that every peer's cache keeps
// a copy of it: a sender's look is a load that hits. It pays for no fence either; the sleeper does,
// for all, by membarrier(2). PROTOCOL.md argues why no wake-up is lost, model/ proves it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// What a sleeper wants to be woken for.
enum class Awaits : std::uint32_t {
    message = 1, ///< A peer has put something into one of its rings.
    room = 2,    ///< A peer has released a slot of a ring that it has filled.
    both = 3,
};

/// Lies in memory that all processes of the host map; zeros are a doorbell that nobody awaits.
struct alignas(2 * kCacheLine) Doorbell {
    /// In the two lowest bits what is awaited, above them how often it was rung: the futex.
    std::atomic<std::uint32_t> word;

    /// Wakes the owner if it sleeps or is about to for what has just been published (stored with
    /// release) to it. Any thread of any process.
    void ring(Awaits published) {
        // The compiler must leave the order of the store before and the load after; the processor
        // need not, see Sleeper::announce.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        const std::uint32_t seen = word.load(std::memory_order_relaxed);
        if ((seen & static_cast<std::uint32_t>(published)) != 0) [[unlikely]] {
            answer(seen, published);
        }
    }

  private:
    void answer(std::uint32_t seen, Awaits published);
};

/// How naps ended.
struct NapCounts {
    std::uint64_t rung = 0;      ///< By a peer, before the nap or during it.
    std::uint64_t timed_out = 0; ///< By the clock.
    std::uint64_t disturbed = 0; ///< By a signal.
    std::uint64_t fences = 0;    ///< Not naps: the barriers that were asked of the kernel for them.
};

/// What a thread has said of its sleep. A value; a new one has said nothing.
struct Announcement {
    std::uint32_t word = 0; ///< Of the doorbell.
    bool fenced = false;    ///< Every peer's look since then sees it.
};

/// The owner's end of a doorbell. Any thread of the process; each has announcements of its own.
///
///     Announcement announced;
///     while (!done()) {
///         announced = sleeper.announce(Awaits::message, announced, limit);
///         if (progress() == 0) { sleeper.nap(announced, limit); }
///     }
class Sleeper {
  public:
    /// The bell must outlive it. Registers the process for membarrier(2), so every process that
    /// rings makes a Sleeper first.
    explicit Sleeper(Doorbell& bell);
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    Doorbell& bell() const { return bell_; }

    /// No nap without a fence is longer: a wake-up that is lost is found at its end.
    static constexpr std::chrono::nanoseconds kUnfencedNap = std::chrono::microseconds(250);

    /// Says that the caller is about to sleep, for `limit` at most. Whatever is published from now
    /// on rings the bell, of shares on boards if the boards' count of sleepers was raised before
    /// (board.hpp); what was published before is seen by a look after this call, which the caller
    /// owes. Of a nap that is to be longer than kUnfencedNap both hold without exception; before a
    /// shorter one, what has not left its peer's processor yet may be missed.
    /// `previous`: what this thread's last announcement returned; while nobody has answered it, it
    /// stands, and costs a load, but for one fence when the naps become long.
    Announcement announce(Awaits awaited, const Announcement& previous,
                          std::chrono::nanoseconds limit);

    /// Sleeps until somebody rings, for `limit` at most; not at all if somebody has rung since
    /// `announced`, or announced more.
    void nap(const Announcement& announced, std::chrono::nanoseconds limit);

    NapCounts counts() const;

  private:
    void fence();

    Doorbell& bell_;
    std::atomic<std::uint64_t> rung_ = 0;
    std::atomic<std::uint64_t> timed_out_ = 0;
    std::atomic<std::uint64_t> disturbed_ = 0;
    std::atomic<std::uint64_t> fences_ = 0;
};

/// Can this process order the memory accesses of its peers (membarrier(2), registered at the first
/// call)? Where a sandbox forbids it, a wake-up can be lost to a store that has not left its
/// processor yet, and costs the rest of one nap.
bool fences_peers();

} // namespace ucg::shm
