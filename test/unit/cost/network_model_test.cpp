// The closed forms against the paper's equations worked out by hand, and equation 5 against a
// numeric search for the minimum of equation 4.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "test/support/catch.hpp"
#include "ucg_coll/cost/cost.hpp"

using namespace ucg::cost;

namespace {

constexpr PipeliningPostal kPaper = {.alpha_p_ns = 400,
                                     .alpha_r_ns = 100,
                                     .beta_ns_per_byte = 0.5,
                                     .gamma_ns_per_byte = 0.25,
                                     .reduce_fixed_ns = 10};

/// Where the derivative of (p + b r) / ln(b + 1) changes its sign, by bisection. The sign is that
/// of x ln x - (x - 1) - p / r at x = b + 1, which rises with x.
double least_b(double p, double r) {
    double low = 0;
    double high = 1e9;
    for (int i = 0; i < 200; ++i) {
        const double middle = low + (high - low) / 2;
        const double x = 1 + middle;
        (x * std::log1p(middle) - middle < p / r ? low : high) = middle;
    }
    return low;
}

} // namespace

TEST_CASE("cost: a phase of b costs what equation 3 says", "[cost][network]") {
    CHECK(phase_ns(kPaper, 1, 8) == 400 + (100 + 4 + 2 + 10));
    CHECK(phase_ns(kPaper, 7, 8) == 400 + 7 * (100 + 4 + 2 + 10));
    CHECK(phase_ns(kPaper, 3, 0) == 400 + 3 * 110);
}

TEST_CASE("cost: factored schedules add up their phases", "[cost][network]") {
    const std::array<std::uint32_t, 3> twos = {2, 2, 2};
    const std::array<std::uint32_t, 3> mixed = {3, 2, 5};
    const Postal postal = {.alpha_ns = 500, .beta_ns_per_byte = 0.5, .gamma_ns_per_byte = 0.25};
    CHECK(factored_ns(postal, twos, 8) == 3 * (500 + 4 + 2)); // This is equation 1.
    PipeliningPostal latency_only;
    latency_only.alpha_p_ns = 400;
    latency_only.alpha_r_ns = 100;
    // This is equation 4.
    CHECK(factored_ns(latency_only, twos, 0) == 3 * (400 + 100));
    // This is the sum in equation 4.
    CHECK(factored_ns(latency_only, mixed, 0) == 400 * 3 + 100 * (2 + 1 + 4));
    CHECK(factored_ns(kPaper, {}, 8) == 0);
}

TEST_CASE("cost: a message by itself costs the model's sum", "[cost][network]") {
    CHECK(message_terms(kPaper, 8).total_ns() == 504);
    CHECK(message_terms(Postal{.alpha_ns = 500, .beta_ns_per_byte = 0.5}, 8).total_ns() == 504);
    CHECK(message_terms(LogP{100, 20, 30}, 8).total_ns() == 140);
    const LogGp gp = default_profile().levels.back();
    for (const std::uint64_t bytes : {0, 1, 8, 4096}) {
        CHECK(message_terms(gp, bytes).total_ns() == Approx(message_ns(gp, bytes)));
    }
}

TEST_CASE("cost: the LogP family's phases", "[cost][network]") {
    const LogP logp = {.latency_ns = 100, .overhead_ns = 20, .gap_ns = 30};
    CHECK(phase_ns(logp, 1, 8) == 20 + 100 + 20);
    CHECK(phase_ns(logp, 4, 8) == 20 + 3 * 30 + 100 + 20);
    // The processor is the bottleneck: it issues four messages and takes in four.
    CHECK(phase_ns(LogP{.latency_ns = 10, .overhead_ns = 20, .gap_ns = 0}, 4, 8) == 160);

    const LogfP two_free = {.latency_ns = 100, .overhead_ns = 20, .gap_ns = 30, .free_messages = 2};
    CHECK(phase_ns(two_free, 1, 8) == phase_ns(logp, 1, 8));
    CHECK(phase_ns(two_free, 2, 8) == 2 * 20 + 100 + 20);
    CHECK(phase_ns(two_free, 4, 8) == 2 * 20 + 2 * 30 + 100 + 20);
    CHECK(phase_ns(LogfP{100, 20, 30, 1}, 4, 8) == phase_ns(logp, 4, 8));

    const LogGp gp = {.latency_ns = 100, .overhead_ns = 20, .gap_ns = 30, .gap_per_byte_ns = 0.5};
    CHECK(phase_ns(gp, 1, 9) == 20 + 4 + 100 + 20);
    CHECK(phase_ns(gp, 3, 9) == 20 + 2 * (4 + 30) + 4 + 100 + 20);
}

TEST_CASE("cost: W inverts z exp(z)", "[cost][network]") {
    for (double z = -0.99; z < 300; z = z * (z < 0 ? 0.7 : 1.3) + (std::abs(z) < 0.01 ? 0.02 : 0)) {
        INFO("z = " << z);
        CHECK(lambert_w(z * std::exp(z)) == Approx(z).epsilon(1e-12).margin(1e-15));
    }
    CHECK(lambert_w(0) == 0);
    CHECK(lambert_w(std::numbers::e) == Approx(1).epsilon(1e-15));
    CHECK(lambert_w(-1 / std::numbers::e) == Approx(-1).margin(1e-7));
}

TEST_CASE("cost: equation 5 is where equation 4 is least", "[cost][network]") {
    for (const double ratio : {0.01, 0.5, 1.0, 1.5, 2.0, 4.0, 10.0, 100.0, 1e4}) {
        const PipeliningPostal model = {.alpha_p_ns = 100 * ratio, .alpha_r_ns = 100};
        INFO("alpha_p / alpha_r = " << ratio);
        CHECK(optimal_b(model, 0) == Approx(least_b(100 * ratio, 100)).epsilon(1e-9));
    }
    // Bytes and reductions make each further message more expensive.
    CHECK(optimal_b(kPaper, 64) == Approx(least_b(400, 100 + 32 + 16 + 10)).epsilon(1e-9));
    CHECK(optimal_b({.alpha_r_ns = 100}, 0) == Approx(0).margin(1e-7));
    CHECK(optimal_b({.alpha_p_ns = 100}, 0) == std::numeric_limits<double>::infinity());
    // Figure 3: a ratio of one asks for e - 1 partners.
    CHECK(optimal_b({.alpha_p_ns = 1, .alpha_r_ns = 1}, 0) == Approx(std::numbers::e - 1));
}

TEST_CASE("cost: LogGP from a measured network has the same times", "[cost][network]") {
    const NetworkPostal network = {
        .alpha_p_ns = 2000, .alpha_r_ns = 300, .beta_ns_per_byte = 0.5, .measured = true};
    const PipeliningPostal postal = pipelining_postal(network, Profile());
    // The last overhead is too large for these parameters.
    for (const double overhead_ns : {0.0, 100.0, 150.25, 1000.0}) {
        const LogGp model = loggp_of(network, overhead_ns);
        CHECK(model.overhead_ns <= 150.25);
        for (const std::uint64_t bytes : {1, 8, 4096}) {
            INFO("overhead " << overhead_ns << ", bytes " << bytes);
            CHECK(message_ns(model, bytes) == Approx(2000 + 300 + 0.5 * bytes));
            CHECK(phase_ns(model, 1, bytes) == Approx(phase_ns(postal, 1, bytes)));
            CHECK(phase_ns(model, 7, bytes) == Approx(phase_ns(postal, 7, bytes)));
        }
    }
    CHECK(loggp_of(network, 100).overhead_ns == 100);
}

TEST_CASE("cost: the default's network is one network", "[cost][network]") {
    const Profile& profile = default_profile();
    const LogGp& level = profile.level(ucg::topo::Distance::network);
    const LogGp made = loggp_of(profile.network.median, level.overhead_ns);
    CHECK(message_ns(made, 1) == Approx(message_ns(level, 1)));
    CHECK(message_ns(made, 4096) == Approx(message_ns(level, 4096)));
    CHECK(made.gap_ns == Approx(level.gap_ns));
    CHECK(made.gap_per_byte_ns == level.gap_per_byte_ns);
    CHECK_FALSE(profile.network.median.measured);
    const PipeliningPostal postal = pipelining_postal(profile.network.minimum, profile);
    CHECK(postal.gamma_ns_per_byte == profile.reduce_per_byte_ns);
    CHECK(postal.reduce_fixed_ns == profile.reduce_fixed_ns);
}
