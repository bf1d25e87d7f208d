// Times as people write them on a command line, and options whose values are parsed so.
#pragma once

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// Removes the number at the beginning of `text` and stores it in `number`; what follows it stays
/// in `text`. Returns false if `text` does not begin with a number.
bool take_number(std::string_view& text, double& number);

/// Returns a time such as "400ns", "0.4ns", "1.5us", "2ms", "250ps", "1s" or "0" in nanoseconds.
/// Fails with invalid_argument and what was expected and found: a number without its unit is
/// refused, and so is what no profile could have (cost::kFigureMax).
Result<double> parse_time_ns(std::string_view text);

/// Adds an option whose value `parse` reads. A wrong value is refused with the message of `parse`.
/// `value` must outlive the parsing.
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
