// Runs tests one after the other in the processes of a run, and prints and writes what they say.
#pragma once

#include "perf/perftest/options.hpp"
#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// What one process is to do; the same on all ranks but for `launcher` and `options.output`.
struct Session {
    Launcher launcher = Launcher::local; ///< Never automatic.
    Options options;
    std::vector<Job> jobs;
};

/// What became of a run.
struct Outcome {
    Status status;
    bool agreed = true; ///< Do all ranks know it alike?
};

/// Collective. A test that cannot run here is told and the next one follows; the first such failure
/// is returned in the end. A failure amid a test ends the run.
Outcome run_jobs(Runtime& runtime, const Session& session);

} // namespace ucg::perftest
