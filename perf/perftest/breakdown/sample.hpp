// How a component is timed: a reading of the clock before and after it, many times in a round, in
// alternation with all other components over many rounds. While one is timed no other is.
//
// From each reading goes what reading itself costs: a wrapped call of an empty function, less what
// that call costs in a stream of such calls. So what is subtracted holds what the fences of the
// clock keep the processor from overlapping, besides the clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "perf/perftest/breakdown/model.hpp"
#include "perf/perftest/timer.hpp"

namespace ucg::perftest::breakdown {

/// The mean of what an undisturbed processor shows, in nanoseconds: times above ten times the
/// median are interruptions. REQUIRES: not empty.
double undisturbed_mean_ns(std::vector<Ticks> times);

double median_of(std::vector<double> values);

/// A fixed number of calls is timed together where one alone is shorter than the clock's steps.
inline constexpr unsigned kWindow = 64;

/// Times calls on one process. Nothing is allocated between two readings.
class Stopwatch {
  public:
    explicit Stopwatch(std::size_t samples) { times_.reserve(samples); }

    /// Measures anew what a wrapped call of nothing costs; to be called once in each round.
    void calibrate();
    double overhead_ns() const { return overhead_ns_; }
    /// An empty function through a pointer, in a stream.
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
    /// Takes what time() has found into account. Where the capacity is used up it is left out.
    void keep() {
        if (times_.size() < times_.capacity()) {
            times_.push_back(latest_);
        }
    }

    /// `calls` of them were timed together each time.
    double mean_ns(unsigned calls = 1) const {
        return (undisturbed_mean_ns(times_) - overhead_ns_) / calls;
    }

    /// The mean of kWindow successive calls, timed `samples` times.
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

/// What the rounds have found, by component.
class Rounds {
  public:
    void add(const std::string& name, double mean_ns, std::uint64_t samples);
    bool has(const std::string& name) const { return series_.contains(name); }
    /// Leaves out the rounds in which `name` took much more or less time than in the middle one:
    /// machines of a cloud move processors about, and one round's figures do not fit another's
    /// then. Returns how many are left; nothing happens where `name` was not measured.
    std::size_t keep_like(const std::string& name);
    /// REQUIRES: has(name).
    Component component(const std::string& name, Category category, std::string note = {}) const;
    /// The same of what is no time of its own but a difference of two, round by round; not below 0.
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
