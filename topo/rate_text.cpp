#include "topo/rate_text.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace ucg::topo {

namespace {

constexpr std::string_view kPrefixes = "kmgt"; // 1000 to the power of 1, 2, 3 and 4.
constexpr double kBitsMin = 8.0 * kRateMin;
constexpr double kBitsMax = 8.0 * kRateMax;

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Returns how many bits one `unit` is; 0 if there is no such unit.
double bits_in(std::string_view unit) {
    std::string small(unit);
    for (char& c : small) {
        c = lower(c);
    }
    double factor = 1;
    std::string_view rest = small;
    if (const std::size_t prefix = kPrefixes.find(rest.empty() ? '?' : rest.front());
        prefix != std::string_view::npos) {
        factor = std::pow(1000.0, static_cast<double>(prefix + 1));
        rest.remove_prefix(1);
    }
    return rest == "bit" ? factor : rest == "bps" ? factor * 8 : 0;
}

} // namespace

Result<std::uint64_t> parse_rate(std::string_view text) {
    const auto refuse = [&](std::string_view reason) {
        return failure(Code::invalid_argument, "rate '{}': {}", text.substr(0, 40), reason);
    };
    const std::size_t unit_at = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::string_view number = text.substr(0, unit_at);
    const double unit = bits_in(text.substr(unit_at));
    double value = 0;
    const char* const end = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), end, value);
    const bool is_number =
        error == std::errc() && stop == end && number.front() != '.' && number.back() != '.';
    if (!is_number || unit == 0) {
        return refuse("expected a number and a unit, such as 100mbit or 1gbit");
    }
    const double bits = value * unit;
    if (bits < kBitsMin) {
        return refuse("less than 8kbit moves nothing");
    }
    if (bits > kBitsMax) {
        return refuse("more than 1000tbit is no limit; leave it out");
    }
    return static_cast<std::uint64_t>(std::llround(bits / 8));
}

std::string rate_text(std::uint64_t bytes_per_second) {
    std::uint64_t bits = bytes_per_second * 8;
    std::size_t prefix = 0;
    while (prefix < kPrefixes.size() && bits % 1000 == 0) {
        bits /= 1000;
        ++prefix;
    }
    return fmt::format("{}{}bit", bits, prefix == 0 ? "" : kPrefixes.substr(prefix - 1, 1));
}

std::string format_rate(double bytes_per_second) {
    static constexpr std::array<std::string_view, 5> kUnits = {"bit/s", "kbit/s", "Mbit/s",
                                                               "Gbit/s", "Tbit/s"};
    if (bytes_per_second == 0) {
        return "unknown";
    }
    double bits = bytes_per_second * 8;
    std::size_t unit = 0;
    while (bits >= 1000 && unit + 1 < kUnits.size()) {
        bits /= 1000;
        ++unit;
    }
    return fmt::format("{:.4g} {}", bits, kUnits[unit]);
}

} // namespace ucg::topo
