#include <algorithm>
#include <string>

#include "perf/perftest/launch/runtime_local.hpp"
#include "perf/perftest/test.hpp"
#include "test/support/catch.hpp"
#include "ucg_coll/base/log.hpp"

using namespace ucg;
using namespace ucg::perftest;

namespace {

/// A stream has more iterations than a number of one byte has values. A ping-pong has few: where
/// other programs want the processors, each of its turns may take a time slice.
std::uint64_t iterations_of(TestKind kind) {
    return kind == TestKind::stream ? 600 : 20;
}

const TestInfo& find_test(std::string_view name) {
    const std::span<const TestInfo> all = primitive_tests();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const TestInfo& test) { return test.name == name; });
    REQUIRE(found != all.end());
    return *found;
}

/// Checks what must hold of a finished run.
Status check_counts(const Recorder& recorder, const Runtime& runtime, const Parameters& given) {
    const bool sends = runtime.rank() == runtime.size() - 1;
    if (recorder.iterations() < recorder.wanted() || recorder.elapsed() == 0 ||
        (sends && recorder.bytes() != recorder.wanted() * given.bytes())) {
        return failure(Code::disagreement, "rank {} counted {} iterations, {} bytes",
                       runtime.rank(), recorder.iterations(), recorder.bytes());
    }
    return {};
}

/// Opens the test and runs it twice, as a warm-up and a measurement do.
Status run_twice(const TestInfo& info, Runtime& runtime, const Parameters& parameters,
                 std::uint64_t iterations) {
    Result<std::unique_ptr<Test>> test = info.open(runtime, parameters);
    if (!test) {
        return test.status();
    }
    for (int turn = 0; turn < 2; ++turn) {
        Recorder recorder(iterations);
        recorder.start();
        Status status = (*test)->run(recorder);
        if (status.ok()) {
            status = check_counts(recorder, runtime, parameters);
        }
        if (!status.ok()) {
            return status;
        }
    }
    return {};
}

bool runs(const Parameters& parameters, std::uint64_t iterations = 0) {
    const TestInfo& info = find_test(parameters.test);
    const std::uint64_t count = iterations == 0 ? iterations_of(info.kind) : iterations;
    const Result<int> status = run_local(parameters.loopback ? 1 : 2, [&](Runtime& runtime) {
        return run_twice(info, runtime, parameters, count);
    });
    return status.ok() && *status == 0;
}

/// Does opening fail on all of `size` ranks, with a message that contains `with`?
bool refused(const Parameters& parameters, std::string_view with, Rank size = 2) {
    const TestInfo& info = find_test(parameters.test);
    const Result<int> status = run_local(size, [&](Runtime& runtime) -> Status {
        const Status found = info.open(runtime, parameters).status();
        return found.message().find(with) != std::string_view::npos
                   ? Status()
                   : failure(Code::disagreement, "got '{}'", found.message());
    });
    return status.ok() && *status == 0;
}

Parameters uct(const std::string& test, const std::string& transport,
               UctLayout layout = UctLayout::short_copy, std::size_t bytes = 16) {
    Parameters parameters;
    parameters.test = test;
    parameters.transport = transport;
    parameters.device = transport == "tcp" ? "lo" : "memory";
    parameters.uct_layout = layout;
    parameters.sizes = {bytes};
    return parameters;
}

Parameters ucp(const std::string& test, std::size_t bytes = 8) {
    Parameters parameters;
    parameters.test = test;
    parameters.sizes = {bytes};
    return parameters;
}

} // namespace

TEST_CASE("UCT's active messages go both ways in every layout", "[uct]") {
    const char* transport = GENERATE("posix", "sysv", "tcp");
    for (const char* test : {"am_lat", "am_bw"}) {
        CAPTURE(transport, test);
        CHECK(runs(uct(test, transport, UctLayout::short_copy)));
        CHECK(runs(uct(test, transport, UctLayout::short_iov)));
        CHECK(runs(uct(test, transport, UctLayout::buffered_copy, 2000)));
    }
    CHECK(runs(uct("am_lat", "tcp", UctLayout::zero_copy, 2000)));
    CHECK(runs(uct("am_bw", "tcp", UctLayout::zero_copy, 2000)));
}

TEST_CASE("UCT puts, in every layout that there is", "[uct]") {
    for (const char* test : {"put_lat", "put_bw"}) {
        CAPTURE(test);
        for (const char* transport : {"posix", "sysv"}) {
            CHECK(runs(uct(test, transport, UctLayout::short_copy, 1)));
            CHECK(runs(uct(test, transport, UctLayout::buffered_copy, 100)));
        }
        CHECK(runs(uct(test, "tcp", UctLayout::zero_copy, 100)));
    }
}

TEST_CASE("UCT gets and changes memory atomically", "[uct]") {
    CHECK(runs(uct("get", "posix", UctLayout::buffered_copy, 100)));
    CHECK(runs(uct("get", "cma", UctLayout::zero_copy, 100)));
    for (const char* test : {"add_lat", "add_mr", "fadd", "swap", "cswap"}) {
        CAPTURE(test);
        CHECK(runs(uct(test, "posix", UctLayout::short_copy, 4)));
        CHECK(runs(uct(test, "sysv", UctLayout::short_copy, 8)));
    }
}

TEST_CASE("UCT tests take lists, windows, idle responders and themselves", "[uct]") {
    Parameters listed = uct("am_lat", "tcp", UctLayout::zero_copy);
    listed.sizes = {16, 100, 24};
    listed.stride = 128;
    CHECK(runs(listed));
    listed.uct_layout = UctLayout::short_iov;
    CHECK(runs(listed));
    for (const unsigned window : {1U, 2U, 5U, 127U}) {
        Parameters narrow = uct("am_bw", "posix");
        narrow.window = window;
        CHECK(runs(narrow));
    }
    for (const char* test : {"put_lat", "put_bw", "fadd"}) {
        Parameters idle = uct(test, "posix", UctLayout::short_copy, 8);
        idle.one_sided_idle = true;
        CHECK(runs(idle));
    }
    for (const char* test : {"am_lat", "am_bw", "put_lat", "put_bw", "fadd"}) {
        Parameters loop = uct(test, "posix", UctLayout::short_copy, 8);
        loop.loopback = true;
        CHECK(runs(loop));
    }
    Parameters deep = uct("put_bw", "tcp", UctLayout::zero_copy, 100);
    deep.outstanding = 8;
    CHECK(runs(deep));
}

TEST_CASE("Numbers of one byte wrap", "[uct]") {
    CHECK(runs(uct("am_lat", "posix"), 300));
    CHECK(runs(uct("put_lat", "posix"), 300));
    CHECK(runs(uct("add_lat", "posix", UctLayout::short_copy, 4), 300));
}

TEST_CASE("UCT tests refuse what does not fit, and say what does", "[uct]") {
    CHECK(refused(uct("am_lat", ""), "needs a transport (-x)"));
    CHECK(refused(uct("am_lat", "quantum"), "posix/memory"));
    CHECK(refused(uct("am_lat", "posix", UctLayout::zero_copy), "posix/memory has no am_zcopy"));
    CHECK(refused(uct("put_lat", "tcp"), "tcp/lo has no put_short"));
    CHECK(refused(uct("am_lat", "posix", UctLayout::short_copy, 101), "0 to 100 bytes, not 101"));
    CHECK(refused(uct("am_lat", "posix", UctLayout::short_copy, 4), "no room for its header"));
    CHECK(refused(uct("am_lat", "posix", UctLayout::short_copy, 0), "at least 1 byte"));
    CHECK(refused(uct("get", "posix"), "no short layout"));
    CHECK(refused(uct("put_lat", "posix", UctLayout::short_iov), "active messages alone"));
    CHECK(refused(uct("fadd", "posix", UctLayout::short_copy, 3), "4 or 8 bytes, not 3"));
    CHECK(refused(uct("fadd", "tcp", UctLayout::short_copy, 8), "no atomic fetch-and-add of 64"));
    CHECK(refused(uct("am_lat", "posix"), "two processes, or with -l one, not 3", 3));

    Parameters wrong = uct("am_bw", "posix");
    wrong.window = 128;
    CHECK(refused(wrong, "1 to 127, not 128"));
    wrong = uct("am_lat", "posix");
    wrong.uct_header = 4;
    CHECK(refused(wrong, "has 8 bytes, not 4"));
    wrong = uct("am_lat", "posix");
    wrong.one_sided_idle = true;
    CHECK(refused(wrong, "nobody would receive"));
    wrong = uct("am_lat", "tcp", UctLayout::zero_copy);
    wrong.sizes = {16, 100};
    wrong.stride = 50;
    CHECK(refused(wrong, "100 bytes does not fit into the distance -i 50"));
}

TEST_CASE("All tests of UCP run, with short messages and with long ones", "[ucp]") {
    for (const TestInfo& info : primitive_tests()) {
        const std::string name(info.name);
        if (info.description.substr(0, 3) != "UCP") {
            continue;
        }
        CAPTURE(name);
        const bool atomic = info.description.find("atomic") != std::string_view::npos;
        for (const std::size_t bytes : {4, 8, 100000}) {
            if (!atomic || bytes <= 8) {
                CHECK(runs(ucp(name, bytes)));
            }
        }
        Parameters loop = ucp(name);
        loop.loopback = true;
        CHECK(runs(loop));
    }
}

TEST_CASE("UCP tests take tags, probes, lists, headers, handles and sleep", "[ucp]") {
    for (const char* test : {"tag_lat", "tag_bw", "tag_sync_lat"}) {
        for (const int choice : {1, 2, 3}) {
            Parameters parameters = ucp(test);
            parameters.wildcard_tag = (choice & 1) != 0;
            parameters.unexpected = (choice & 2) != 0;
            CHECK(runs(parameters));
        }
    }
    for (const char* test : {"tag_lat", "tag_bw", "ucp_am_lat", "stream_lat", "stream_bw"}) {
        Parameters listed = ucp(test);
        listed.sizes = {10, 200, 3};
        listed.stride = 256;
        listed.send_layout = UcpLayout::scatter_gather;
        CHECK(runs(listed));
        listed.receive_layout = UcpLayout::scatter_gather;
        CHECK(runs(listed));
    }
    for (const char* test : {"stream_lat", "stream_bw"}) {
        Parameters parameters = ucp(test, 3000);
        parameters.stream_recv_data = true;
        CHECK(runs(parameters));
    }
    Parameters many = ucp("ucp_am_lat");
    many.ucp_header = 24;
    many.memory_handle = true;
    many.error_handling = true;
    many.wakeup = true;
    CHECK(runs(many));
    for (const char* test : {"tag_lat", "ucp_am_lat"}) {
        Parameters sleeping = ucp(test);
        sleeping.sleeps = true;
        CHECK(runs(sleeping));
    }
    Parameters empty = ucp("tag_lat", 0);
    CHECK(runs(empty));
}

TEST_CASE("UCP tests refuse what does not fit, and say what does", "[ucp]") {
    CHECK(refused(ucp("ucp_put_lat", 0), "at least 1 byte"));
    CHECK(refused(ucp("ucp_fadd", 5), "4 or 8 bytes, not 5"));
    CHECK(refused(ucp("tag_lat"), "two processes, or with -l one, not 1", 1));
    Parameters wrong = ucp("tag_lat");
    wrong.one_sided_idle = true;
    CHECK(refused(wrong, "nobody would receive"));
    wrong = ucp("ucp_put_lat");
    wrong.send_layout = UcpLayout::scatter_gather;
    CHECK(refused(wrong, "-D iov is for"));
    wrong = ucp("ucp_am_lat");
    wrong.ucp_header = std::size_t{1} << 30;
    CHECK(refused(wrong, "UCP takes headers of up to"));
    wrong = ucp("tag_lat");
    wrong.check = true;
    CHECK(refused(wrong, "moves nothing whose result could be checked"));
}
