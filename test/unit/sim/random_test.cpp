// Delays have the distribution that they should have, and depend only on what they belong to.
#include <cmath>
#include <limits>
#include <numbers>

#include "test/support/catch.hpp"
#include "ucg_coll/sim/sim.hpp"

using namespace ucg;
using namespace ucg::sim;

namespace {

using Kind = Distribution::Kind;

constexpr std::uint64_t kDraws = 20'000;

double mean_ns(const Distribution& distribution) {
    double sum_ns = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
        const Picoseconds delay = draw(distribution, 1, Stream::message, 3, i);
        REQUIRE(delay >= 0);
        sum_ns += to_ns(delay);
    }
    return sum_ns / kDraws;
}

/// The fraction of delays that exceed `ns`.
double beyond(const Distribution& distribution, double ns) {
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
        count += draw(distribution, 1, Stream::message, 3, i) > to_picoseconds(ns) ? 1 : 0;
    }
    return static_cast<double>(count) / kDraws;
}

} // namespace

TEST_CASE("sim: delays have their distribution", "[sim][noise]") {
    // The means are those of 20,000 draws, which come within about two percent.
    CHECK(mean_ns({}) == 0);
    CHECK(mean_ns({Kind::uniform, 20, 100}) == Approx(60).epsilon(0.02));
    CHECK(mean_ns({Kind::exponential, 50}) == Approx(50).epsilon(0.02));
    CHECK(mean_ns({Kind::normal, 100, 20}) == Approx(100).epsilon(0.02));
    // Half of the distribution is cut off, so this is the mean of a half normal distribution.
    CHECK(mean_ns({Kind::normal, 0, 20}) ==
          Approx(20 * std::sqrt(2 / std::numbers::pi)).epsilon(0.02));
    CHECK(mean_ns({Kind::pareto, 10, 3}) == Approx(15).epsilon(0.05));

    CHECK(beyond({Kind::uniform, 20, 100}, 20) == Approx(1).epsilon(0.001));
    CHECK(beyond({Kind::uniform, 20, 100}, 100) == 0);
    CHECK(beyond({Kind::exponential, 50}, 100) == Approx(std::exp(-2)).epsilon(0.05));
    CHECK(beyond({Kind::normal, 100, 20}, 120) == Approx(0.1587).epsilon(0.05));
    CHECK(beyond({Kind::pareto, 10, 2}, 40) == Approx(1.0 / 16).epsilon(0.05));
}

TEST_CASE("sim: delays of different things are different", "[sim][noise]") {
    const Distribution distribution = {Kind::exponential, 1000};
    const Picoseconds one = draw(distribution, 1, Stream::message, 2, 3);
    CHECK(one == draw(distribution, 1, Stream::message, 2, 3));
    CHECK(one != draw(distribution, 2, Stream::message, 2, 3));
    CHECK(one != draw(distribution, 1, Stream::computation, 2, 3));
    CHECK(one != draw(distribution, 1, Stream::message, 3, 3));
    CHECK(one != draw(distribution, 1, Stream::message, 2, 4));
}

TEST_CASE("sim: heavy tails and long prices stay within time", "[sim][noise]") {
    const Distribution heavy = {Kind::pareto, 1e300, 0.01};
    CHECK(sim::check(heavy).ok());
    CHECK(draw(heavy, 1, Stream::message, 0, 0) == kTimeEnd);
    CHECK(to_picoseconds(1e300) == kTimeEnd);
    CHECK(to_picoseconds(0.4) == 400);
    const Distribution endless = {Kind::exponential, std::numeric_limits<double>::infinity()};
    CHECK(!sim::check(endless).ok());
}
