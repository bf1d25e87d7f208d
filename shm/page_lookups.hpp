// Processes that copy from or to the memory of the same other process look up its pages one after
// the other. The kernel finds and holds up to 1024 pages (4 MiB) before it copies them, and for
// each page it takes the lock of a page table, which serves 2 MiB. Two calls that do so at the same
// time hand the lock's cache line to and fro, and take five times as long as one (256 KiB: 47 us
// instead of 8.4, Sapphire Rapids). Where the second call begins when the first one has found its
// pages, one copies while the other looks up, and both are done after 20 us.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "shm/wait.hpp"

namespace ucg::shm {

/// What lookups take. The same for all ranks of a group.
struct PageLookupCost {
    double per_byte_ns = 0; ///< The time in which the kernel finds the pages of so many bytes.
    /// The shortest copies whose lookups wait for one another.
    std::uint64_t serial_bytes_min = ~std::uint64_t{0};
};

/// The lookups of pages of one rank's memory. Each caller reserves the time of its own. The time is
/// the host's steady clock, in nanoseconds; where a process has another time namespace, or a peer
/// was stopped after it reserved its time, calls collide or wait for at most kAheadMax, and nothing
/// else happens. Thread-safe.
class PageLookups {
  public:
    PageLookups() = default; ///< Nobody waits.
    /// `until` is a word that all ranks map: when the last reserved time ends; 0 at first. Neither
    /// is owned.
    PageLookups(std::atomic<std::int64_t>& until, const PageLookupCost& cost)
        : until_(&until), cost_(&cost) {}

    /// Reserves the time for the lookups of a call that copies so many bytes, and waits until it
    /// begins. Short copies do neither.
    void wait(std::uint64_t bytes) const {
        if (until_ == nullptr || bytes < cost_->serial_bytes_min) {
            return;
        }
        const std::int64_t start = reserve(now(), duration(bytes));
        while (now() < start) {
            cpu_pause();
        }
    }

    /// Reserves `duration` at the time `now` or later. Returns when it begins.
    std::int64_t reserve(std::int64_t now, std::int64_t duration) const {
        // Relaxed: the word orders nothing but itself.
        std::int64_t until = until_->load(std::memory_order_relaxed);
        std::int64_t start = 0;
        do {
            start = until > now && until <= now + kAheadMax ? until : now;
        } while (
            !until_->compare_exchange_weak(until, start + duration, std::memory_order_relaxed));
        return start;
    }

    /// Returns how long the lookups take before the first byte is copied.
    std::int64_t duration(std::uint64_t bytes) const {
        return static_cast<std::int64_t>(cost_->per_byte_ns *
                                         static_cast<double>(std::min(bytes, kBytesAtOnce)));
    }

  private:
    static constexpr std::uint64_t kBytesAtOnce = 4 << 20; ///< PVM_MAX_KMALLOC_PAGES in Linux.
    static constexpr std::int64_t kAheadMax = 1'000'000;

    static std::int64_t now() {
        return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }

    std::atomic<std::int64_t>* until_ = nullptr;
    const PageLookupCost* cost_ = nullptr;
};

} // namespace ucg::shm
