#include <sstream>

#include <fmt/format.h>

#include "perf/perftest/options.hpp"
#include "perf/perftest/test_options.hpp"
#include "test/support/catch.hpp"
#include "tools/cli.hpp"

using namespace ucg;
using namespace ucg::perftest;

namespace {

/// The options of a command line; empty when the line is refused.
std::optional<ProgramOptions> parsed(const std::string& line) {
    CLI::App app;
    ProgramOptions options;
    add_options(app, options);
    try {
        app.parse(line);
    } catch (const CLI::ParseError&) {
        return std::nullopt;
    }
    return options;
}

std::vector<std::string> described(const std::vector<Job>& jobs) {
    std::vector<std::string> texts;
    for (const Job& job : jobs) {
        texts.push_back(fmt::format("{} {} {} {}", fmt::join(job.names, "/"), job.parameters.test,
                                    job.parameters.bytes(), job.parameters.iterations));
    }
    return texts;
}

} // namespace

TEST_CASE("Defaults are ucx_perftest's") {
    const ProgramOptions options = *parsed("-t tag_lat");
    const Parameters& parameters = options.request.parameters;
    CHECK(parameters.sizes == std::vector<std::size_t>{8});
    CHECK(parameters.iterations == 1000000);
    CHECK(parameters.warmup == 10000);
    CHECK(parameters.window == 127);
    CHECK(parameters.uct_header == 8);
    CHECK(parameters.ucp_header == 0);
    CHECK(parameters.percentile == 50);
    CHECK(options.port == 13337);
    CHECK(parameters.collective.fits_seconds);
}

TEST_CASE("Letters have ucx_perftest's meanings, and the last one counts") {
    const ProgramOptions options =
        *parsed("host -t am_bw -s 16,48 -n5 -n 7 -w 3 -W 9 -H 4 -D bcopy -d dev -x tl -O 2 -i 64 "
                "-o -B -C -U -r recv_data -e -E sleep -z -R 99.5 -p 7 -6 -N -f -v -I");
    const Parameters& parameters = options.request.parameters;
    CHECK(options.server == "host");
    CHECK(parameters.sizes == std::vector<std::size_t>{16, 48});
    CHECK(parameters.iterations == 7);
    CHECK_FALSE(parameters.collective.fits_seconds);
    CHECK(parameters.warmup == 3);
    CHECK(parameters.window == 9);
    CHECK(parameters.uct_header == 4);
    CHECK(parameters.ucp_header == 4);
    CHECK(parameters.uct_layout == UctLayout::buffered_copy);
    CHECK(parameters.device == "dev");
    CHECK(parameters.transport == "tl");
    CHECK(parameters.outstanding == 2);
    CHECK(parameters.stride == 64);
    CHECK((parameters.one_sided_idle && parameters.nonblocking_registration));
    CHECK((parameters.wildcard_tag && parameters.unexpected && parameters.stream_recv_data));
    CHECK((parameters.error_handling && parameters.sleeps && parameters.memory_handle));
    CHECK(parameters.percentile == 99.5);
    CHECK((options.port == 7 && options.ipv6));
    CHECK((options.output.thousands && options.output.final_only));
    CHECK((options.output.csv && options.output.extra));
    CHECK_FALSE(parameters.wakeup);
}

TEST_CASE("Layouts of UCP may name both sides") {
    const ProgramOptions both = *parsed("-t tag_lat -D contig,iov");
    CHECK(both.request.parameters.send_layout == UcpLayout::contiguous);
    CHECK(both.request.parameters.receive_layout == UcpLayout::scatter_gather);
    CHECK_FALSE(parsed("-t tag_lat -D iov,short").has_value());
    CHECK_FALSE(parsed("-t tag_lat -D iov,iov,iov").has_value());
}

TEST_CASE("What is not offered is refused") {
    for (const char* words : {"-t nothing",
                              "-m cuda",
                              "-m host,rocm",
                              "-T 2",
                              "-M multi",
                              "-A signal",
                              "-s 1,,2",
                              "-s -1",
                              "-n x",
                              "-R 100.5",
                              "-R nan",
                              "-W 128",
                              "--sizes 0:8",
                              "--sizes 9:8",
                              "--sizes 1:2:3",
                              "--op user",
                              "--datatype int16_int32",
                              "--np 1025",
                              "-p 0",
                              "--mode late"}) {
        INFO(words);
        CHECK_FALSE(parsed(words).has_value());
    }
}

TEST_CASE("Sizes of one test after another") {
    CHECK(*parse_sweep("8,4k") == std::vector<std::size_t>{8, 4096});
    CHECK(*parse_sweep("8:64,1k") == std::vector<std::size_t>{8, 16, 32, 64, 1024});
    CHECK(*parse_sweep("3:10") == std::vector<std::size_t>{3, 6});
    CHECK(*parse_sweep("0") == std::vector<std::size_t>{0});
    CHECK_FALSE(parse_sweep("").ok());
    CHECK_FALSE(parse_sweep("8,").ok());
}

TEST_CASE("Each line of a batch file inherits what stands above it") {
    ProgramOptions options = *parsed("-b one -b two -t bcast -n 5");
    const Files files = {{"one", "# none\n\na -s 8\nb -t barrier -n 6\n"},
                         {"two", "x\ty \ny -s 4k -n 7 \r\n"}};
    SECTION("in the order of the lines, the last file fastest") {
        options.batch_files = {"one", "two"};
        Files fixed = files;
        fixed["two"] = "x\ny -s 4k -n 7 \r\n";
        const Result<std::vector<Job>> jobs = expand_jobs(options, fixed);
        REQUIRE(jobs.ok());
        CHECK(described(*jobs) == std::vector<std::string>{"a/x bcast 8 5", "a/y bcast 4096 7",
                                                           "b/x barrier 8 6",
                                                           "b/y barrier 4096 7"});
    }
    SECTION("a word that is no option is told with its line") {
        const Result<std::vector<Job>> jobs = expand_jobs(options, files);
        REQUIRE_FALSE(jobs.ok());
        CHECK(jobs.status().message().starts_with("in batch file 'two' line 1: "));
    }
    SECTION("-I is UCP's there") {
        options.batch_files = {"one"};
        const Result<std::vector<Job>> jobs =
            expand_jobs(options, {{"one", "a -t tag_lat -I --sizes 1,2"}});
        REQUIRE(jobs.ok());
        REQUIRE(jobs->size() == 2);
        CHECK(jobs->back().parameters.wakeup);
        CHECK(jobs->back().parameters.bytes() == 2);
    }
}

TEST_CASE("Options that a test does not know are told") {
    const ProgramOptions options = *parsed("-t tag_lat -d x -W 4 -e");
    const Result<std::vector<Job>> jobs = expand_jobs(options, {});
    REQUIRE(jobs.ok());
    const std::vector<std::string> idle = idle_options(*jobs, options.request);
    REQUIRE(idle.size() == 2);
    CHECK(idle[0].starts_with("-d is ignored by tag_lat"));
    CHECK(idle[1].starts_with("-W is ignored by tag_lat"));
    const ProgramOptions collective = *parsed("-t bcast -e --op max");
    CHECK(idle_options(*expand_jobs(collective, {}), collective.request).size() == 1);
}
