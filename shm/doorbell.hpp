// The doorbell of a process: how it sleeps until a peer has something for it, and how peers wake it
// at next to no cost while it is awake.
//
// The line is written only when somebody falls asleep or is woken, so that every peer's cache keeps
// a copy of it: a sender's look is a load that hits. It pays for no fence either: a sleeper's first
// nap is short, and by its end every store that was on its way has arrived. PROTOCOL.md argues why
// no wake-up is lost beyond that, model/ proves it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "shm/neighbours.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// What a sleeper wants to be woken for.
enum class Awaits : std::uint32_t {
    message = 1, ///< A peer has put something into one of its rings.
    room = 2,    ///< A peer has released a slot of a ring that it has filled.
    both = 3,
};

/// A process's doorbell. Lies in memory that all processes of the host map; zeros are a doorbell at
/// which nobody sleeps.
struct alignas(2 * kCacheLine) Doorbell {
    /// The futex. Its two lowest bits say what is awaited, those above how often it was rung.
    std::atomic<std::uint32_t> word;
    /// On a line of its own, since it changes with every wait that leaves the processor to others.
    alignas(kCacheLine) WaitsOnly waits_only;

    /// Wakes the owner if it sleeps or is about to for what has just been published (stored with
    /// release) to it. Any thread of any process.
    void ring(Awaits published) {
        // The compiler must leave the order of the store before and the load after; the processor
        // need not, see Sleeper::kFirstNap.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        const std::uint32_t seen = word.load(std::memory_order_relaxed);
        if ((seen & static_cast<std::uint32_t>(published)) != 0) [[unlikely]] {
            answer(seen, published);
        }
    }

  private:
    void answer(std::uint32_t seen, Awaits published);
};

/// How many naps ended in which way.
struct NapCounts {
    std::uint64_t rung = 0;            ///< A peer rang, before the nap or during it.
    std::uint64_t timed_out = 0;       ///< By the clock, except first naps.
    std::uint64_t first_timed_out = 0; ///< By the clock: the first naps after an announcement.
    std::uint64_t disturbed = 0;       ///< By a signal.
};

/// What a thread has announced at a doorbell about its sleep. A new one has announced nothing.
struct Announcement {
    std::uint32_t word = 0; ///< The doorbell's word after the announcement.
    /// It has outlasted a nap of this thread, so every peer's look sees it.
    bool stood = false;
    bool napped = false; ///< Its first nap ended by the clock, after kStoresArrive or more.
};

/// The owner's end of a doorbell. For any thread of the process; each has announcements of its own.
///
///     Announcement announced;
///     while (!done()) {
///         announced = sleeper.announce(Awaits::message, announced);
///         if (progress() == 0) { sleeper.nap(announced, limit); }
///     }
class Sleeper {
  public:
    /// The bell must outlive the sleeper.
    explicit Sleeper(Doorbell& bell) : bell_(bell) {}
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    Doorbell& bell() const { return bell_; }

    /// The first nap after an announcement is no longer than this: little beside the wait that led
    /// to sleep, and a thousand times as long as a store stays in its processor's store buffer.
    static constexpr std::chrono::nanoseconds kFirstNap = std::chrono::microseconds(250);
    /// A nap of at least so long has outlasted every store buffer.
    static constexpr std::chrono::nanoseconds kStoresArrive = std::chrono::microseconds(25);

    /// Announces that the caller is about to sleep. Whatever is published from now on rings the
    /// bell; shares on flag slots do so if the flag slots' count of sleepers was raised before
    /// (flag_slot.hpp). What was published before is seen by a look after this call, which the
    /// caller must make. What has not left its peer's processor by then may be missed by both,
    /// until the end of the first nap. `previous` is what this thread's last announcement returned;
    /// while nobody has rung since, it stands, and this call costs a load.
    Announcement announce(Awaits awaited, const Announcement& previous);

    /// Sleeps until somebody rings, for `limit` at most, the first time for kFirstNap at most; not
    /// at all if somebody has rung since `announced`, or another thread has announced more.
    void nap(Announcement& announced, std::chrono::nanoseconds limit);

    NapCounts counts() const;

  private:
    Doorbell& bell_;
    std::atomic<std::uint64_t> rung_ = 0;
    std::atomic<std::uint64_t> timed_out_ = 0;
    std::atomic<std::uint64_t> first_timed_out_ = 0;
    std::atomic<std::uint64_t> disturbed_ = 0;
};

} // namespace ucg::shm
