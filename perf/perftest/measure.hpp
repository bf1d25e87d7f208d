// One test, measured: warm-up, number of iterations, the run itself and its statistics.
#pragma once

#include "perf/perftest/collectives/board.hpp"
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

/// The row of a collective test that was measured. `board` is null where ranks share no memory;
/// else `round_trip` is what Board::round_trip() gave before the run. Collective.
Result<CollectiveRow> collective_row(Runtime& runtime, Board* board, double round_trip,
                                     const Parameters& parameters, const Recorder& recorder);

} // namespace ucg::perftest
