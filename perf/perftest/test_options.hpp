// The options that describe one test, which the command line and a line of a batch file have in
// common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perf/perftest/options.hpp"

namespace ucg::perftest {

/// Where the options stand. In a line of a batch file -I is UCP's wakeup; on the command line it
/// belongs to the output.
enum class OptionsOf { command_line, batch_line };

/// Adds the options. The present values of `request` are the defaults. Both must outlive the
/// parsing.
void add_test_options(CLI::App& app, TestRequest& request, OptionsOf where);

/// Returns the pieces of a text between separators; at least one.
std::vector<std::string> split(std::string_view text, char separator);
/// Returns the words of a line, which blanks separate.
std::vector<std::string> words_of(std::string_view line);

/// Parses sizes such as "8,4k,1M" and ranges "8:1M". The sizes of a range double and end at the
/// last that does not exceed its end. Fails with what was expected and found.
Result<std::vector<std::size_t>> parse_sweep(const std::string& text);

} // namespace ucg::perftest
