// Statistics of many times: percentiles, and what ucx_perftest derives from its counters.
#pragma once

#include <vector>

#include "perf/perftest/recorder.hpp"
#include "perf/perftest/test.hpp"

namespace ucg::perftest {

/// Returns the value that `percent` per cent of `values` do not exceed, by ucx_perftest's rule: the
/// element at index floor((count - 1) * percent / 100) in rising order. Reorders `values`.
/// REQUIRES: values is not empty.
double percentile(std::vector<double>& values, double percent);

/// Statistics of the times of one test, in seconds.
struct Summary {
    double least = 0;
    double asked = 0; ///< The percentile that -R names.
    double p95 = 0;
    double p99 = 0;
    double most = 0;
    double mean = 0;
    double deviation = 0; ///< Standard deviation.
};

/// Returns the statistics; `percent` is the percentile for `asked`. REQUIRES: values is not empty.
Summary summarize(std::vector<double> values, double percent);

/// The counters of a recorder at one moment.
struct Counted {
    std::uint64_t iterations = 0;
    std::uint64_t bytes = 0;
    std::uint64_t messages = 0;
    double seconds = 0;
};
Counted counted(const Recorder& recorder);

/// One line of ucx_perftest's table: seconds, bytes per second, messages per second. "Average" is
/// since the previous line, "overall" since the start.
struct PrimitiveRow {
    std::uint64_t iterations = 0;
    double percentile = 0;
    double average = 0;
    double overall = 0;
    double average_bandwidth = 0;
    double overall_bandwidth = 0;
    double average_rate = 0;
    double overall_rate = 0;
};

/// Returns the row. `before` are the counters at the previous line.
PrimitiveRow primitive_row(const Recorder& recorder, const Counted& before, TestKind kind,
                           double percent);

} // namespace ucg::perftest
