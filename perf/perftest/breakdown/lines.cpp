#include "perf/perftest/breakdown/lines.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>

#include "ucg_coll/base/assert.hpp"

namespace ucg::perftest::breakdown {

namespace {

/// The time after which lines rest in the cache of the processor that used them last.
constexpr double kSettleNs = 400;

void settle() {
    const Ticks start = read_ordered();
    while (nanoseconds(read_ordered() - start) < kSettleNs) {
    }
}

std::uint64_t claim(std::atomic<std::uint64_t>& line) {
    std::uint64_t seen = line.load(std::memory_order_relaxed);
    line.compare_exchange_strong(seen, seen + 1, std::memory_order_acq_rel);
    return seen;
}

} // namespace

Result<std::unique_ptr<Lines>> Lines::create() {
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return failure(Code::out_of_memory, "breakdown: no {} bytes of shared memory: {}",
                       sizeof(Shared), std::strerror(errno));
    }
    return std::unique_ptr<Lines>(new Lines(new (memory) Shared()));
}

Lines::~Lines() {
    ::munmap(shared_, sizeof(Shared));
}

void Lines::meet(Rank rank) {
    const auto self = static_cast<std::size_t>(rank);
    ++meetings_;
    shared_->arrived[self].store(meetings_, std::memory_order_release);
    while (shared_->arrived[1 - self].load(std::memory_order_acquire) < meetings_) {
    }
}

void Lines::start_together(Rank rank) {
    constexpr double kAheadNs = 1000; // By then both have met and read the time.
    static const auto ahead = static_cast<Ticks>(kAheadNs * ticks_per_second() / 1e9);
    if (rank == 0) {
        shared_->start.store(read_unordered() + ahead, std::memory_order_relaxed);
    }
    meet(rank);
    const Ticks start = shared_->start.load(std::memory_order_relaxed);
    while (read_unordered() < start) {
    }
}

double Lines::one_line_ns(Rank rank, std::size_t samples) {
    std::vector<Ticks> times(std::max<std::size_t>(samples / kWindow, 1));
    meet(rank);
    for (Ticks& time : times) {
        const Ticks before = read_ordered();
        for (unsigned i = 0; i < kWindow; ++i) {
            if (rank == 0) {
                shared_->line.store(turn_ + 1, std::memory_order_release);
            }
            turn_ += 2;
            const std::uint64_t awaited = rank == 0 ? turn_ : turn_ - 1;
            while (shared_->line.load(std::memory_order_acquire) != awaited) {
            }
            if (rank != 0) {
                shared_->line.store(turn_, std::memory_order_release);
            }
        }
        time = read_ordered() - before;
    }
    return undisturbed_mean_ns(std::move(times)) / (2 * kWindow);
}

double Lines::two_lines_ns(Rank rank, std::size_t samples, const std::function<void()>& between) {
    std::atomic<std::uint64_t>& mine = rank == 0 ? shared_->line : shared_->back;
    const std::atomic<std::uint64_t>& other = rank == 0 ? shared_->back : shared_->line;
    const auto await_turn = [&] {
        while (other.load(std::memory_order_acquire) != turn_) {
            between();
        }
    };
    std::vector<Ticks> times(std::max<std::size_t>(samples / kWindow, 1));
    meet(rank);
    for (Ticks& time : times) {
        const Ticks before = read_ordered();
        for (unsigned i = 0; i < kWindow; ++i) {
            ++turn_;
            if (rank != 0) {
                await_turn();
            }
            mine.store(turn_, std::memory_order_release);
            if (rank == 0) {
                await_turn();
            }
        }
        time = read_ordered() - before;
    }
    return undisturbed_mean_ns(std::move(times)) / (2 * kWindow);
}

double Lines::fifo_ns(Rank rank, std::size_t samples, const std::function<void()>& between) {
    Fifo& mine = shared_->fifos[rank];
    Fifo& peers = shared_->fifos[1 - rank];
    const auto send = [&] {
        claim(peers.head);
        peers.elements[claimed_ % std::size(peers.elements)].number.store(
            claimed_, std::memory_order_release);
    };
    const auto receive = [&] {
        const auto& element = mine.elements[claimed_ % std::size(mine.elements)];
        while (element.number.load(std::memory_order_acquire) != claimed_) {
            between();
        }
        // As in UCX, the comparison is predicted: nothing waits for the line here.
        UCG_ASSERT(mine.head.load(std::memory_order_relaxed) >= claimed_);
    };
    std::vector<Ticks> times(std::max<std::size_t>(samples / kWindow, 1));
    meet(rank);
    for (Ticks& time : times) {
        const Ticks before = read_ordered();
        for (unsigned i = 0; i < kWindow; ++i) {
            ++claimed_;
            if (rank != 0) {
                receive();
            }
            send();
            if (rank == 0) {
                receive();
            }
        }
        time = read_ordered() - before;
    }
    return undisturbed_mean_ns(std::move(times)) / (2 * kWindow);
}

double Lines::touched_ns(Rank rank, Touch touch, std::size_t samples, Stopwatch& stopwatch) {
    stopwatch.clear();
    std::atomic<std::uint64_t>& subject = shared_->subject;
    const Rank writer = touch == Touch::read ? 1 : 0;
    for (std::size_t i = 0; i < samples; ++i) {
        if (rank == writer) {
            subject.store(i, std::memory_order_relaxed);
        }
        meet(rank);
        if (touch == Touch::claim && rank != 0) {
            static_cast<void>(subject.load(std::memory_order_acquire));
        }
        meet(rank);
        if (rank == 0) {
            settle();
            stopwatch.time([&] {
                return touch == Touch::read ? subject.load(std::memory_order_acquire)
                                            : claim(subject);
            });
            stopwatch.keep();
        }
        meet(rank);
    }
    return rank == 0 ? stopwatch.mean_ns() : 0;
}

double Lines::own_claim_ns(std::size_t samples, Stopwatch& stopwatch) {
    alignas(kApart) std::atomic<std::uint64_t> own = 0;
    return stopwatch.window_ns(samples, [&] { claim(own); });
}

void Lines::measure(Rank rank, std::size_t samples, Stopwatch& stopwatch, Rounds& rounds,
                    const std::function<void()>& between) {
    rounds.add(kOneLine, one_line_ns(rank, samples), samples);
    rounds.add(kTwoLines, two_lines_ns(rank, samples, between), samples);
    rounds.add(kFifo, fifo_ns(rank, samples, between), samples);
    rounds.add(kRead, touched_ns(rank, Touch::read, samples, stopwatch), samples);
    rounds.add(kClaim, touched_ns(rank, Touch::claim, samples, stopwatch), samples);
    if (rank == 0) {
        rounds.add(kOwnClaim, own_claim_ns(samples, stopwatch), samples);
    }
    meet(rank);
}

} // namespace ucg::perftest::breakdown
