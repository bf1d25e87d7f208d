#include "shm/doorbell.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <linux/futex.h>
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

/// The system call. It does not have FUTEX_PRIVATE_FLAG: the other side is another process.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* limit) {
    return ::syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

} // namespace

/// Wakes the owner's threads. Of all callers that see the announcement one takes it down, and makes
/// the one system call.
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

Announcement Sleeper::announce(Awaits awaited, const Announcement& previous) {
    const auto bits = static_cast<std::uint32_t>(awaited);
    std::uint32_t seen = bell_.word.load(std::memory_order_acquire);
    if ((seen & bits) == bits) {
        return {seen, seen == previous.word && previous.napped, false};
    }
    while (!bell_.word.compare_exchange_weak(seen, seen | bits, std::memory_order_seq_cst)) {
    }
    return {seen | bits, false, false};
}

void Sleeper::nap(Announcement& announced, std::chrono::nanoseconds limit) {
    limit = announced.stood ? limit : std::min(limit, kFirstNap);
    const timespec relative = {static_cast<std::time_t>(limit.count() / 1'000'000'000),
                               static_cast<long>(limit.count() % 1'000'000'000)};
    const bool woken = futex(bell_.word, FUTEX_WAIT, announced.word, &relative) == 0;
    if (woken || errno == EAGAIN) {
        rung_.fetch_add(1, std::memory_order_relaxed);
    } else if (errno == ETIMEDOUT) {
        announced.napped = limit >= kStoresArrive;
        (announced.stood ? timed_out_ : first_timed_out_).fetch_add(1, std::memory_order_relaxed);
    } else {
        disturbed_.fetch_add(1, std::memory_order_relaxed);
    }
}

NapCounts Sleeper::counts() const {
    return {rung_.load(std::memory_order_relaxed), timed_out_.load(std::memory_order_relaxed),
            first_timed_out_.load(std::memory_order_relaxed),
            disturbed_.load(std::memory_order_relaxed)};
}

} // namespace ucg::shm
