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
    first_ = read_unordered();
    last_ = first_;
}

std::vector<Ticks> Recorder::times() const {
    const auto kept = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(updates_, times_.size()));
    return {times_.begin(), times_.begin() + kept};
}

} // namespace ucg::perftest
