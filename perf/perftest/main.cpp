// ucg_perftest: measures primitives of UCX between two processes, as ucx_perftest does, and
// collectives of UCG on any number of them.
#include <sched.h>

#include "perf/perftest/run.hpp"
#include "perf/perftest/runtime_local.hpp"
#include "ucg_coll/base/printable.hpp"

namespace ucg::perftest {

namespace {

void warn(const std::string& text) {
    std::fprintf(stderr, "ucg_perftest: warning: %s\n",
                 printable(text, LineBreaks::escape).c_str());
}

Status bind_to(const std::vector<std::uint32_t>& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::uint32_t cpu : cpus) {
        CPU_SET(cpu, &set);
    }
    if (!cpus.empty() && ::sched_setaffinity(0, sizeof(set), &set) != 0) {
        return failure(Code::io_error, "-c: cannot bind to the CPUs: {}", std::strerror(errno));
    }
    return {};
}

Result<Session> session_of(const Options& options, Launcher launcher) {
    const Result<Files> files = read_batch_files(options);
    if (!files.ok()) {
        return files.status();
    }
    const Result<std::vector<Job>> jobs = expand_jobs(options, *files);
    if (!jobs.ok()) {
        return jobs.status();
    }
    for (const std::string& sentence : idle_options(*jobs, options.request)) {
        warn(sentence);
    }
    return Session{launcher, options, *jobs};
}

Result<int> start_local(const Options& options) {
    const Result<Session> session = session_of(options, Launcher::local);
    if (!session.ok()) {
        return session.status();
    }
    const bool loops = session->jobs.front().parameters.loopback;
    return run_local(options.processes.value_or(loops ? 1 : 2), [&](Runtime& runtime) -> Status {
        const std::vector<std::uint32_t>& cpus = options.cpus;
        if (!cpus.empty()) {
            const auto turn = static_cast<std::size_t>(runtime.rank()) % cpus.size();
            if (Status status = bind_to({cpus[turn]}); !status.ok()) {
                return status;
            }
        }
        return run_jobs(runtime, *session);
    });
}

} // namespace

} // namespace ucg::perftest

int main(int argc, char** argv) {
    using namespace ucg;
    CLI::App app("Measures primitives of UCX between two processes, as ucx_perftest does, and "
                 "collectives of UCG on any number of them",
                 "ucg_perftest");
    perftest::Options options;
    perftest::add_options(app, options);
    int status = tools::kExitOk;
    const int parsed = tools::run(app, argc, argv, [&]() -> Status {
        const Result<int> done = perftest::start_local(options);
        if (done.ok()) {
            status = *done;
        }
        return done.status();
    });
    return parsed != tools::kExitOk ? parsed : status;
}
