// Counts iterations and keeps their times, as ucx_perftest does: the clock is read after each
// iteration, and the difference to the reading before is that iteration's time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "perf/perftest/timer.hpp"

namespace ucg::perftest {

/// The counts of one run of a test. `times` holds the last kTimesMax iterations, in ticks.
class Recorder {
  public:
    /// The number of the last iterations whose times are kept for percentiles.
    static constexpr std::size_t kTimesMax = std::size_t{1} << 20;

    /// Makes a recorder for a run of `iterations` iterations. Allocates all memory that it will
    /// need.
    explicit Recorder(std::uint64_t iterations);

    /// Starts the clock: what follows is measured. Forgets what was counted before.
    void start();

    /// Makes update() call `report` whenever `interval` has passed since the start or since the
    /// last call of `report`, for results during a run.
    void report_each(Ticks interval, std::function<void()> report);

    bool done() const { return iterations_ >= wanted_; }
    std::uint64_t wanted() const { return wanted_; }

    /// Counts an iteration, or several of equal duration, which moved `bytes` bytes in all in
    /// `messages` messages.
    void update(std::uint64_t iterations, std::uint64_t bytes, std::uint64_t messages = 1) {
        count(read_unordered(), iterations, bytes, messages);
    }

    /// Counts an iteration that skip() preceded, and which has been executed, loads included, when
    /// the clock is read. `reading` is what such a reading takes; it is excluded.
    void update_alone(std::uint64_t bytes, Ticks reading) {
        const Ticks now = read_ordered();
        const Ticks excluded = std::min(reading, now - last_);
        first_ += excluded;
        last_ += excluded;
        count(now, 1, bytes, 1);
    }

    /// Excludes the time since the latest update: the next iteration begins now.
    void skip() {
        const Ticks now = read_ordered();
        first_ += now - last_;
        last_ = now;
    }

    /// Adds to the elapsed time what followed the latest update(), such as the completion of what
    /// was sent.
    void stop() { last_ = read_unordered(); }

    std::uint64_t iterations() const { return iterations_; }
    std::uint64_t bytes() const { return bytes_; }
    std::uint64_t messages() const { return messages_; }
    /// Returns the ticks from start() to stop(), or else to the latest update().
    Ticks elapsed() const { return last_ - first_; }
    /// Returns the same with what was skipped in between.
    Ticks elapsed_in_all() const { return last_ - started_; }
    /// Returns the time of each of the latest updates, oldest first.
    std::vector<Ticks> times() const;

  private:
    void count(Ticks now, std::uint64_t iterations, std::uint64_t bytes, std::uint64_t messages) {
        times_[next_] = now - last_;
        next_ = (next_ + 1) & (times_.size() - 1);
        last_ = now;
        iterations_ += iterations;
        bytes_ += bytes;
        messages_ += messages;
        ++updates_;
        if (now - reported_ >= interval_) [[unlikely]] {
            reported_ = now;
            report_();
        }
    }

    std::uint64_t wanted_;
    std::uint64_t iterations_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t messages_ = 0;
    std::uint64_t updates_ = 0;
    Ticks started_ = 0;
    Ticks first_ = 0;
    Ticks last_ = 0;
    std::size_t next_ = 0;
    Ticks reported_ = 0;
    Ticks interval_ = std::numeric_limits<Ticks>::max();
    std::function<void()> report_;
    std::vector<Ticks> times_; ///< A ring, of a power of two of times.
};

} // namespace ucg::perftest
