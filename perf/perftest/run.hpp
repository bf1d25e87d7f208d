// Runs tests one after the other in the processes of a run, and prints and writes their results.
#pragma once

#include "perf/perftest/options.hpp"
#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// The work of one process; the same on all ranks but for `launcher` and `options.output`.
struct Session {
    Launcher launcher = Launcher::local; ///< Never automatic.
    ProgramOptions options;
    std::vector<Job> jobs;
};

/// The outcome of a run.
struct RunOutcome {
    Status status;
    bool agreed = true; ///< Whether all ranks know `status`.
};

/// Runs the jobs. A test that cannot run here is reported and the next one follows; the first such
/// failure is returned at the end. A failure during a test ends the run. Collective.
RunOutcome run_jobs(Runtime& runtime, const Session& session);

} // namespace ucg::perftest
