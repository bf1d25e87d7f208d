#include "perf/perftest/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ucg::perftest {

namespace {

double ratio(double dividend, double divisor) {
    return divisor > 0 ? dividend / divisor : 0;
}

std::size_t index_of(double percent, std::size_t count) {
    return static_cast<std::size_t>(static_cast<double>(count - 1) * percent / 100);
}

} // namespace

double percentile(std::vector<double>& values, double percent) {
    UCG_ASSERT(!values.empty() && percent >= 0 && percent <= 100);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(index_of(percent, values.size()));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

Summary summarize(std::vector<double> values, double percent) {
    UCG_ASSERT(!values.empty());
    std::ranges::sort(values);
    const auto at = [&values](double wanted) { return values[index_of(wanted, values.size())]; };
    Summary summary;
    summary.least = values.front();
    summary.asked = at(percent);
    summary.p95 = at(95);
    summary.p99 = at(99);
    summary.most = values.back();
    const auto count = static_cast<double>(values.size());
    summary.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    double squares = 0;
    for (const double value : values) {
        squares += (value - summary.mean) * (value - summary.mean);
    }
    summary.deviation = std::sqrt(ratio(squares, count - 1));
    return summary;
}

Counted counted(const Recorder& recorder) {
    return {recorder.iterations(), recorder.bytes(), recorder.messages(),
            nanoseconds(recorder.elapsed()) * 1e-9};
}

PrimitiveRow primitive_row(const Recorder& recorder, const Counted& before, TestKind kind,
                           double percent) {
    // An iteration of a ping-pong is two messages, of which each process counts only its own.
    const double factor = kind == TestKind::ping_pong ? 2 : 1;
    const Counted now = counted(recorder);
    const double since = now.seconds - before.seconds;
    const auto grown = [](std::uint64_t later, std::uint64_t earlier) {
        return static_cast<double>(later - earlier);
    };
    PrimitiveRow row;
    row.iterations = now.iterations;
    std::vector<double> times;
    for (const Ticks ticks : recorder.times()) {
        times.push_back(static_cast<double>(ticks));
    }
    if (!times.empty()) {
        row.percentile = percentile(times, percent) / ticks_per_second() / factor;
    }
    row.average = ratio(since, grown(now.iterations, before.iterations)) / factor;
    row.overall = ratio(now.seconds, static_cast<double>(now.iterations)) / factor;
    row.average_bandwidth = ratio(grown(now.bytes, before.bytes), since) * factor;
    row.overall_bandwidth = ratio(static_cast<double>(now.bytes), now.seconds) * factor;
    row.average_rate = ratio(grown(now.messages, before.messages), since) * factor;
    row.overall_rate = ratio(static_cast<double>(now.messages), now.seconds) * factor;
    return row;
}

} // namespace ucg::perftest
