#include "perf/perftest/recorder.hpp"

#include <algorithm>
#include <bit>

namespace ucg::perftest {

Recorder::Recorder(std::uint64_t iterations)
    : wanted_(iterations),
      times_(std::bit_ceil(std::clamp<std::uint64_t>(iterations, 1, kTimesMax))) {}

void Recorder::start() {
    iterations_ = 0;
    bytes_ = 0;
    messages_ = 0;
    updates_ = 0;
    next_ = 0;
    started_ = read_unordered();
    first_ = started_;
    last_ = first_;
    reported_ = first_;
}

void Recorder::report_each(Ticks interval, std::function<void()> report) {
    interval_ = interval;
    report_ = std::move(report);
}

std::vector<Ticks> Recorder::times() const {
    if (updates_ < times_.size()) {
        return {times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(updates_)};
    }
    std::vector<Ticks> ordered = times_;
    std::rotate(ordered.begin(), ordered.begin() + static_cast<std::ptrdiff_t>(next_),
                ordered.end());
    return ordered;
}

} // namespace ucg::perftest
