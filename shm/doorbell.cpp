#include "shm/doorbell.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace ucg::shm {
namespace {

constexpr std::uint32_t kAwaitsMask = static_cast<std::uint32_t>(Awaits::both);
constexpr std::uint32_t kOneRing = kAwaitsMask + 1;

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "the kernel reads the word as a plain integer");

/// Not FUTEX_PRIVATE_FLAG: the other side is another process.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* limit) {
    return ::syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

long membarrier(int command) {
    return ::syscall(SYS_membarrier, command, 0, 0);
}

bool register_for_fences() {
    const long commands = membarrier(MEMBARRIER_CMD_QUERY);
    constexpr long kWanted =
        MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
    const bool registered = commands >= 0 && (commands & kWanted) == kWanted &&
                            membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
    if (!registered) {
        log(LogLevel::info,
            "membarrier(2) is not available (a seccomp profile, or Linux before 4.16): a peer that "
            "sleeps may, rarely, be woken by the end of its nap instead of by a message");
    }
    return registered;
}

} // namespace

bool fences_peers() {
    static const bool registered = register_for_fences();
    return registered;
}

/// Of all who see the announcement one takes it down, and makes the one system call.
void Doorbell::answer(std::uint32_t seen, Awaits published) {
    while ((seen & static_cast<std::uint32_t>(published)) != 0) {
        // Release: the sleeper that sees the word changed sees what was published.
        if (word.compare_exchange_weak(seen, (seen & ~kAwaitsMask) + kOneRing,
                                       std::memory_order_release, std::memory_order_relaxed)) {
            static_cast<void>(futex(word, FUTEX_WAKE, INT_MAX, nullptr));
            return;
        }
    }
}

Sleeper::Sleeper(Doorbell& bell) : bell_(bell) {
    static_cast<void>(fences_peers());
}

Announcement Sleeper::announce(Awaits awaited, const Announcement& previous,
                               std::chrono::nanoseconds limit) {
    const auto bits = static_cast<std::uint32_t>(awaited);
    std::uint32_t seen = bell_.word.load(std::memory_order_acquire);
    Announcement announced = {seen | bits, seen == previous.word && previous.fenced};
    if ((seen & bits) != bits) {
        while (!bell_.word.compare_exchange_weak(seen, seen | bits, std::memory_order_seq_cst)) {
        }
        announced = {seen | bits, false};
    }
    if (!announced.fenced && limit > kUnfencedNap) {
        fence();
        announced.fenced = true;
    }
    return announced;
}

/// From here on every peer's look sees the announcement, or what it published before its look is
/// visible to this thread's next look: the fence stands between the two in the peer as well. The
/// kernel makes one fence at a time, whoever asks, so only those who sleep for long do.
/// If it lacks the memory for it, the case is that of fences_peers() being false.
void Sleeper::fence() {
    if (fences_peers()) {
        static_cast<void>(membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED));
        fences_.fetch_add(1, std::memory_order_relaxed);
    }
}

void Sleeper::nap(const Announcement& announced, std::chrono::nanoseconds limit) {
    limit = announced.fenced ? limit : std::min(limit, kUnfencedNap);
    const timespec relative = {static_cast<std::time_t>(limit.count() / 1'000'000'000),
                               static_cast<long>(limit.count() % 1'000'000'000)};
    const bool woken = futex(bell_.word, FUTEX_WAIT, announced.word, &relative) == 0;
    std::atomic<std::uint64_t>& count = woken || errno == EAGAIN ? rung_
                                        : errno == ETIMEDOUT     ? timed_out_
                                                                 : disturbed_;
    count.fetch_add(1, std::memory_order_relaxed);
}

NapCounts Sleeper::counts() const {
    return {rung_.load(std::memory_order_relaxed), timed_out_.load(std::memory_order_relaxed),
            disturbed_.load(std::memory_order_relaxed), fences_.load(std::memory_order_relaxed)};
}

} // namespace ucg::shm
