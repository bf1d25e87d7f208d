#include "ucg_coll/cost/network_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace ucg::cost {

MessageTerms message_terms(const Postal& model, std::uint64_t bytes) {
    return {.inject_ns = model.alpha_ns + static_cast<double>(bytes) * model.beta_ns_per_byte};
}

MessageTerms message_terms(const PipeliningPostal& model, std::uint64_t bytes) {
    return {.inject_ns = model.alpha_r_ns + static_cast<double>(bytes) * model.beta_ns_per_byte,
            .flight_ns = model.alpha_p_ns};
}

MessageTerms message_terms(const LogP& model, std::uint64_t /*bytes*/) {
    return {.issue_ns = model.overhead_ns,
            .gap_ns = model.gap_ns,
            .flight_ns = model.latency_ns,
            .take_ns = model.overhead_ns};
}

MessageTerms message_terms(const LogfP& model, std::uint64_t /*bytes*/) {
    return {.issue_ns = model.overhead_ns,
            .gap_ns = model.gap_ns,
            .flight_ns = model.latency_ns,
            .take_ns = model.overhead_ns,
            .free_messages = model.free_messages};
}

MessageTerms message_terms(const LogGp& model, std::uint64_t bytes) {
    const double further = bytes > 0 ? static_cast<double>(bytes - 1) : 0.0;
    return {.issue_ns = model.overhead_ns,
            .inject_ns = further * model.gap_per_byte_ns,
            .gap_ns = model.gap_ns,
            .flight_ns = model.latency_ns,
            .take_ns = model.overhead_ns};
}

PipeliningPostal pipelining_postal(const NetworkPostal& network, const Profile& profile) {
    return {.alpha_p_ns = network.alpha_p_ns,
            .alpha_r_ns = network.alpha_r_ns,
            .beta_ns_per_byte = network.beta_ns_per_byte,
            .gamma_ns_per_byte = profile.reduce_per_byte_ns,
            .reduce_fixed_ns = profile.reduce_fixed_ns};
}

LogGp loggp_of(const NetworkPostal& network, double overhead_ns) {
    const double first_byte_ns = network.alpha_r_ns + network.beta_ns_per_byte;
    const double overhead = std::min(overhead_ns, first_byte_ns / 2);
    return {.latency_ns = network.alpha_p_ns + first_byte_ns - 2 * overhead,
            .overhead_ns = overhead,
            .gap_ns = first_byte_ns,
            .gap_per_byte_ns = network.beta_ns_per_byte};
}

double combine_ns(const Postal& model, std::uint64_t bytes) {
    return static_cast<double>(bytes) * model.gamma_ns_per_byte + model.reduce_fixed_ns;
}

double combine_ns(const PipeliningPostal& model, std::uint64_t bytes) {
    return static_cast<double>(bytes) * model.gamma_ns_per_byte + model.reduce_fixed_ns;
}

double last_arrival_ns(const MessageTerms& message, std::uint32_t b) {
    UCG_ASSERT(b >= 1 && message.free_messages >= 1);
    const std::uint32_t free = std::min(b, message.free_messages);
    const double free_ns = std::max(message.issue_ns, message.inject_ns);
    const double apart_ns = std::max(message.issue_ns, message.inject_ns + message.gap_ns);
    const double last_leaves_ns =
        message.issue_ns + (free - 1) * free_ns + (b - free) * apart_ns + message.inject_ns;
    return last_leaves_ns + message.flight_ns + message.take_ns;
}

double exchange_ns(const MessageTerms& message, std::uint32_t b) {
    // Messages arrive no faster than they are issued. Either taking one in costs no more than the
    // time between two of them, or they wait for the processor, which has b of them to issue first.
    return std::max(last_arrival_ns(message, b), b * (message.issue_ns + message.take_ns));
}

double phase_ns(const Postal& model, std::uint32_t b, std::uint64_t bytes) {
    return exchange_ns(message_terms(model, bytes), b) + b * combine_ns(model, bytes);
}

double phase_ns(const PipeliningPostal& model, std::uint32_t b, std::uint64_t bytes) {
    return exchange_ns(message_terms(model, bytes), b) + b * combine_ns(model, bytes);
}

double phase_ns(const LogP& model, std::uint32_t b, std::uint64_t bytes) {
    return exchange_ns(message_terms(model, bytes), b);
}

double phase_ns(const LogfP& model, std::uint32_t b, std::uint64_t bytes) {
    return exchange_ns(message_terms(model, bytes), b);
}

double phase_ns(const LogGp& model, std::uint32_t b, std::uint64_t bytes) {
    return exchange_ns(message_terms(model, bytes), b);
}

double optimal_b(const PipeliningPostal& model, std::uint64_t bytes) {
    const double each_ns = message_terms(model, bytes).inject_ns + combine_ns(model, bytes);
    if (each_ns <= 0) {
        return std::numeric_limits<double>::infinity();
    }
    const double argument = (model.alpha_p_ns - each_ns) / (std::numbers::e * each_ns);
    return std::exp(lambert_w(argument) + 1) - 1;
}

double lambert_w(double x) {
    // Without alpha_p, optimal_b() asks for -1/e itself, which rounding may have moved.
    const double above = std::numbers::e * x + 1;
    constexpr double kRounding = 1e-15;
    UCG_ASSERT(above >= -kRounding);
    if (above <= 0) {
        return -1;
    }
    // Where to begin: the series at the branch point, or the logarithm, which is close enough else.
    const double root = std::sqrt(2 * above);
    double w = x < 0 ? -1 + root - root * root / 3 : std::log1p(x);
    // Halley's iteration converges cubically; from there four steps suffice.
    constexpr int kStepsMax = 16;
    for (int step = 0; step < kStepsMax; ++step) {
        const double power = std::exp(w);
        const double error = w * power - x;
        const double slope = power * (w + 1);
        if (slope <= 0) { // It is closer to the branch point than doubles are to one another.
            break;
        }
        const double change = error / (slope - (w + 2) * error / (2 * w + 2));
        w -= change;
        if (std::abs(change) <= std::numeric_limits<double>::epsilon() * std::abs(w)) {
            break;
        }
    }
    return w;
}

} // namespace ucg::cost
