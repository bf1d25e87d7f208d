// The local launcher: it forks all processes of a run here, without MPI, and supervises them.
#pragma once

#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// The most processes that one launcher starts.
constexpr Rank kLocalRanksMax = 1024;

/// Forks `size` processes that each run `body`, waits until all have ended, and returns the exit
/// status for the caller's process. This process only supervises. When one of the processes fails
/// or is killed, it says on standard error which one and why, and ends the others; it also ends
/// them at Ctrl-C and other requests to end (the status is then 128 plus the signal's number). When
/// it dies itself, they die with it. A message that all ranks give alike is printed once.
///
/// Fails when processes or their connections cannot be made; then no process is left.
/// REQUIRES: no other threads; 1 <= size <= kLocalRanksMax.
Result<int> run_local(Rank size, const std::function<Status(Runtime&)>& body);

} // namespace ucg::perftest
