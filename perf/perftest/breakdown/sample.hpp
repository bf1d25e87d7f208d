// How a component is timed: a reading of the clock before and after it, many times in a round, in
// alternation with all other components over many rounds. While one component is timed no other is.
//
// The cost of reading is subtracted from each time: that of a timed call of an empty function, less
// what that call costs in a stream of such calls. So the subtracted time includes not only the
// clock but also the overlap that the clock's fences prevent.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "perf/perftest/breakdown/model.hpp"
#include "perf/perftest/timer.hpp"

namespace ucg::perftest::breakdown {

/// Returns the mean in nanoseconds without interruptions, which are times above ten times the
/// median. REQUIRES: times is not empty.
double undisturbed_mean_ns(std::vector<Ticks> times);

double median_of(std::vector<double> values);

/// The number of calls that are timed together where a single one is shorter than the clock's
/// steps.
inline constexpr unsigned kWindow = 64;

/// Times calls on one process. Nothing is allocated between two readings.
class Stopwatch {
  public:
    explicit Stopwatch(std::size_t samples) { times_.reserve(samples); }

    /// Measures again what timing an empty call costs. To be called once in each round.
    void calibrate();
    double overhead_ns() const { return overhead_ns_; }
    /// Returns the time of a call of an empty function through a pointer, in a stream of such
    /// calls.
    double call_ns() const { return call_ns_; }

    void clear() { times_.clear(); }
    std::size_t size() const { return times_.size(); }

    /// Times one call and returns its result.
    template <typename Call>
    auto time(Call call) {
        const Ticks before = read_ordered();
        auto result = call();
        const Ticks after = read_ordered();
        latest_ = after - before;
        return result;
    }
    /// Adds the latest time of time() to those that count. It is dropped if the capacity is used
    /// up.
    void keep() {
        if (times_.size() < times_.capacity()) {
            times_.push_back(latest_);
        }
    }

    /// Returns the mean time of a call, where `calls` calls were timed together each time.
    double mean_ns(unsigned calls = 1) const {
        return (undisturbed_mean_ns(times_) - overhead_ns_) / calls;
    }

    /// Returns the mean time of a call in kWindow successive calls, which are timed `samples`
    /// times.
    template <typename Call>
    double window_ns(std::size_t samples, Call call) {
        clear();
        for (std::size_t i = 0; i < samples; ++i) {
            time([&] {
                for (unsigned k = 0; k < kWindow; ++k) {
                    call();
                }
                return 0;
            });
            keep();
        }
        return mean_ns(kWindow);
    }

  private:
    std::vector<Ticks> times_;
    Ticks latest_ = 0;
    double overhead_ns_ = 0;
    double call_ns_ = 0;
};

/// The results of the rounds, by component.
class Rounds {
  public:
    void add(const std::string& name, double mean_ns, std::uint64_t samples);
    bool has(const std::string& name) const { return series_.contains(name); }
    /// Drops the rounds in which `name` took much more or less time than in the median round: cloud
    /// machines move their processors, and then the figures of one round do not fit those of
    /// another. Returns how many rounds are left. Does nothing where `name` was not measured.
    std::size_t keep_like(const std::string& name);
    /// Returns what was measured under `name`. REQUIRES: has(name).
    Component component(const std::string& name, Category category, std::string note = {}) const;
    /// Returns the difference of two components, round by round, as a component that is not timed
    /// by itself; not below 0.
    Component difference(const std::string& more, const std::string& less, std::string name,
                         Category category, std::string note = {}) const;

  private:
    struct Series {
        std::vector<double> means;
        std::uint64_t samples = 0;
    };
    static Component summary(const Series& series, std::string name, Category category,
                             std::string note);
    std::map<std::string, Series> series_;
};

} // namespace ucg::perftest::breakdown
