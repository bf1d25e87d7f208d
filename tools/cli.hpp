// What the command-line tools share: output formats, --version, and one way from a command line to
// an exit status.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/files.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// An output format. Each command offers some of these.
enum class Format {
    text,    ///< For people, or the text form that other commands read; --help says which.
    outline, ///< For people, where text is for programs.
    json,
    dot, ///< For Graphviz.
    toml,
};
std::string_view name(Format format);

/// The name of the validator that accepts the values of an option with choices.
inline constexpr const char* kChoice = "choice";

/// Returns "expected one of A, B; found X", followed by the name most similar to X if there is one.
/// `names` is separated by commas.
std::string not_a_choice(std::string_view names, std::string_view found);

/// Adds an option whose value is one of `choices`. The present value of `value` is the default. A
/// wrong value is refused with the list of those that exist. `value` must outlive the parsing.
template <typename T>
CLI::Option* add_choice_option(CLI::App& app, const std::string& flag, T& value,
                               const std::vector<T>& choices, const std::string& description) {
    std::string names;
    for (const T& choice : choices) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", name(choice));
    }
    const auto assign = [&value, choices](const std::string& text) {
        value = *std::find_if(choices.begin(), choices.end(),
                              [&](const T& choice) { return name(choice) == text; });
    };
    const auto refuse = [choices, names](const std::string& text) {
        const bool is_choice = std::any_of(choices.begin(), choices.end(),
                                           [&](const T& choice) { return name(choice) == text; });
        return is_choice ? "" : not_a_choice(names, text);
    };
    return app
        .add_option_function<std::string>(
            flag, assign, fmt::format("{}: {} (default: {})", description, names, name(value)))
        ->type_name("NAME")
        ->check(refuse, "", kChoice);
}

/// Adds --format with the formats offered, of which the first is the default.
/// `format` must outlive the parsing.
void add_format_option(CLI::App& app, Format& format, const std::vector<Format>& offered);

/// Returns a validator for the transform() of an option with a numeric value. It accepts digits
/// alone, for a number from `least` to `most`; it refuses a sign, an overflow and trailing
/// characters with the range and what was found.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);

/// Like whole_number(), but for bytes as parse_size() reads them: "8", "64k", "1M" (powers of
/// 1024).
CLI::Validator size_in_bytes(std::uint64_t least, std::uint64_t most);

/// Like whole_number(), but for a number that may have a fraction. Infinities and NaN are refused.
CLI::Validator real_number(double least, double most);

/// The largest number of ranks that a Rank can count.
constexpr std::uint64_t kRanksMax = std::numeric_limits<Rank>::max();

/// The most bytes that a collective may be asked about: offsets of all ranks' blocks must stay
/// countable.
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 48;

/// Adds --version and, for packagers, --help-as (help_as.hpp), parses the command line, and runs
/// `body`. A failure goes to standard error as "TOOL: message", and no exception leaves this
/// function. Returns an ExitStatus, for main() to return.
int run(CLI::App& app, int argc, const char* const* argv, const std::function<Status()>& body);

} // namespace ucg::tools
