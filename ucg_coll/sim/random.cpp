#include "ucg_coll/sim/random.hpp"

#include <numbers>

namespace ucg::sim {

namespace {

/// SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014): every bit depends on every other.
std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/// Returns a number in the open interval from 0 to 1, so that its logarithm is finite.
double unit(std::uint64_t key, std::uint64_t number) {
    constexpr double kStep = 0x1p-53;
    return (static_cast<double>(mix(key + number) >> 11) + 0.5) * kStep;
}

double standard_normal(std::uint64_t key, std::uint64_t number) { // Box and Muller.
    return std::sqrt(-2 * std::log(unit(key, number))) *
           std::cos(2 * std::numbers::pi * unit(key, number + 1));
}

double truncated_normal(const Distribution& distribution, std::uint64_t key) {
    // The mean is not negative, so at least half of all draws are not, either: the probability that
    // 128 draws fail is at most 2^-128.
    constexpr std::uint64_t kDrawsMax = 128;
    for (std::uint64_t i = 0; i < kDrawsMax; ++i) {
        const double ns = distribution.first + distribution.second * standard_normal(key, 2 * i);
        if (ns >= 0) {
            return ns;
        }
    }
    return distribution.first;
}

double draw_ns(const Distribution& distribution, std::uint64_t key) {
    const auto [kind, first, second] = distribution;
    switch (kind) {
    case Distribution::Kind::none: return 0;
    case Distribution::Kind::uniform: return first + (second - first) * unit(key, 0);
    case Distribution::Kind::exponential: return -first * std::log(unit(key, 0));
    case Distribution::Kind::normal: return truncated_normal(distribution, key);
    case Distribution::Kind::pareto: return first * std::pow(unit(key, 0), -1 / second);
    }
    return 0;
}

} // namespace

Status check(const Distribution& distribution) {
    const auto [kind, first, second] = distribution;
    if (!std::isfinite(first) || !std::isfinite(second) || first < 0 || second < 0) {
        return {Code::invalid_argument, "a delay's parameters must be finite and not negative"};
    }
    if (kind == Distribution::Kind::uniform && second < first) {
        return failure(Code::invalid_argument,
                       "uniform delays: expected the lower bound first, found {} ns and {} ns",
                       first, second);
    }
    if (kind == Distribution::Kind::pareto && second == 0) {
        return {Code::invalid_argument, "pareto delays: the shape must be more than 0"};
    }
    return {};
}

Picoseconds draw(const Distribution& distribution, std::uint64_t seed, Stream stream, Rank rank,
                 std::uint64_t index) {
    if (distribution.kind == Distribution::Kind::none) {
        return 0;
    }
    std::uint64_t key = mix(seed + static_cast<std::uint64_t>(stream));
    key = mix(key ^ static_cast<std::uint64_t>(rank));
    return to_picoseconds(draw_ns(distribution, mix(key ^ index)));
}

} // namespace ucg::sim
