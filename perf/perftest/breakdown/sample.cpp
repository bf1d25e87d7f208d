#include "perf/perftest/breakdown/sample.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ucg_coll/base/assert.hpp"

namespace ucg::perftest::breakdown {

namespace {

constexpr std::size_t kCalibrations = 500;

int nothing() {
    return 0;
}

double deviation_of(const std::vector<double>& values) {
    if (values.size() < 2) {
        return 0;
    }
    const auto count = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    double squares = 0;
    for (const double value : values) {
        squares += (value - mean) * (value - mean);
    }
    return std::sqrt(squares / (count - 1));
}

} // namespace

double undisturbed_mean_ns(std::vector<Ticks> times) {
    UCG_ASSERT(!times.empty());
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    const Ticks limit = 10 * *middle;
    double sum = 0;
    std::size_t count = 0;
    for (const Ticks time : times) {
        if (time <= limit) {
            sum += static_cast<double>(time);
            ++count;
        }
    }
    return sum / static_cast<double>(count) * 1e9 / ticks_per_second();
}

double median_of(std::vector<double> values) {
    UCG_ASSERT(!values.empty());
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) {
        return *middle;
    }
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

void Stopwatch::calibrate() {
    int (*volatile empty)() = nothing; // A pointer, as UCT calls its functions.
    overhead_ns_ = 0;
    constexpr unsigned kStream = 1000;
    std::vector<Ticks> streams;
    for (int i = 0; i < 5; ++i) {
        const Ticks before = read_ordered();
        for (unsigned k = 0; k < kStream; ++k) {
            empty();
        }
        streams.push_back(read_ordered() - before);
    }
    call_ns_ = undisturbed_mean_ns(std::move(streams)) / kStream;
    std::vector<Ticks> wrapped;
    wrapped.reserve(kCalibrations);
    for (std::size_t i = 0; i < kCalibrations; ++i) {
        time([&] { return empty(); });
        wrapped.push_back(latest_);
    }
    overhead_ns_ = undisturbed_mean_ns(std::move(wrapped)) - call_ns_;
}

void Rounds::add(const std::string& name, double mean_ns, std::uint64_t samples) {
    Series& series = series_[name];
    series.means.push_back(mean_ns);
    series.samples += samples;
}

std::size_t Rounds::keep_like(const std::string& name) {
    constexpr double kFactor = 1.5;
    const auto found = series_.find(name);
    if (found == series_.end()) {
        return 0;
    }
    const std::vector<double> guide = found->second.means;
    // A value that occurred: if half of the rounds are in either of two states, no round is like
    // their mean.
    std::vector<double> sorted = guide;
    const auto place = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), place, sorted.end());
    const double middle = *place;
    std::size_t left = 0;
    for (auto& [key, series] : series_) {
        if (series.means.size() != guide.size()) {
            continue; // It was not measured in each round.
        }
        std::vector<double> kept;
        for (std::size_t i = 0; i < guide.size(); ++i) {
            if (guide[i] < kFactor * middle && middle < kFactor * guide[i]) {
                kept.push_back(series.means[i]);
            }
        }
        left = kept.size();
        series.samples = series.samples * left / guide.size();
        series.means = std::move(kept);
    }
    return left;
}

Component Rounds::summary(const Series& series, std::string name, Category category,
                          std::string note) {
    return {std::move(name), category,       median_of(series.means), deviation_of(series.means),
            series.samples,  std::move(note)};
}

Component Rounds::component(const std::string& name, Category category, std::string note) const {
    const auto found = series_.find(name);
    UCG_ASSERT(found != series_.end());
    return summary(found->second, name, category, std::move(note));
}

Component Rounds::difference(const std::string& more, const std::string& less, std::string name,
                             Category category, std::string note) const {
    const auto first = series_.find(more);
    const auto second = series_.find(less);
    UCG_ASSERT(first != series_.end() && second != series_.end());
    Series result;
    result.samples = std::min(first->second.samples, second->second.samples);
    const std::size_t rounds = std::min(first->second.means.size(), second->second.means.size());
    for (std::size_t i = 0; i < rounds; ++i) {
        result.means.push_back(first->second.means[i] - second->second.means[i]);
    }
    Component component = summary(result, std::move(name), category, std::move(note));
    component.ns = std::max(component.ns, 0.0);
    return component;
}

} // namespace ucg::perftest::breakdown
