// Rounds of a measurement on a machine whose state changes.
#pragma once

#include <algorithm>
#include <vector>

#include "tools/ucg_tune/crew.hpp"

namespace ucg::tools {

/// The host of a virtual machine moves its CPUs: a line that took 36 ns takes 185 ns for the next
/// seconds, and all else changes with it. A round counts if lines before and after it took at most
/// this many times what they took in the best round,
inline constexpr double kSteady = 1.3;
/// and at most this many times what a line took between the same CPUs before the first of all
/// rounds, so that all figures of a profile belong to one state.
inline constexpr double kSameState = 2;
/// If fewer rounds are steady all of them count, and the result is marked as disturbed.
inline constexpr std::size_t kSteadyRoundsMin = 3;
/// More rounds would not move a median that is used with two digits.
inline constexpr std::size_t kRoundsMax = 200;

/// The time of a line around each round, in nanoseconds: the worse of before and after.
using Gates = std::vector<double>;

/// Returns how long lines may take around a round that counts. `line_ns` is the best time of a line
/// before the first round; 0 if it is not known. REQUIRES: gates is not empty.
inline double steady_limit(const Gates& gates, double line_ns) {
    const double limit = kSteady * *std::min_element(gates.begin(), gates.end());
    return line_ns > 0 ? std::min(limit, kSameState * line_ns) : limit;
}

inline std::size_t steady_rounds(const Gates& gates, double line_ns = 0) {
    if (gates.empty()) {
        return 0;
    }
    const double limit = steady_limit(gates, line_ns);
    return static_cast<std::size_t>(
        std::count_if(gates.begin(), gates.end(), [&](double gate) { return gate <= limit; }));
}

/// Returns the best of some short measurements of a line. It makes at least one and takes about a
/// millisecond at most: where others compete for the CPUs, each hand-over may wait for their time
/// slices to end.
inline double gate_ns(Driver& driver) {
    constexpr unsigned kMeasurements = 8;
    constexpr unsigned kTrips = 8; // 8 times 8 take 5 us.
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(1);
    double best_ns = driver.line_ns(kTrips);
    for (unsigned i = 1; i < kMeasurements && Clock::now() < end; ++i) {
        best_ns = std::min(best_ns, driver.line_ns(kTrips));
    }
    return best_ns;
}

/// Returns the best time of a line until `until`. If the CPUs are near at some time until then, it
/// is a time in that state.
inline double best_line_ns(Driver& driver, Clock::time_point until) {
    double best_ns = gate_ns(driver);
    while (Clock::now() < until) {
        best_ns = std::min(best_ns, gate_ns(driver));
    }
    return best_ns;
}

/// Returns the time of a line now. While it is longer than in the state of `line_ns`, waits for
/// that state until `deadline`.
inline double await_steady(Driver& driver, Clock::time_point deadline, double line_ns) {
    double now_ns = gate_ns(driver);
    while (line_ns > 0 && now_ns > kSameState * line_ns && Clock::now() < deadline) {
        now_ns = gate_ns(driver);
    }
    return now_ns;
}

/// Repeats `round(number)` until enough rounds were steady or time is out, three times at least. A
/// line is measured before and after each round and recorded with its number. `line_ns`: see
/// steady_limit().
template <typename Round>
Status run_rounds(Driver& driver, Clock::time_point deadline, double line_ns, Round round) {
    Gates gates;
    while (gates.size() < 3 ||
           (Clock::now() < deadline && steady_rounds(gates, line_ns) < kRoundsMax)) {
        const double before_ns = await_steady(driver, deadline, line_ns);
        const auto number = static_cast<std::uint32_t>(gates.size());
        if (Status status = round(number); !status.ok()) {
            return status;
        }
        const double after_ns = gate_ns(driver);
        driver.record({Series::line, 1, number, 0, before_ns});
        driver.record({Series::line, 1, number, 0, after_ns});
        gates.push_back(std::max(before_ns, after_ns));
    }
    return {};
}

} // namespace ucg::tools
