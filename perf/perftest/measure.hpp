// One test, measured: warm-up, number of iterations, the run itself and its statistics.
#pragma once

#include "perf/perftest/collectives/board.hpp"
#include "perf/perftest/collectives/host_links.hpp"
#include "perf/perftest/report.hpp"

namespace ucg::perftest {

/// As ucx_perftest: 1, 2, 4, ... iterations until there were `parameters.warmup` or 100 ms have
/// passed. Returns the time of an iteration in the last round, of the slowest rank, in seconds; 0
/// without any. Collective.
Result<double> warm_up(Runtime& runtime, Test& test, const Parameters& parameters);

/// How many iterations to run when one takes `seconds`. Collective, the same on all ranks.
Result<std::uint64_t> iterations_for(Runtime& runtime, Test& test, const Parameters& parameters,
                                     double seconds);

/// Runs them. Collective.
Status measure(Runtime& runtime, Test& test, Recorder& recorder);

/// What the results of collectives are set beside: memory, or the ways between hosts. Both null
/// where ranks share a host and no memory.
struct Yardsticks {
    std::unique_ptr<Board> board;
    std::unique_ptr<HostLinks> links;

    /// In seconds; 0 where there is nothing to measure. Collective.
    Result<double> round_trip() const;
};

/// The row of a collective test that was measured. `round_trip` is what Yardsticks::round_trip()
/// gave before the run. Collective.
Result<CollectiveRow> collective_row(Runtime& runtime, const Yardsticks& yardsticks,
                                     double round_trip, const Parameters& parameters,
                                     const Recorder& recorder);

} // namespace ucg::perftest
