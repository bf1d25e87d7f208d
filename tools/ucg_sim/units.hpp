// Times and delays as people write them on a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "ucg_coll/sim/sim.hpp"

namespace ucg::tools {

/// "400ns", "0.4ns", "1.5us", "2ms", "250ps", "1s", "0": in nanoseconds. Fails with
/// invalid_argument and what was expected and found; a number without its unit is refused.
Result<double> parse_time_ns(std::string_view text);

/// Those separated by commas.
Result<std::vector<double>> parse_times_ns(std::string_view text);

/// A rank that enters so much later than otherwise.
struct LateRank {
    Rank rank = 0;
    double ns = 0;
};

/// "3=5us", "0=1us,7=250ns"; a rank may be named again, and is that much later.
Result<std::vector<LateRank>> parse_late_ranks(std::string_view text);

/// "none", "uniform:0ns,100ns", "exponential:50ns", "normal:100ns,20ns", "pareto:10ns,2.5".
Result<sim::Distribution> parse_distribution(std::string_view text);

/// "400 ns", "0.4 ns".
std::string time_text(double ns);

/// Adds an option whose value `parse` reads; a wrong one is refused with its message. `value` must
/// outlive the parsing.
template <typename T, typename U>
CLI::Option* add_parsed_option(CLI::App& app, const std::string& flag, T& value,
                               Result<U> (*parse)(std::string_view), const std::string& type,
                               const std::string& description) {
    const auto assign = [&value, parse, flag](const std::string& text) {
        const Result<U> parsed = parse(text);
        if (!parsed) {
            throw CLI::ValidationError(flag, std::string(parsed.status().message()));
        }
        value = *parsed;
    };
    return app.add_option_function<std::string>(flag, assign, description)->type_name(type);
}

} // namespace ucg::tools
