// Counts iterations and keeps their times, as ucx_perftest does: a reading of the clock after each
// iteration, whose distance to the one before is that iteration's time.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "perf/perftest/timer.hpp"

namespace ucg::perftest {

/// What one run of a test counted. `times` holds the last kTimesMax iterations, in ticks.
class Recorder {
  public:
    /// How many of the last iterations are kept for percentiles.
    static constexpr std::size_t kTimesMax = std::size_t{1} << 20;

    /// Allocates all that it will need: for a run of `iterations` iterations.
    explicit Recorder(std::uint64_t iterations);

    /// The clock starts: what follows is measured. Forgets what was counted.
    void start();

    /// Calls `report` from within update() when `interval` has passed since the start or since its
    /// last call; for results of a run that goes on.
    void report_each(Ticks interval, std::function<void()> report);

    bool done() const { return iterations_ >= wanted_; }
    std::uint64_t wanted() const { return wanted_; }

    /// Another iteration, or several of which each took as long, has moved `bytes` bytes in all in
    /// `messages` messages.
    void update(std::uint64_t iterations, std::uint64_t bytes, std::uint64_t messages = 1) {
        const Ticks now = read_unordered();
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

    /// What has passed since the latest update is not measured: the next iteration begins now.
    void skip() {
        const Ticks now = read_unordered();
        first_ += now - last_;
        last_ = now;
    }

    /// What followed the latest update(), such as the completion of what was sent, belongs to the
    /// elapsed time, too.
    void stop() { last_ = read_unordered(); }

    std::uint64_t iterations() const { return iterations_; }
    std::uint64_t bytes() const { return bytes_; }
    std::uint64_t messages() const { return messages_; }
    /// From start() to stop(), or else to the latest update().
    Ticks elapsed() const { return last_ - first_; }
    /// One for each of the latest updates: in their order, the eldest first.
    std::vector<Ticks> times() const;

  private:
    std::uint64_t wanted_;
    std::uint64_t iterations_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t messages_ = 0;
    std::uint64_t updates_ = 0;
    Ticks first_ = 0;
    Ticks last_ = 0;
    std::size_t next_ = 0;
    Ticks reported_ = 0;
    Ticks interval_ = std::numeric_limits<Ticks>::max();
    std::function<void()> report_;
    std::vector<Ticks> times_; ///< A power of two of them, a ring.
};

} // namespace ucg::perftest
