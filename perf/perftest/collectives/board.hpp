// Memory that all processes of a run on one host see: a barrier for a common start, and what the
// machine can do at all, a cache line to and fro and copies, beside which the results are set.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "perf/perftest/runtime.hpp"
#include "perf/perftest/timer.hpp"
#include "shm/segment.hpp"

namespace ucg::perftest {

class Board {
  public:
    /// Collective. Null, on all ranks, when the ranks are not all on one host; that is no failure.
    static Result<std::unique_ptr<Board>> create(Runtime& runtime);

    /// Do ranks outnumber the processors that they may use? Then who waits gives way.
    bool yields() const { return yields_; }

    /// Returns when all ranks have called it. Every thousandth poll calls `progress`, if there is
    /// one: peers may need it to leave what was before.
    void barrier(const std::function<void()>& progress = {});

    /// The same, and then on all ranks at one moment of their common clock. Where ranks outnumber
    /// processors, or their clocks are found to differ, it is a barrier.
    void start_together(const std::function<void()>& progress);

    /// The median time for a cache line to go from rank 0 to rank 1 and back, in seconds; the same
    /// on all ranks. Collective, takes less than a millisecond where each rank has a processor. 0
    /// when there is one rank.
    double round_trip();

    /// Bytes per second that one rank copies out of its neighbour's memory while all ranks do so,
    /// in blocks of about `bytes` bytes that stay in the cache if they fit there; the median over
    /// some rounds, of the slowest rank. Collective.
    double copy_rate(std::uint64_t bytes);

    /// Of as many times on each rank, all ranks' longest by index. Collective.
    std::vector<float> slowest(const std::vector<float>& times);

  private:
    struct Shared;
    Board(Runtime& runtime, std::unique_ptr<shm::Segment> segment, bool yields);

    void arrive(Ticks lead, const std::function<void()>& progress);
    bool clocks_agree();
    double slowest(double seconds);

    Rank rank_;
    Rank size_;
    bool yields_;
    std::unique_ptr<shm::Segment> segment_;
    Shared& shared_;
    Ticks lead_ = 0; ///< From the last arrival to the common start; 0: there is none.
};

} // namespace ucg::perftest
