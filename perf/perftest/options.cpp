#include "perf/perftest/options.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "perf/perftest/collectives/collective_data.hpp"
#include "perf/perftest/help.hpp"
#include "perf/perftest/launch/runtime_local.hpp"
#include "perf/perftest/test_options.hpp"
#include "tools/cli.hpp"
#include "topo/cpus.hpp"

namespace ucg::perftest {

namespace {

constexpr std::size_t kBatchFilesMax = 32; ///< As in ucx_perftest.

/// Parses a list such as "0,2,1", as ucx_perftest does.
std::vector<std::uint32_t> parse_cpus(const std::string& text) {
    std::vector<std::uint32_t> cpus;
    for (std::string word : split(text, ',')) {
        const std::string wrong = tools::whole_number(0, 1023)(word);
        if (!wrong.empty()) {
            throw CLI::ValidationError("-c", wrong);
        }
        cpus.push_back(static_cast<std::uint32_t>(std::stoul(word)));
    }
    const std::vector<std::uint32_t> usable = topo::usable_cpus();
    for (const std::uint32_t cpu : cpus) {
        if (std::ranges::find(usable, cpu) == usable.end()) {
            throw CLI::ValidationError(
                "-c", fmt::format("CPU {} cannot be used by this process; expected some of {}", cpu,
                                  topo::format_ranges(usable)));
        }
    }
    return cpus;
}

void add_launch_options(CLI::App& app, ProgramOptions& options) {
    app.add_option("HOST", options.server,
                   "Where a server waits: this process is its client and brings the test along")
        ->type_name("");
    app.add_option_function<Rank>(
           "--np", [&options](const Rank& count) { options.processes = count; },
           "Start so many processes on this host; with --launcher socket: how many the server "
           "waits for, itself included")
        ->type_name("N")
        ->transform(tools::whole_number(1, kLocalRanksMax))
        ->group("Processes");
    tools::add_choice_option(
        app, "--launcher", options.launcher,
        {Launcher::automatic, Launcher::local, Launcher::socket, Launcher::pmix},
        "Who makes the processes")
        ->group("Processes");
    app.add_option("-p,--port", options.port, "TCP port of the server (default: 13337)")
        ->type_name("N")
        ->transform(tools::whole_number(1, 65535))
        ->group("Processes");
    app.add_flag("-6,--ipv6", options.ipv6, "Find the server by IPv6")->group("Processes");
    app.add_option_function<std::string>(
           "-c,--cpus", [&options](const std::string& text) { options.cpus = parse_cpus(text); },
           "Bind to these CPUs, \"0,1\": each process of the local launcher to one of them by "
           "turns, any other to all of them")
        ->type_name("LIST")
        ->group("Processes");
}

void add_output_options(CLI::App& app, OutputOptions& output) {
    app.add_flag("-N,--thousands", output.thousands, "Separate thousands")->group("Output");
    app.add_flag("-f,--final", output.final_only, "Only final numbers, with the test's name")
        ->group("Output");
    app.add_flag("-v,--csv", output.csv, "Comma-separated values")->group("Output");
    app.add_flag("-I,--extra", output.extra,
                 "Further facts behind each row, such as the algorithm that serves (on a line of a "
                 "batch file -I is ucx_perftest's: a context of UCP that can sleep)")
        ->group("Output");
    app.add_option("--json", output.json,
                   "Write settings, machine, versions and the statistics of all tests; \"-\": to "
                   "standard output, and the table to standard error")
        ->type_name("FILE")
        ->group("Output");
}

Status unreadable(const std::string& file, int line, std::string_view what) {
    return failure(Code::invalid_argument, "in batch file '{}' line {}: {}", file, line, what);
}

/// Parses a line of a batch file: a name, and options that change `request`.
Status parse_line(const std::vector<std::string>& words, TestRequest& request) {
    CLI::App app("", words.front());
    app.set_help_flag();
    add_test_options(app, request, OptionsOf::batch_line);
    std::vector<const char*> arguments;
    arguments.reserve(words.size());
    for (const std::string& word : words) {
        arguments.push_back(word.c_str());
    }
    try {
        app.parse(static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::ParseError& error) {
        return Status(Code::invalid_argument, error.what());
    }
    if (request.parameters.test.empty()) {
        return Status(Code::invalid_argument, "missing test name (-t)");
    }
    return {};
}

void add_jobs(std::vector<Job>& jobs, const std::vector<std::string>& names,
              const TestRequest& request) {
    if (request.sweep.empty()) {
        jobs.push_back({names, request.parameters});
    }
    for (const std::size_t bytes : request.sweep) {
        Job job{names, request.parameters};
        job.parameters.sizes = {bytes};
        jobs.push_back(std::move(job));
    }
}

class BatchReader {
  public:
    BatchReader(const ProgramOptions& options, const Files& files)
        : options_(options), files_(files) {}

    Result<std::vector<Job>> read() {
        if (Status status = read_level(0, options_.request); !status.ok()) {
            return status;
        }
        return std::move(jobs_);
    }

  private:
    Status read_level(std::size_t depth, const TestRequest& parent) {
        if (depth == options_.batch_files.size()) {
            add_jobs(jobs_, names_, parent);
            return {};
        }
        const std::string& file = options_.batch_files[depth];
        int number = 0;
        for (const std::string& line : split(files_.at(file), '\n')) {
            ++number;
            const std::vector<std::string> words = words_of(line);
            if (words.empty() || words.front().starts_with('#')) {
                continue;
            }
            TestRequest request = parent;
            if (Status status = parse_line(words, request); !status.ok()) {
                return unreadable(file, number, status.message());
            }
            names_.push_back(words.front());
            Status status = read_level(depth + 1, request);
            names_.pop_back();
            if (!status.ok()) {
                return status;
            }
        }
        return {};
    }

    const ProgramOptions& options_;
    const Files& files_;
    std::vector<std::string> names_;
    std::vector<Job> jobs_;
};

/// An option, and which layers understand it.
struct LayerOption {
    const char* option;
    std::array<bool, 3> has; ///< Indexed by Layer.
};
constexpr auto kLayerOptions = std::to_array<LayerOption>({
    {"-d", {true, false, false}},         {"-x", {true, false, false}},
    {"-W", {true, false, false}},         {"-A", {true, false, false}},
    {"-D", {true, true, false}},          {"-H", {true, true, false}},
    {"-O", {true, true, false}},          {"-i", {true, true, false}},
    {"-l", {true, true, false}},          {"-o", {true, true, false}},
    {"-B", {true, true, false}},          {"-C", {false, true, false}},
    {"-U", {false, true, false}},         {"-r", {false, true, false}},
    {"-e", {false, true, false}},         {"-E", {false, true, false}},
    {"-z", {false, true, false}},         {"-T", {false, true, false}},
    {"-M", {false, true, false}},         {"--collective-algorithm", {false, false, true}},
    {"--buffers", {false, false, true}},  {"--op", {false, false, true}},
    {"--datatype", {false, false, true}}, {"--root", {false, false, true}},
    {"--in-place", {false, false, true}}, {"--mode", {false, false, true}},
    {"--time", {false, false, true}},
});

} // namespace

std::string_view name(Launcher launcher) {
    switch (launcher) {
    case Launcher::automatic: return "auto";
    case Launcher::local: return "local";
    case Launcher::socket: return "socket";
    case Launcher::pmix: break;
    }
    return "pmix";
}

Layer layer_of(const TestInfo& test) {
    if (test.kind == TestKind::collective) {
        return Layer::collective;
    }
    return test.description.starts_with("UCT") ? Layer::uct : Layer::ucp;
}

const TestInfo* find_test(std::string_view name) {
    for (const std::span<const TestInfo> tests : {primitive_tests(), collective_tests()}) {
        const auto found = std::ranges::find(tests, name, &TestInfo::name);
        if (found != tests.end()) {
            return &*found;
        }
    }
    return nullptr;
}

void add_options(CLI::App& app, ProgramOptions& options) {
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    add_launch_options(app, options);
    add_test_options(app, options.request, OptionsOf::command_line);
    app.add_option("-b,--batch", options.batch_files,
                   "Run the tests of a batch file: in each line a name and options of a test. "
                   "Given again: each line of the first with each line of the next")
        ->type_name("FILE")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->expected(1, static_cast<int>(kBatchFilesMax))
        ->allow_extra_args(false)
        ->group("Tests");
    add_output_options(app, options.output);
    app.get_help_ptr()->group("Output");
    app.footer(help_footer());
}

Result<Files> read_batch_files(const ProgramOptions& options) {
    Files files;
    for (const std::string& file : options.batch_files) {
        const Result<std::string> text = tools::read_input(file);
        if (!text.ok()) {
            return text.status();
        }
        files.emplace(file, *text);
    }
    return files;
}

Result<std::vector<Job>> expand_jobs(const ProgramOptions& options, const Files& files) {
    if (options.batch_files.empty() && options.request.parameters.test.empty()) {
        return failure(Code::invalid_argument, "missing test name (-t); --help lists them");
    }
    Result<std::vector<Job>> jobs = BatchReader(options, files).read();
    if (jobs.ok() && jobs->empty()) {
        return failure(Code::invalid_argument, "batch file '{}' has no test",
                       options.batch_files.front());
    }
    return jobs;
}

std::vector<std::string> idle_options(const std::vector<Job>& jobs, const TestRequest& request) {
    static constexpr std::array<std::string_view, 3> kLayers = {"UCT", "UCP", "collective"};
    std::vector<std::string> sentences;
    for (const LayerOption& row : kLayerOptions) {
        if (!request.given.contains(row.option)) {
            continue;
        }
        for (const Job& job : jobs) {
            const Layer layer = layer_of(*find_test(job.parameters.test));
            if (!row.has[static_cast<std::size_t>(layer)]) {
                sentences.push_back(
                    fmt::format("{} is ignored by {}, a {} test{}", row.option, job.parameters.test,
                                kLayers[static_cast<std::size_t>(layer)],
                                layer == Layer::ucp && (row.option == std::string_view("-d") ||
                                                        row.option == std::string_view("-x"))
                                    ? ": UCX_TLS and UCX_NET_DEVICES choose there"
                                    : ""));
                break;
            }
        }
    }
    return sentences;
}

} // namespace ucg::perftest
