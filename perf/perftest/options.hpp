// The command line of ucg_perftest, and the lines of its batch files: ucx_perftest's letters with
// their meaning, and further options for collectives and launchers.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "perf/perftest/test.hpp"
#include "ucg_coll/base/base.hpp"

namespace CLI {
class App;
}

namespace ucg::perftest {

/// Which layer a test measures.
enum class Layer { uct, ucp, collective };
Layer layer_of(const TestInfo& test);

/// Returns the test of this name; null if there is none.
const TestInfo* find_test(std::string_view name);

/// How the processes of a run are made.
enum class Launcher { automatic, local, socket, pmix };
std::string_view name(Launcher launcher);

struct OutputOptions {
    bool thousands = false;  ///< -N
    bool final_only = false; ///< -f
    bool csv = false;        ///< -v
    bool extra = false;      ///< -I of the command line
    std::string json;        ///< --json, a file
};

/// What options say about a test. They come from the command line, or from a line of a batch file,
/// which inherits what the levels above it say.
struct TestRequest {
    Parameters parameters;
    std::vector<std::size_t> sweep; ///< --sizes: one test for each; empty: a single one.
    std::set<std::string> given;    ///< The options that were given, such as "-d".
};

/// One test to run.
struct Job {
    std::vector<std::string> names; ///< Names of the batch files' lines that lead to the test.
    Parameters parameters;
};

struct ProgramOptions {
    TestRequest request;
    std::vector<std::string> batch_files;
    Launcher launcher = Launcher::automatic;
    std::optional<Rank> processes; ///< --np
    std::string server;            ///< The positional argument: this process is a client.
    std::uint32_t port = 13337;
    bool ipv6 = false;
    std::vector<std::uint32_t> cpus; ///< -c
    OutputOptions output;
};

/// Adds all options. Both must outlive the parsing.
void add_options(CLI::App& app, ProgramOptions& options);

/// Contents of batch files, by name.
using Files = std::map<std::string, std::string>;

/// Reads the batch files that the options name.
Result<Files> read_batch_files(const ProgramOptions& options);

/// Returns what to run, in order: one job for each size, and for each combination of lines of the
/// batch files. Fails with the place of what is wrong.
Result<std::vector<Job>> expand_jobs(const ProgramOptions& options, const Files& files);

/// Returns a sentence for each option that was given although it has no meaning for a test that is
/// to be run.
std::vector<std::string> idle_options(const std::vector<Job>& jobs, const TestRequest& request);

} // namespace ucg::perftest
