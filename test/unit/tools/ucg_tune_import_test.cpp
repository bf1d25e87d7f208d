// How ucg_tune derives the costs of messages from results of ucx_perftest, on results for which
// these are known.
#include "test/support/catch.hpp"
#include "tools/ucg_tune/import_fit.hpp"

using namespace ucg;
using namespace ucg::tools;

namespace {

/// A shortened output of ucx_perftest 1.13.1 between two hosts: its table and its messages.
constexpr const char* kRecorded =
    "+----------------------------------------------------------------------------------+\n"
    "[1763926561.511] [node0:19550:0]     perftest.c:1013 UCX  WARN  CPU affinity is not set\n"
    "calibrate,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,"
    "overall_mr\n"
    "am_lat_8,50000,1.000,1.100,1.100,6.94,6.94,909091,909091\n"
    "am_lat_64,50000,1.056,1.156,1.156,52.8,52.8,865052,865052\n"
    "am_bw_8,[thread 0]200000,0.300,0.400,0.400,19.07,19.07,2500000,2500000\n"
    "am_bw_8,200000,0.300,0.400,0.400,19.07,19.07,2500000,2500000\r\n"
    "\n"
    "ucp_put_bw_65536,5000,5.000,6.700,6.700,9328.0,9328.0,149254,149254\n"
    "ucp_put_bw_1048576,500,100.0,105.0,105.0,9523.8,9523.8,9524,9524\n";

constexpr const char* kHead = "calibrate,iterations,50.0_percentile_lat,avg_lat,overall_lat,"
                              "avg_bw,overall_bw,avg_mr,overall_mr\n";

std::string complaint(const std::string& text) {
    return std::string(parse_perftest(text).status().message());
}

bool says(const std::string& text, std::string_view words) {
    return complaint(text).find(words) != std::string::npos;
}

PerftestRow row(const std::string& test, std::uint64_t bytes, double ns, double percentile = 50) {
    return {test, bytes, 1000, percentile, ns, ns, 1};
}

/// Results that follow a line: 1000 ns and 2 ns per byte, 300 ns between messages, 0.25 ns per byte
/// of long ones.
std::vector<PerftestRow> known_rows(double percentile = 50, double factor = 1) {
    std::vector<PerftestRow> rows;
    for (const std::uint64_t bytes : {8, 16, 64}) {
        rows.push_back(row("am_lat", bytes, factor * (1000 + 2.0 * bytes), percentile));
    }
    rows.push_back(row("am_bw", 8, factor * 300, percentile));
    for (const std::uint64_t bytes : {65536, 1048576}) {
        rows.push_back(row("ucp_put_bw", bytes, factor * (300 + 0.25 * bytes), percentile));
    }
    return rows;
}

} // namespace

TEST_CASE("import: recorded results are read, with what stands around them passed over",
          "[import]") {
    const Result<std::vector<PerftestRow>> rows = parse_perftest(kRecorded);
    REQUIRE(rows.ok());
    REQUIRE(rows->size() == 5);
    const PerftestRow& first = rows->front();
    CHECK(first.test == "am_lat");
    CHECK(first.bytes == 8);
    CHECK(first.iterations == 50000);
    CHECK(first.percentile == 50);
    CHECK(first.percentile_ns == Approx(1000));
    CHECK(first.overall_ns == Approx(1100));
    CHECK(rows->back().bytes_per_ns == Approx(9523.8 * 1048576 / 1e9));
}

TEST_CASE("import: of rows with one name the last holds", "[import]") {
    const Result<std::vector<PerftestRow>> rows =
        parse_perftest(std::string(kHead) + "am_lat_8,10,1,1,1,1,1,1,1\nam_lat_8,20,3,3,3,1,1,1,1");
    REQUIRE(rows.ok());
    REQUIRE(rows->size() == 1);
    CHECK(rows->front().iterations == 20);
    CHECK(rows->front().percentile_ns == 3000);
}

TEST_CASE("import: malformed results are named by line", "[import]") {
    const std::string head = kHead;
    CHECK(says("", "found none"));
    CHECK(says(head, "found none"));
    CHECK(says("\nhello\n", "line 2: expected the header"));
    CHECK(says("iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,"
               "overall_mr\n",
               "line 1: expected a column for the names of one batch file"));
    CHECK(says("a,b," + head, "names of one batch file"));
    CHECK(says("calibrate,iterations,x,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n",
               "line 1: expected the columns"));
    CHECK(says(head + "am_lat_8,1,2,3\n", "line 2: expected 9 columns"));
    CHECK(says(head + "am_lat,1,1,1,1,1,1,1,1\n", "such as am_lat_8, found 'am_lat'"));
    CHECK(says(head + "am_lat_x,1,1,1,1,1,1,1,1\n", "such as am_lat_8"));
    CHECK(says(head + "_8,1,1,1,1,1,1,1,1\n", "such as am_lat_8"));
    CHECK(says(head + "am_lat_0,1,1,1,1,1,1,1,1\n", "such as am_lat_8"));
    CHECK(says(head + "am_lat_99999999999999999999,1,1,1,1,1,1,1,1\n", "such as am_lat_8"));
    CHECK(says(head + "am_lat_8,0,1,1,1,1,1,1,1\n", "a number of iterations, found '0'"));
    CHECK(says(head + "am_lat_8,-5,1,1,1,1,1,1,1\n", "a number of iterations"));
    CHECK(says(head + "am_lat_8,5,nan,1,1,1,1,1,1\n", "line 2: expected times"));
    CHECK(says(head + "am_lat_8,5,1,1,-1,1,1,1,1\n", "expected times"));
    CHECK(says(head + "am_lat_8,5,1,1,0,1,1,1,1\n", "expected times"));
    CHECK(says(head + "am_lat_8,5,1e300,1,1,1,1,1,1\n", "expected times"));
}

TEST_CASE("import: the fit finds the costs that made the times", "[import]") {
    const Result<ImportedCosts> costs = fit_perftest(known_rows(), 50);
    REQUIRE(costs.ok());
    CHECK(costs->postal.beta_ns_per_byte == Approx(0.25));
    CHECK(costs->postal.alpha_r_ns == Approx(300 - 0.25));
    CHECK(costs->postal.alpha_p_ns == Approx(1002 - 300));
    CHECK(costs->latency_error == Approx(0).margin(1e-9));
    CHECK(costs->gap_error == Approx(0).margin(1e-9));
    CHECK(cost::message_ns(costs->loggp, 1) == Approx(1002));
    CHECK(costs->loggp.gap_ns == Approx(300));
    CHECK(costs->short_test == "am_lat");
}

TEST_CASE("import: without UCT's rows UCP's hold", "[import]") {
    std::vector<PerftestRow> rows = {
        row("am_lat", 8, 500),          row("ucp_am_lat", 8, 1008),
        row("ucp_am_lat", 64, 1064),    row("ucp_am_bw", 8, 300),
        row("ucp_am_bw", 65536, 20000), row("ucp_am_bw", 131072, 40000),
        row("ucp_put_bw", 65536, 1),
    };
    const Result<ImportedCosts> costs = fit_perftest(rows, 50);
    REQUIRE(costs.ok());
    CHECK(costs->short_test == "ucp_am_lat");
    CHECK(costs->rate_test == "ucp_am_bw");
    CHECK(costs->long_test == "ucp_am_bw");
    CHECK(cost::message_ns(costs->loggp, 1) == Approx(1001));
}

TEST_CASE("import: a rate slower than a message's way is no rate", "[import]") {
    std::vector<PerftestRow> rows = known_rows();
    rows[3] = row("am_bw", 8, 5000);
    const Result<ImportedCosts> costs = fit_perftest(rows, 50);
    REQUIRE(costs.ok());
    CHECK(costs->postal.alpha_p_ns == Approx(0).margin(1e-9));
    CHECK(cost::message_ns(costs->loggp, 1) == Approx(1002));
}

TEST_CASE("import: what lacks is named", "[import]") {
    const auto without = [](std::string_view test) {
        std::vector<PerftestRow> rows = known_rows();
        std::erase_if(rows, [&](const PerftestRow& each) { return each.test == test; });
        return std::string(import_perftest(rows, topo::Distance::network).status().message());
    };
    CHECK(without("am_lat").find("am_lat or ucp_am_lat of two sizes") != std::string::npos);
    CHECK(without("am_bw").find("am_bw or ucp_am_bw of a size") != std::string::npos);
    CHECK(without("ucp_put_bw").find("ucp_put_bw or ucp_am_bw of two sizes") != std::string::npos);
    std::vector<PerftestRow> flat = known_rows();
    flat[4].overall_ns = flat[5].overall_ns = 10;
    CHECK(fit_perftest(flat, 50).status().message().find("rows of ucp_put_bw do not") !=
          std::string_view::npos);
    const auto third = import_perftest(known_rows(75), topo::Distance::network);
    CHECK(third.status().message().find("found the 75th") != std::string_view::npos);
}

TEST_CASE("import: figures go to their level, and those that cannot are named", "[import]") {
    std::vector<PerftestRow> rows = known_rows();
    const std::vector<PerftestRow> best = known_rows(0, 0.5);
    rows.insert(rows.end(), best.begin(), best.end());
    const cost::Profile& base = cost::default_profile();

    const Result<Import> network = import_perftest(rows, topo::Distance::network);
    REQUIRE(network.ok());
    const cost::Profile profile = imported_profile(*network, base);
    CHECK(profile.network.median.measured);
    CHECK(profile.network.minimum.alpha_p_ns == Approx(profile.network.median.alpha_p_ns / 2));
    CHECK(profile.level(topo::Distance::network) == network->median.loggp);
    CHECK(profile.level(topo::Distance::cache) == base.level(topo::Distance::cache));
    const Result<cost::Profile> again = cost::parse_toml(cost::to_toml(profile));
    REQUIRE(again.ok());
    CHECK(*again == profile);

    const Result<Import> cache = import_perftest(known_rows(), topo::Distance::cache);
    REQUIRE(cache.ok());
    const cost::Profile near = imported_profile(*cache, base);
    CHECK(near.network == base.network);
    CHECK(near.level(topo::Distance::cache) == cache->median.loggp);
    std::size_t known = 0;
    for (const FigureReport& report : report_import(*cache, near)) {
        known += report.known ? 1 : 0;
        CHECK((report.known.has_value() != !report.reason.empty()));
    }
    CHECK(known == 4);
}
