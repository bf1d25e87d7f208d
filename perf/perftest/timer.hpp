// The processor's own time counter: the only clock that the measurements here read.
//
// A reading is ordered: what precedes it in the program has been executed when the counter is read
// (x86: rdtscp waits for earlier instructions, lfence keeps later ones from beginning; aarch64: isb
// before cntvct_el0, as in the paper's section 3). timer_overhead() measures the cost of a reading,
// so that it can be subtracted and reported.
#pragma once

#include <cstdint>
#include <ctime>

namespace ucg::perftest {

/// A reading of the counter, in the counter's own ticks.
using Ticks = std::uint64_t;

#if defined(__x86_64__)

/// Reads the counter when earlier instructions are done and later ones have not begun.
inline Ticks read_ordered() {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::uint32_t processor = 0;
    __asm__ volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high), "=c"(processor)::"memory");
    return (static_cast<Ticks>(high) << 32) | low;
}

/// Reads the counter without any order, as ucs_get_time() of UCX does: for loops that update a
/// result in each iteration.
inline Ticks read_unordered() {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (static_cast<Ticks>(high) << 32) | low;
}

#elif defined(__aarch64__)

inline Ticks read_ordered() {
    Ticks ticks = 0;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks)::"memory");
    return ticks;
}

inline Ticks read_unordered() {
    Ticks ticks = 0;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}

#else

/// On other processors: the operating system's clock, in nanoseconds.
inline Ticks read_ordered() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<Ticks>(now.tv_sec) * 1000000000 + static_cast<Ticks>(now.tv_nsec);
}

inline Ticks read_unordered() {
    return read_ordered();
}

#endif

/// Returns the ticks per second: as the processor tells (aarch64), else measured once against
/// CLOCK_MONOTONIC_RAW in about 20 ms. The value stays the same for the life of the process; a
/// forked child has its parent's.
double ticks_per_second();

inline double nanoseconds(Ticks ticks) {
    return static_cast<double>(ticks) * 1e9 / ticks_per_second();
}

/// The cost of measuring itself.
struct TimerOverhead {
    double mean_ns = 0;      ///< Mean of two ordered readings with nothing between them.
    double median_ns = 0;    ///< Median of the same; this is what is subtracted.
    double deviation_ns = 0; ///< Standard deviation.
    int samples = 0;
};

/// Measures the overhead. `samples` is at least 100, as the paper asks.
TimerOverhead timer_overhead(int samples = 1000);

} // namespace ucg::perftest
