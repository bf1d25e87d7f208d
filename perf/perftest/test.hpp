// One measurement of ucg_perftest: a primitive of UCT or UCP between two processes, or a
// collective of all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perf/perftest/recorder.hpp"
#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// How data is passed to UCT: ucx_perftest's -D for UCT tests.
enum class UctLayout { short_copy, short_iov, buffered_copy, zero_copy };
/// How data is passed to UCP: ucx_perftest's -D for UCP tests.
enum class UcpLayout { contiguous, scatter_gather };

/// When a collective begins.
enum class CollectiveMode {
    back_to_back, ///< Right after the previous one; a rank may run ahead of its peers.
    separated,    ///< On all ranks together, after a barrier that is not timed.
};

/// Parameters of collectives only. Names are those that ucg.h has for its enumerators.
struct CollectiveParameters {
    std::string algorithm; ///< A row of the planner's table; empty: the planner chooses.
    std::string datatype = "float64";
    std::string operation = "sum";
    Rank root = 0;
    bool in_place = false;
    bool heap = false; ///< Buffers come from ucg_mem_alloc(), else from malloc().
    CollectiveMode mode = CollectiveMode::separated;
    double seconds = 1;       ///< Duration where no number of iterations is given.
    bool fits_seconds = true; ///< Whether there is no -n.
};

/// What to measure, as the command line or a batch file says. Names and defaults are those of
/// ucx_perftest; the comments give the letter of each option.
struct Parameters {
    std::string test;                      ///< -t
    std::vector<std::size_t> sizes = {8};  ///< -s, one entry or a scatter-gather list, in bytes
    std::uint64_t iterations = 1000000;    ///< -n
    std::uint64_t warmup = 10000;          ///< -w
    unsigned outstanding = 0;              ///< -O, 0: as many as the test allows
    std::size_t stride = 0;                ///< -i, between entries of the list
    double percentile = 50;                ///< -R
    bool loopback = false;                 ///< -l
    bool one_sided_idle = false;           ///< -o: the responder makes no progress
    bool nonblocking_registration = false; ///< -B
    // UCT alone
    std::string device;                           ///< -d
    std::string transport;                        ///< -x
    UctLayout uct_layout = UctLayout::short_copy; ///< -D
    unsigned window = 127;                        ///< -W, messages in flight of active messages
    std::size_t uct_header = 8;                   ///< -H, part of the message
    // UCP alone
    UcpLayout send_layout = UcpLayout::contiguous; ///< -D
    UcpLayout receive_layout = UcpLayout::contiguous;
    bool wildcard_tag = false;     ///< -C
    bool unexpected = false;       ///< -U
    bool stream_recv_data = false; ///< -r recv_data
    bool wakeup = false;           ///< -I of the UCP tests
    bool error_handling = false;   ///< -e
    bool sleeps = false;           ///< -E sleep
    std::size_t ucp_header = 0;    ///< -H, beside the message
    bool memory_handle = false;    ///< -z
    bool check = false;            ///< Whether to check results, in runs of their own.
    CollectiveParameters collective;

    std::size_t bytes() const {
        std::size_t sum = 0;
        for (const std::size_t size : sizes) {
            sum += size;
        }
        return sum;
    }
};

/// How the time of a test's iteration becomes the columns of the table.
enum class TestKind {
    ping_pong,  ///< Two processes answer one another: latency is half an iteration.
    stream,     ///< One way: latency is an iteration; bandwidth and rate count.
    collective, ///< All processes: latency is an iteration, on each rank.
};

/// A test that is open: connected, with its buffers, ready to be run repeatedly.
class Test {
  public:
    virtual ~Test() = default;

    /// Runs recorder.wanted() iterations and updates the recorder after each. The caller calls
    /// recorder.start() right before; a test that must prepare its buffers calls it again when all
    /// ranks have prepared theirs. Collective over the ranks that take part. In a stream the last
    /// rank sends, and its figures are the result; rank 0 updates once, at the end.
    virtual Status run(Recorder& recorder) = 0;

    /// Only moves messages, for use while other ranks wait.
    virtual void progress() = 0;

    /// Returns further details for -I, such as the algorithm that is used; may be empty.
    virtual std::string details() const { return {}; }
};

/// The description of a test before it is opened.
struct TestInfo {
    std::string_view name;        ///< The name that -t takes.
    std::string_view description; ///< "UCT active message latency"
    TestKind kind = TestKind::ping_pong;
    /// Connects and allocates. Collective. Fails on all ranks alike, with a sentence that names
    /// what is missing ("posix/memory has no put_short").
    Result<std::unique_ptr<Test>> (*open)(Runtime& runtime, const Parameters& parameters) = nullptr;
};

/// Returns the tests of UCT and UCP, for two processes, in the order of ucx_perftest's help.
std::span<const TestInfo> primitive_tests();
/// Returns the tests of collectives, for any number of processes.
std::span<const TestInfo> collective_tests();

} // namespace ucg::perftest
