// The options that describe one test: those that both the command line and a line of a batch file
// may have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perf/perftest/options.hpp"

namespace ucg::perftest {

/// In a line of a batch file -I is UCP's wakeup; on the command line it is the output's.
enum class OptionsOf { command_line, batch_line };

/// What `request` says already is what holds without an option. Both must outlive the parsing.
void add_test_options(CLI::App& app, TestRequest& request, OptionsOf where);

/// The pieces of a text between separators; at least one.
std::vector<std::string> split(std::string_view text, char separator);
/// The words of a line, between blanks.
std::vector<std::string> words_of(std::string_view line);

/// "8,4k,1M" and ranges "8:1M", whose sizes double; ranges end at the last that does not exceed
/// their end. Fails with what was expected and found.
Result<std::vector<std::size_t>> parse_sweep(const std::string& text);

} // namespace ucg::perftest
