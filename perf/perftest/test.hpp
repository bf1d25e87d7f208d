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

/// How data is handed to UCT: ucx_perftest's -D for UCT tests.
enum class UctLayout { short_copy, short_iov, buffered_copy, zero_copy };
/// How data is handed to UCP: its -D for UCP tests.
enum class UcpLayout { contiguous, scatter_gather };

/// When does a collective begin?
enum class CollectiveMode {
    back_to_back, ///< At once after the one before: those of a rank may run ahead of its peers'.
    separated,    ///< On all ranks together: a barrier that is not timed lies before each.
};

/// Of the collectives alone; the names are those that ucg.h has for its enumerators.
struct CollectiveParameters {
    std::string algorithm; ///< A row of the planner's; empty: its own choice.
    std::string datatype = "float64";
    std::string operation = "sum";
    Rank root = 0;
    bool heap = false; ///< Buffers of ucg_mem_alloc(), else of malloc().
    CollectiveMode mode = CollectiveMode::separated;
    double seconds = 1;       ///< Where no number of iterations is given, so long.
    bool fits_seconds = true; ///< No -n.
};

/// What is to be measured, as command line or batch file say. Names and defaults are those of
/// ucx_perftest; the letter of each option stands behind it.
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
    bool check = false; ///< Are results compared with what they must be? In runs of their own.
    CollectiveParameters collective;

    std::size_t bytes() const {
        std::size_t sum = 0;
        for (const std::size_t size : sizes) {
            sum += size;
        }
        return sum;
    }
};

/// How a test's time per iteration becomes the columns of the table.
enum class TestKind {
    ping_pong,  ///< Two processes answer one another: latency is half an iteration.
    stream,     ///< One way: latency is an iteration; bandwidth and rate count.
    collective, ///< All processes: latency is an iteration, of each rank.
};

/// A test that is open: connected, with its buffers, ready to be run many times.
class Test {
  public:
    virtual ~Test() = default;

    /// Runs recorder.wanted() iterations, updating the recorder after each; recorder.start() is the
    /// caller's, right before; a test that must prepare its buffers starts it again when all ranks
    /// have done so. Collective over the ranks that take part. Of a stream the last rank sends, and
    /// its figures are the result; rank 0 updates once, at the end.
    virtual Status run(Recorder& recorder) = 0;

    /// Moves messages and nothing else: while others wait.
    virtual void progress() = 0;

    /// What else is worth telling of it (-I), such as the algorithm that serves; may be empty.
    virtual std::string details() const { return {}; }
};

/// What is known of a test before it is opened.
struct TestInfo {
    std::string_view name;        ///< As -t has it.
    std::string_view description; ///< "UCT active message latency"
    TestKind kind = TestKind::ping_pong;
    /// Connects and allocates. Collective. Fails alike on all ranks with a sentence that names what
    /// is missing ("posix/memory has no put_short").
    Result<std::unique_ptr<Test>> (*open)(Runtime& runtime, const Parameters& parameters) = nullptr;
};

/// Of UCT and UCP, for two processes; in the order of ucx_perftest's help.
std::span<const TestInfo> primitive_tests();
/// Of collectives, for any number.
std::span<const TestInfo> collective_tests();

} // namespace ucg::perftest
