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

/// The lookups of pages of one rank's memory. Each caller reserves the time of its own. The time is
/// the host's steady clock, in nanoseconds; where a process has another time namespace, or a peer
/// was stopped after it reserved its time, calls collide or wait for at most kAheadMax, and nothing
/// else happens. Thread-safe.
class PageLookups {
  public:
    PageLookups() = default; ///< Nobody waits.
    /// `until` is a word that all ranks map: when the last reserved time ends; 0 at first. Not
    /// owned. `per_byte_ns` is the time in which the kernel finds the pages. Calls that copy less
    /// than `bytes_min` do not wait, and reserve nothing.
    PageLookups(std::atomic<std::int64_t>& until, double per_byte_ns, std::uint64_t bytes_min)
        : until_(&until), per_byte_ns_(per_byte_ns), bytes_min_(bytes_min) {}

    /// Reserves the time for the lookups of a call that copies so many bytes, and waits until it
    /// begins.
    void wait(std::uint64_t bytes) const {
        if (until_ == nullptr || bytes < bytes_min_) {
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
        return static_cast<std::int64_t>(per_byte_ns_ *
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
    double per_byte_ns_ = 0;
    std::uint64_t bytes_min_ = 0;
};

} // namespace ucg::shm
