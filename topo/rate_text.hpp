// Rates of links as text: files and people count in bits, the library counts in bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ucg_coll/base/base.hpp"

namespace ucg::topo {

/// The lowest and the highest rate of a link that files may give, 8 kbit/s and 1000 Tbit/s, in
/// bytes per second.
inline constexpr std::uint64_t kRateMin = 1000;
inline constexpr std::uint64_t kRateMax = 125'000'000'000'000;

/// Reads a rate, "100mbit" -> 12,500,000 bytes per second: a number, maybe with a fraction, and a
/// unit as tc(8) names them: bit, kbit, mbit, gbit, tbit (powers of 1000), or bps, kbps, ... for
/// bytes; case does not matter. Fails with invalid_argument, also for less than 8kbit or more than
/// 1000tbit, which is a mistake.
Result<std::uint64_t> parse_rate(std::string_view text);

/// Returns the form that parse_rate() reads back to an equal value: "100mbit".
std::string rate_text(std::uint64_t bytes_per_second);

/// Returns the rate for people, in bits: "100 Mbit/s", with at most four significant digits;
/// "unknown" for 0.
std::string format_rate(double bytes_per_second);

} // namespace ucg::topo
