// ucg_perftest: measures primitives of UCX between two processes, as ucx_perftest does, and
// collectives of UCG on any number of them.
#include <cstring>
#include <sched.h>

#include <nlohmann/json.hpp>

#include "perf/perftest/breakdown/breakdown.hpp"
#include "perf/perftest/launch/runtime_local.hpp"
#include "perf/perftest/launch/runtime_pmix.hpp"
#include "perf/perftest/launch/runtime_socket.hpp"
#include "perf/perftest/run.hpp"
#include "tools/cli.hpp"
#include "ucg_coll/base/printable.hpp"

namespace ucg::perftest {

namespace {

void tell(std::string_view text) {
    std::fprintf(stderr, "ucg_perftest: %s\n", printable(text, LineBreaks::escape).c_str());
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

Status check_usage(const ProgramOptions& options, Launcher launcher) {
    const auto wrong = [](std::string_view sentence) {
        return failure(Code::invalid_argument, "{}", sentence);
    };
    const bool is_client = !options.server.empty();
    if (is_client && options.request.parameters.loopback) {
        return wrong("conflicting arguments: HOST is not allowed in loopback (-l) mode");
    }
    if (is_client && launcher != Launcher::socket) {
        return failure(Code::invalid_argument, "HOST is of --launcher socket, not of {}",
                       name(launcher));
    }
    if (options.processes && (is_client || launcher == Launcher::pmix)) {
        return is_client
                   ? failure(Code::invalid_argument,
                             "--np is the server's, and '{}' makes this a client of a server on "
                             "that host",
                             options.server)
                   : wrong("--np is not for a job that another launcher has started");
    }
    if (launcher == Launcher::socket && options.processes.value_or(2) < 2) {
        return wrong("--np: a server and its clients are at least 2");
    }
    const bool is_server = launcher == Launcher::socket && !is_client;
    if (!is_server && options.request.parameters.test.empty() && options.batch_files.empty()) {
        return wrong("missing test name (-t); --help lists them");
    }
    return {};
}

Launcher chosen_launcher(const ProgramOptions& options) {
    if (options.launcher != Launcher::automatic) {
        return options.launcher;
    }
    if (!options.server.empty()) {
        return Launcher::socket;
    }
    if (options.processes) {
        return Launcher::local;
    }
    if (pmix_is_there()) {
        return Launcher::pmix;
    }
    return options.request.parameters.loopback ? Launcher::local : Launcher::socket;
}

Result<Session> session_of(const ProgramOptions& options, Launcher launcher, const Files& files) {
    const Result<std::vector<Job>> jobs = expand_jobs(options, files);
    if (!jobs.ok()) {
        return jobs.status();
    }
    return Session{launcher, options, *jobs};
}

/// Returns the session of options that were read in this process, with the files that they name.
Result<Session> own_session(const ProgramOptions& options, Launcher launcher) {
    const Result<Files> files = read_batch_files(options);
    if (!files.ok()) {
        return files.status();
    }
    Result<Session> session = session_of(options, launcher, *files);
    if (session.ok()) {
        for (const std::string& sentence : idle_options(session->jobs, options.request)) {
            tell("warning: " + sentence);
        }
    }
    return session;
}

int start_local(const ProgramOptions& options, const Session& session, Status& status) {
    const bool loops = session.jobs.front().parameters.loopback;
    const auto body = [&](Runtime& runtime) -> Status {
        const std::vector<std::uint32_t>& cpus = options.cpus;
        if (!cpus.empty()) {
            const auto turn = static_cast<std::size_t>(runtime.rank()) % cpus.size();
            if (Status bound = bind_to({cpus[turn]}); !bound.ok()) {
                return bound;
            }
        }
        return run_jobs(runtime, session).status;
    };
    const Result<int> done = run_local(options.processes.value_or(loops ? 1 : 2), body);
    status = done.status();
    return done.ok() ? *done : tools::kExitFailed;
}

/// Returns what the first client gives the others: its command line and its batch files, which they
/// read again.
std::string pack_request(const std::vector<std::string>& words, const Files& files) {
    return nlohmann::json{{"words", words}, {"files", files}}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Session> session_of_request(const std::string& request, const OutputOptions& output) {
    const nlohmann::json json = nlohmann::json::parse(request, nullptr, false);
    if (!json.is_object()) {
        return failure(Code::disagreement, "the first client's request cannot be read");
    }
    std::vector<const char*> arguments = {"ucg_perftest"};
    const auto words = json.at("words").get<std::vector<std::string>>();
    for (const std::string& word : words) {
        arguments.push_back(word.c_str());
    }
    CLI::App app("", "ucg_perftest");
    ProgramOptions options;
    add_options(app, options);
    try {
        app.parse(static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::ParseError& error) {
        return failure(Code::disagreement, "the first client's options cannot be read here: {}",
                       error.what());
    }
    options.output = output;
    return session_of(options, Launcher::socket, json.at("files").get<Files>());
}

Status start_by_socket(const ProgramOptions& options, const std::vector<std::string>& words) {
    const SocketPlace place{options.server, options.port, options.ipv6};
    Files files;
    if (!options.server.empty()) { // Errors in the request are reported before anybody waits.
        const Result<Session> own = own_session(options, Launcher::socket);
        const Result<Files> read = read_batch_files(options);
        if (!own.ok() || !read.ok()) {
            return own.ok() ? read.status() : own.status();
        }
        files = *read;
    }
    const Result<std::unique_ptr<SocketRuntime>> runtime =
        options.server.empty() ? serve(place, options.processes.value_or(2)) : connect(place);
    if (!runtime.ok()) {
        return runtime.status();
    }
    const Result<std::vector<std::string>> requests =
        (*runtime)->Runtime::exchange((*runtime)->rank() == 1 ? pack_request(words, files) : "");
    if (!requests.ok()) {
        return requests.status();
    }
    const Result<Session> session = session_of_request((*requests)[1], options.output);
    if (!session.ok()) {
        return session.status();
    }
    const Status status = run_jobs(**runtime, *session).status;
    const Status parted = (*runtime)->farewell();
    return status.ok() ? parted : status;
}

/// Runs the session. A failure that all ranks know is printed by rank 0 alone; `told` is then set.
Status start_by_pmix(const Session& session, bool& told) {
    const Result<std::unique_ptr<Runtime>> runtime = join_by_pmix();
    if (!runtime.ok()) {
        return runtime.status();
    }
    RunOutcome outcome = run_jobs(**runtime, session);
    told = outcome.agreed && !outcome.status.ok();
    if (told && (*runtime)->rank() == 0) {
        tell(outcome.status.message());
    }
    // A process that fails makes the launcher end the others: rank 0 must have printed before.
    const Status left = told ? (*runtime)->barrier() : Status();
    return left.ok() ? outcome.status : left;
}

/// Returns the exit status. `status` becomes the failure to print.
int start(const ProgramOptions& options, const std::vector<std::string>& words, Status& status) {
    const Launcher launcher = chosen_launcher(options);
    if (status = check_usage(options, launcher); !status.ok()) {
        return tools::kExitUsage;
    }
    if (launcher != Launcher::local) {
        if (status = bind_to(options.cpus); !status.ok()) {
            return tools::kExitFailed;
        }
    }
    if (launcher == Launcher::socket) {
        status = start_by_socket(options, words);
        return status.ok() ? tools::kExitOk : tools::kExitFailed;
    }
    const Result<Session> session = own_session(options, launcher);
    if (!session.ok()) {
        status = session.status();
        return tools::kExitFailed;
    }
    if (launcher == Launcher::local) {
        if (status = tools::check_output(options.output.json); !status.ok()) {
            return tools::kExitFailed;
        }
        return start_local(options, *session, status);
    }
    bool told = false;
    status = start_by_pmix(*session, told);
    const int result = status.ok() ? tools::kExitOk : tools::kExitFailed;
    status = told ? Status() : status;
    return result;
}

} // namespace

} // namespace ucg::perftest

int main(int argc, char** argv) {
    using namespace ucg;
    if (argc > 1 && std::string_view(argv[1]) == "breakdown") {
        return perftest::breakdown_main(argc - 1, argv + 1);
    }
    if (argc > 1 && std::string_view(argv[1]) == "what-if") {
        return perftest::what_if_main(argc - 1, argv + 1);
    }
    CLI::App app("Measures primitives of UCX between two processes, as ucx_perftest does, and "
                 "collectives of UCG on any number of them",
                 "ucg_perftest");
    perftest::ProgramOptions options;
    perftest::add_options(app, options);
    int result = tools::kExitOk;
    const int parsed = tools::run(app, argc, argv, [&] {
        Status status;
        result = perftest::start(options, {argv + 1, argv + argc}, status);
        return status;
    });
    return parsed == tools::kExitOk || result != tools::kExitOk ? result : parsed;
}
