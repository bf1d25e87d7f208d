#include "perf/perftest/timer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ucg_coll/base/assert.hpp"

namespace ucg::perftest {

namespace {

#if !defined(__aarch64__)
double clock_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// A reading of both clocks: of several attempts the one in which the two readings lay closest
/// together, since an interruption between them would spoil the rate.
struct Pair {
    double clock = 0;
    Ticks ticks = 0;
};

Pair both_clocks() {
    Pair best;
    Ticks width = ~Ticks{0};
    for (int i = 0; i < 20; ++i) {
        const Ticks before = read_ordered();
        const double clock = clock_ns();
        const Ticks after = read_ordered();
        if (after - before < width) {
            width = after - before;
            best = {clock, before + width / 2};
        }
    }
    return best;
}
#endif

double find_rate() {
#if defined(__aarch64__)
    std::uint64_t rate = 0;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(rate));
    return static_cast<double>(rate);
#else
    constexpr double kInterval = 20e6;
    const Pair first = both_clocks();
    while (clock_ns() - first.clock < kInterval) {
    }
    const Pair last = both_clocks();
    return static_cast<double>(last.ticks - first.ticks) * 1e9 / (last.clock - first.clock);
#endif
}

} // namespace

double ticks_per_second() {
    static const double rate = find_rate();
    return rate;
}

TimerOverhead timer_overhead(int samples) {
    UCG_ASSERT(samples >= 100);
    std::vector<double> found;
    found.reserve(static_cast<std::size_t>(samples));
    for (int i = -10; i < samples; ++i) { // The first ones fill the caches.
        const Ticks before = read_ordered();
        const Ticks after = read_ordered();
        if (i >= 0) {
            found.push_back(nanoseconds(after - before));
        }
    }
    TimerOverhead overhead;
    overhead.samples = samples;
    overhead.mean_ns = std::accumulate(found.begin(), found.end(), 0.0) / samples;
    double squares = 0;
    for (const double value : found) {
        squares += (value - overhead.mean_ns) * (value - overhead.mean_ns);
    }
    overhead.deviation_ns = std::sqrt(squares / (samples - 1));
    const auto middle = found.begin() + samples / 2;
    std::nth_element(found.begin(), middle, found.end());
    overhead.median_ns = *middle;
    return overhead;
}

} // namespace ucg::perftest
