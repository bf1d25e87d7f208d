// Measures one test: warm-up, number of iterations, the run itself and its statistics.
#pragma once

#include "perf/perftest/collectives/board.hpp"
#include "perf/perftest/collectives/host_links.hpp"
#include "perf/perftest/report.hpp"

namespace ucg::perftest {

/// Warms up as ucx_perftest does: 1, 2, 4, ... iterations until `parameters.warmup` have run or 100
/// ms have passed. Returns the time of an iteration in the last round, of the slowest rank, with
/// what is not timed before it, in seconds; 0 if there was no iteration. Collective.
Result<double> warm_up(Runtime& runtime, Test& test, const Parameters& parameters);

/// Returns how many iterations to run when one takes `seconds`, what is not timed before it
/// included; the same on all ranks. Collective.
Result<std::uint64_t> iterations_for(Runtime& runtime, Test& test, const Parameters& parameters,
                                     double seconds);

/// Runs as many iterations as the recorder wants. Collective.
Status measure(Runtime& runtime, Test& test, Recorder& recorder);

/// What results of collectives are compared with: memory, or the links between hosts. Both are null
/// where ranks are on one host and share no memory.
struct Yardsticks {
    std::unique_ptr<Board> board;
    std::unique_ptr<HostConnections> links;

    /// Returns the round trip in seconds; 0 where there is nothing to measure. Collective.
    Result<double> round_trip() const;
};

/// Returns the row of a collective test that was measured. `round_trip` is what
/// Yardsticks::round_trip() returned before the run. Collective.
Result<CollectiveRow> collective_row(Runtime& runtime, const Yardsticks& yardsticks,
                                     double round_trip, const Parameters& parameters,
                                     const Recorder& recorder);

} // namespace ucg::perftest
