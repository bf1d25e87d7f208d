// How ucg_tune derives a network's parameters from times of multicasts, on times for which these
// are known.
#include "test/support/catch.hpp"
#include "tools/ucg_tune/network_fit.hpp"
#include "tools/ucg_tune/network_report.hpp"

using namespace ucg;
using namespace ucg::tools;

namespace {

constexpr double kAlphaP = 2000;
constexpr double kAlphaR = 250;
constexpr double kBeta = 0.5;

/// The model's time for a multicast and its answers of 8 bytes.
double round_trip(Sending sending, std::uint32_t messages, std::uint64_t bytes) {
    const auto one_way = [](double b, std::uint64_t n) {
        return kAlphaP + b * (kAlphaR + static_cast<double>(n) * kBeta);
    };
    return sending == Sending::blocking ? messages * (one_way(1, bytes) + one_way(1, 8))
                                        : one_way(messages, bytes) + one_way(1, 8);
}

std::vector<Multicast> measured(std::vector<std::uint64_t> lengths) {
    std::vector<Multicast> multicasts;
    for (const std::uint64_t bytes : lengths) {
        for (const Sending sending : {Sending::nonblocking, Sending::blocking}) {
            for (std::uint32_t b = 1; b <= 8; ++b) {
                // The best time once, twice as much in the middle, and a time with noise at the
                // end.
                const double best = round_trip(sending, b, bytes);
                multicasts.push_back({sending,
                                      b,
                                      bytes,
                                      {2 * best, 9 * best, best, 2 * best, 2 * best},
                                      {40.0 * b, 40.0 * b, 4000}});
            }
        }
    }
    return multicasts;
}

} // namespace

TEST_CASE("tune: the regression finds the model that made the times", "[tune]") {
    const NetworkFit fit = fit_network(measured({8, 1024, 8192}));
    CHECK(fit.costs.minimum.alpha_p_ns == Approx(kAlphaP));
    CHECK(fit.costs.minimum.alpha_r_ns == Approx(kAlphaR));
    CHECK(fit.costs.minimum.beta_ns_per_byte == Approx(kBeta));
    CHECK(fit.costs.minimum.measured);
    CHECK(fit.costs.median.alpha_p_ns == Approx(2 * kAlphaP));
    CHECK(fit.costs.median.alpha_r_ns == Approx(2 * kAlphaR));
    CHECK(fit.costs.median.beta_ns_per_byte == Approx(2 * kBeta));
    CHECK(fit.overhead_ns == Approx(40));
    CHECK(fit.answer_minimum_ns == Approx(kAlphaP + kAlphaR + 8 * kBeta));
    CHECK(fit.notes.empty());
}

TEST_CASE("tune: messages one at a time are a line through nothing", "[tune]") {
    const std::vector<Multicast> multicasts = measured({8, 16});
    const NetworkFit fit = fit_network(multicasts);
    for (const Multicast& each : multicasts) {
        const double best = box_of(each.round_trip_ns).minimum;
        const double b = each.sending == Sending::blocking ? 1 : each.messages;
        const double times = each.sending == Sending::blocking ? each.messages : 1;
        const double bytes = each.sending == Sending::blocking
                                 ? (static_cast<double>(each.bytes) + 8) / 2
                                 : static_cast<double>(each.bytes);
        CHECK(one_way_ns(each, best, fit.answer_minimum_ns) ==
              Approx(times * (kAlphaP + b * (kAlphaR + bytes * kBeta))));
    }
}

TEST_CASE("tune: what costs nothing above noise is said", "[tune]") {
    std::vector<Multicast> multicasts = measured({8, 64});
    for (Multicast& each : multicasts) {
        each.round_trip_ns = {1000, 1000, 1000};
    }
    const NetworkFit fit = fit_network(multicasts);
    CHECK(fit.costs.median.alpha_r_ns == 0);
    CHECK(fit.costs.median.beta_ns_per_byte == 0);
    CHECK(fit.notes.size() == 4);
}

TEST_CASE("tune: a disturbed single message makes no profile that cannot be read", "[tune]") {
    std::vector<Multicast> multicasts = measured({8, 1024, 8192});
    for (Multicast& each : multicasts) {
        if (each.messages == 1) {
            each.round_trip_ns.assign(3, 1e6);
        }
    }
    NetworkResult result;
    result.hosts = {"a", "b"};
    result.fit = fit_network(multicasts);
    CHECK(result.fit.costs.minimum.alpha_p_ns >= 0);
    CHECK(result.fit.costs.median.alpha_p_ns >= 0);
    CHECK(cost::parse_toml(to_profile_toml(result, cost::default_profile(), "test")).ok());
}

TEST_CASE("tune: the box of a distribution", "[tune]") {
    const Box box = box_of({5, 1, 4, 2, 3});
    CHECK(box.minimum == 1);
    CHECK(box.low == 2);
    CHECK(box.median == 3);
    CHECK(box.high == 4);
    CHECK(box.maximum == 5);
    CHECK(box_of({}).maximum == 0);
}

TEST_CASE("tune: the gap of a stream is what passes after a bucketful", "[tune]") {
    // The first batch empties a bucket of 125 kB; one batch in the middle was disturbed.
    const StreamTimes shaped{64 << 10, 4 << 20, {32.6e6, 33.6e6, 33.6e6, 90e6, 33.6e6}};
    CHECK(stream_gap_ns(shaped) == Approx(33.6e6 / (4 << 20)));
    CHECK(stream_gap_ns({64 << 10, 4 << 20, {32.6e6}}) == 0);
    CHECK(stream_gap_ns({}) == 0);
}

TEST_CASE("tune: the profile's gap per byte is the stream's where that is larger", "[tune]") {
    constexpr auto kNetwork = static_cast<std::size_t>(topo::Distance::network);
    NetworkResult result;
    result.hosts = {"a", "b"};
    result.fit = fit_network(measured({8, 1024, 8192}));
    result.stream = {64 << 10, 4 << 20, {1, 8.0 * (4 << 20), 8.0 * (4 << 20)}};
    const auto written = [&] {
        return cost::parse_toml(to_profile_toml(result, cost::default_profile(), "test")).value();
    };
    CHECK(written().levels[kNetwork].gap_per_byte_ns == Approx(8));
    CHECK(written().network.median.beta_ns_per_byte == Approx(2 * kBeta));
    result.stream.batch_ns = {1, 1, 1};
    CHECK(written().levels[kNetwork].gap_per_byte_ns == Approx(2 * kBeta));
}

TEST_CASE("tune: contention is how much longer an exchange takes, not less than once", "[tune]") {
    const PairwiseTimes exchange{3, 4 << 20, {1, 62e6, 90e6, 60e6}};
    CHECK(contention(exchange, 31e6 / (4 << 20)) == Approx(2));
    CHECK(contention(exchange, 90e6 / (4 << 20)) == 1);
    CHECK(contention(exchange, 0) == 0);
    CHECK(contention({2, 4 << 20, {1, 60e6}}, 8) == 0);
    CHECK(contention({3, 4 << 20, {60e6}}, 8) == 0);
    CHECK(contention({}, 8) == 0);
}

TEST_CASE("tune: the profile has the contention that was measured, else what it had", "[tune]") {
    NetworkResult result;
    result.hosts = {"a", "b", "c"};
    result.fit = fit_network(measured({8, 1024, 8192}));
    const auto written = [&] {
        return cost::parse_toml(to_profile_toml(result, cost::default_profile(), "test")).value();
    };
    CHECK(written().links == cost::default_profile().links);
    result.stream = {64 << 10, 4 << 20, {1, 30e6}};
    result.exchange = {3, 4 << 20, {1, 45e6}};
    CHECK(written().links == cost::LinkCosts{1.5, true});
}
