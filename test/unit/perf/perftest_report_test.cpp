#include <algorithm>
#include <numeric>

#include "perf/perftest/report.hpp"
#include "test/support/catch.hpp"

using namespace ucg;
using namespace ucg::perftest;

namespace {

CollectiveRow row() {
    CollectiveRow made;
    made.bytes = 8192;
    made.iterations = 12345;
    made.summary = {1e-6, 2e-6, 3e-6, 4e-6, 5e-6, 2.5e-6, 1e-7};
    made.algorithm_bandwidth = 1 << 20;
    made.bus_bandwidth = 2 << 20;
    made.limits.round_trip = 1e-6;
    return made;
}

Job job(const char* test) {
    Job made;
    made.parameters.test = test;
    return made;
}

bool lines_are_as_wide(const std::string& text) {
    std::size_t width = text.find('\n');
    for (std::size_t at = 0; at < text.size(); at += width + 1) {
        if (text.find('\n', at) != at + width) {
            return false;
        }
    }
    return true;
}

} // namespace

TEST_CASE("Percentiles are ucx_perftest's") {
    std::vector<double> values(100);
    std::iota(values.begin(), values.end(), 1.0);
    std::reverse(values.begin(), values.end());
    CHECK(percentile(values, 0) == 1);
    CHECK(percentile(values, 50) == 50);
    CHECK(percentile(values, 99) == 99);
    CHECK(percentile(values, 100) == 100);
    std::vector<double> one = {7};
    CHECK(percentile(one, 50) == 7);
}

TEST_CASE("A summary orders its times") {
    const Summary summary = summarize({4, 1, 3, 2}, 50);
    CHECK(summary.least == 1);
    CHECK(summary.asked == 2);
    CHECK(summary.most == 4);
    CHECK(summary.mean == 2.5);
    CHECK(summary.deviation == Approx(1.29099));
    CHECK(summarize({5}, 99).deviation == 0);
}

TEST_CASE("A recorder keeps its latest times in their order") {
    Recorder recorder(4);
    recorder.start();
    for (int i = 0; i < 4; ++i) {
        recorder.update(1, 10);
    }
    CHECK(recorder.done());
    CHECK(recorder.times().size() == 4);
    const std::vector<Ticks> before = recorder.times();
    recorder.update(1, 10);
    const std::vector<Ticks> after = recorder.times();
    REQUIRE(after.size() == 4);
    CHECK(std::equal(after.begin(), after.begin() + 3, before.begin() + 1));
    CHECK(recorder.bytes() == 50);
}

TEST_CASE("What is skipped is not measured, and reports come at their interval") {
    Recorder recorder(1000);
    int reports = 0;
    recorder.report_each(1, [&reports] { ++reports; });
    recorder.start();
    const Ticks until = read_unordered() + static_cast<Ticks>(ticks_per_second() / 1000);
    while (read_unordered() < until) {
    }
    recorder.skip();
    recorder.update(1, 0);
    CHECK(reports == 1);
    CHECK(recorder.times().front() == recorder.elapsed());
    CHECK(nanoseconds(recorder.elapsed_in_all() - recorder.elapsed()) >= 1e6);
    recorder.skip();
    recorder.update_alone(0, static_cast<Ticks>(ticks_per_second()));
    CHECK(recorder.times().back() == 0);
    CHECK(recorder.times().front() == recorder.elapsed());
    recorder.start();
    CHECK(recorder.times().empty());
}

TEST_CASE("A ping-pong's latency is half an iteration") {
    Recorder recorder(2);
    recorder.start();
    recorder.update(1, 8);
    recorder.update(1, 8);
    const PrimitiveRow one_way = primitive_row(recorder, {}, TestKind::stream, 50);
    const PrimitiveRow both = primitive_row(recorder, {}, TestKind::ping_pong, 50);
    CHECK(both.overall == Approx(one_way.overall / 2));
    CHECK(both.overall_bandwidth == Approx(one_way.overall_bandwidth * 2));
    CHECK(both.percentile == Approx(one_way.percentile / 2));
    CHECK(one_way.average == Approx(one_way.overall));
    const PrimitiveRow none = primitive_row(Recorder(1), {}, TestKind::stream, 50);
    CHECK(none.overall == 0);
}

TEST_CASE("A row says how far it is from the limit") {
    CollectiveRow made = row();
    CHECK(limit_text(made) == "2.00 rt");
    made.limits.least_seconds = 1.5e-6;
    CHECK(limit_text(made) == "75.0 %");
    made.limits.moved = true;
    CHECK(limit_text(made) == "moved");
    made.limits = {};
    CHECK(limit_text(made) == "-");
}

TEST_CASE("Tables are as wide as their rows") {
    for (const bool final_only : {false, true}) {
        OutputOptions output;
        output.final_only = final_only;
        const Job bcast = job("bcast");
        const TestInfo* test = find_test("bcast");
        REQUIRE(test != nullptr);
        const std::string head = table_head(Layer::collective, test, bcast.parameters, output, {});
        CHECK(lines_are_as_wide(head));
        CHECK(collective_line(row(), bcast, output, "").size() <= head.find('\n') + 1);
        CHECK(lines_are_as_wide(test_box(*test, bcast.parameters, 2, false)));
        const Job lat = job("tag_lat");
        CHECK(lines_are_as_wide(
            table_head(Layer::ucp, find_test("tag_lat"), lat.parameters, output, {})));
        CHECK(lines_are_as_wide(test_box(*find_test("tag_lat"), lat.parameters, 2, false)));
    }
}

TEST_CASE("Rows of a batch file are named") {
    Job named = job("bcast");
    named.names = {"one", "two"};
    OutputOptions output;
    CHECK(names_line(Layer::collective, named.names, output).starts_with("+one/two-------+"));
    CHECK(names_line(Layer::collective, {}, output).empty());
    output.csv = true;
    CHECK(names_line(Layer::collective, named.names, output).empty());
    CHECK(collective_line(row(), named, output, "") ==
          "one,two,bcast,8192,12345,1.000,2.000,3.000,4.000,5.000,1.00,2.00,2.00,0.0\n");
    CHECK(table_head(Layer::ucp, nullptr, named.parameters, output, {"/some/file", "other"}) ==
          "file,other,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,"
          "overall_mr\n");
}

TEST_CASE("Thousands are separated on request") {
    OutputOptions output;
    output.thousands = true;
    CHECK(collective_line(row(), job("bcast"), output, "").find("12,345 ") != std::string::npos);
    output.extra = true;
    CHECK(collective_line(row(), job("bcast"), output, "why").ends_with("  why\n"));
}
