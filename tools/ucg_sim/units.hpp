// Parses times and delays as people write them on a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/times.hpp"
#include "ucg_coll/sim/sim.hpp"

namespace ucg::tools {

/// Parses times separated by commas. Returns nanoseconds.
Result<std::vector<double>> parse_times_ns(std::string_view text);

/// A rank that enters the collective `ns` nanoseconds later than it otherwise would.
struct LateRank {
    Rank rank = 0;
    double ns = 0;
};

/// Parses a list such as "3=5us", "0=1us,7=250ns". A rank may be named repeatedly; its delays add
/// up.
Result<std::vector<LateRank>> parse_late_ranks(std::string_view text);

/// Parses a distribution: "none", "uniform:0ns,100ns", "exponential:50ns", "normal:100ns,20ns",
/// "pareto:10ns,2.5".
Result<sim::Distribution> parse_distribution(std::string_view text);

/// Returns a time as text: "400 ns", "0.4 ns".
std::string time_text(double ns);

} // namespace ucg::tools
