// Memory that all processes of a run on one host share. It serves a barrier for a common start, and
// measurements of what the machine can do at best, a cache line to and fro and copies, with which
// results are compared.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "perf/perftest/runtime.hpp"
#include "perf/perftest/timer.hpp"
#include "shm/segment.hpp"

namespace ucg::perftest {

/// Returns how long before the common start of `size` ranks it is said when that is, in seconds:
/// the time in which the last arrival becomes known to every rank, one after the other, by the
/// least round trip of a cache line; at most some microseconds.
double start_lead(double round_trip, Rank size);

class Board {
  public:
    /// Makes the shared memory. Collective. The result is null, on all ranks, when the ranks are
    /// not all on one host; that is no failure.
    static Result<std::unique_ptr<Board>> create(Runtime& runtime);

    /// Returns whether ranks outnumber the processors that they may use. If so, a rank that waits
    /// yields.
    bool yields() const { return yields_; }

    /// Returns when all ranks have called it. Every thousandth poll calls `progress`, if there is
    /// one, since peers may need it to finish what precedes the barrier.
    void barrier(const std::function<void()>& progress = {});

    /// A barrier that returns on all ranks at the same moment of their common clock. Where ranks
    /// outnumber processors, or their clocks are found to differ, it is a plain barrier.
    void start_together(const std::function<void()>& progress);

    /// Returns the median time for a cache line to go from rank 0 to rank 1 and back, in seconds;
    /// the same on all ranks; 0 with one rank. Takes less than a millisecond where each rank has a
    /// processor. Collective.
    double round_trip();

    /// Returns the bytes per second that one rank copies out of its neighbour's memory while all
    /// ranks do so, in blocks of about `bytes` bytes that stay in the cache if they fit there. It
    /// is the median over some rounds, of the slowest rank. Collective.
    double copy_rate(std::uint64_t bytes);

    /// Returns for each index the longest time of all ranks. All ranks give equally many times.
    /// Collective.
    std::vector<float> slowest(const std::vector<float>& times);

  private:
    struct Shared;
    Board(Runtime& runtime, std::unique_ptr<shm::SharedSegment> segment, bool yields);

    void arrive(Ticks lead, const std::function<void()>& progress);
    bool clocks_agree();
    double slowest(double seconds);
    /// Returns the times of round trips on ranks 0 and 1, in seconds; none on other ranks.
    std::vector<double> round_trips();

    Rank rank_;
    Rank size_;
    bool yields_;
    std::unique_ptr<shm::SharedSegment> segment_;
    Shared& shared_;
    Ticks lead_ = 0; ///< Ticks from the last arrival to the common start; 0: none.
};

} // namespace ucg::perftest
