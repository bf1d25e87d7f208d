// How ucg_sim reads times and delays on its command line.
#include "test/support/catch.hpp"
#include "tools/ucg_sim/units.hpp"

using namespace ucg;
using namespace ucg::tools;
using Kind = sim::Distribution::Kind;

TEST_CASE("ucg_sim: times have units", "[tools][units]") {
    CHECK(*parse_time_ns("400ns") == 400);
    CHECK(*parse_time_ns("0.4ns") == 0.4);
    CHECK(*parse_time_ns("1.5us") == 1500);
    CHECK(*parse_time_ns("2ms") == 2e6);
    CHECK(*parse_time_ns("1s") == 1e9);
    CHECK(*parse_time_ns("250ps") == 0.25);
    CHECK(*parse_time_ns("0") == 0);
    CHECK(*parse_time_ns("1e5s") == 1e14);
    CHECK(*parse_times_ns("0,1us,3ns") == std::vector<double>{0, 1000, 3});
    for (const char* wrong : {"", "4", "-4ns", "ns", "4 ns", "4nsx", "4NS", "inf", "infns", "nan",
                              "1e999ns", "1e300s", "1.01e5s", "4ns,"}) {
        INFO("'" << wrong << "'");
        CHECK(!parse_time_ns(wrong).ok());
    }
    CHECK(!parse_times_ns("1ns,,2ns").ok());
}

TEST_CASE("ucg_sim: late ranks", "[tools][units]") {
    const Result<std::vector<LateRank>> late = parse_late_ranks("3=5us,0=250ns,3=0");
    REQUIRE(late.ok());
    REQUIRE(late->size() == 3);
    CHECK((*late)[0].rank == 3);
    CHECK((*late)[0].ns == 5000);
    CHECK((*late)[1].rank == 0);
    CHECK((*late)[1].ns == 250);
    for (const char* wrong : {"", "3", "3=", "=5us", "-1=5us", "3=5", "3 =5us", "x=5us", "3=5us,",
                              "99999999999=1us", "3=-5us"}) {
        INFO("'" << wrong << "'");
        CHECK(!parse_late_ranks(wrong).ok());
    }
}

TEST_CASE("ucg_sim: delays", "[tools][units]") {
    CHECK(*parse_distribution("none") == sim::Distribution{});
    CHECK(*parse_distribution("uniform:0,1us") == sim::Distribution{Kind::uniform, 0, 1000});
    CHECK(*parse_distribution("exponential:50ns") == sim::Distribution{Kind::exponential, 50, 0});
    CHECK(*parse_distribution("normal:100ns,20ns") == sim::Distribution{Kind::normal, 100, 20});
    CHECK(*parse_distribution("pareto:10ns,2.5") == sim::Distribution{Kind::pareto, 10, 2.5});
    for (const char* wrong :
         {"", "gauss:1ns", "uniform", "uniform:", "uniform:1ns", "uniform:2ns,1ns",
          "exponential:1ns,2ns", "pareto:1ns,0", "pareto:1ns,2ns", "normal:1,2"}) {
        INFO("'" << wrong << "'");
        CHECK(!parse_distribution(wrong).ok());
    }
}
