// The local launcher: all processes of a run are forked here, without MPI, and supervised.
#pragma once

#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// The most processes that one launcher starts.
constexpr Rank kLocalRanksMax = 1024;

/// Forks `size` processes that each run `body`, waits until all have ended, and returns the exit
/// status that is right for the caller's process. This process only supervises: when one of them
/// fails or is killed, it says on standard error which one and why and ends the others; Ctrl-C and
/// other requests to end do so too (the status is 128 plus the signal's number then). When it dies
/// itself, they die with it. What all ranks say alike is printed once.
///
/// Fails when processes or their connections cannot be made; then none is left.
/// REQUIRES: no other threads; 1 <= size <= kLocalRanksMax.
Result<int> run_local(Rank size, const std::function<Status(Runtime&)>& body);

} // namespace ucg::perftest
