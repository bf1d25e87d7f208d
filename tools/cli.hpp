// What the command-line tools share: output formats, --version, files or standard streams, and one
// way from a command line to an exit status.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// Exit statuses of every tool.
enum ExitStatus : int {
    kExitOk = 0,
    kExitFailed = 1, ///< The input is malformed, a file cannot be read, the system failed.
    kExitUsage = 2,  ///< The command line is wrong.
};

/// What a tool can print; each command offers some of them.
enum class Format {
    text,    ///< For people, or the text form that other commands read; --help says which.
    outline, ///< For people, where text is for programs.
    json,
    dot, ///< For Graphviz.
    toml,
};
std::string_view name(Format format);

/// Adds an option whose value is one of `choices`; the value that `value` has is the default. A
/// wrong one is refused with the list of those that exist. `value` must outlive the parsing.
template <typename T>
CLI::Option* add_choice_option(CLI::App& app, const std::string& flag, T& value,
                               const std::vector<T>& choices, const std::string& description) {
    std::string names;
    for (const T& choice : choices) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", name(choice));
    }
    const auto assign = [&value, choices, names, flag](const std::string& text) {
        for (const T& choice : choices) {
            if (name(choice) == text) {
                value = choice;
                return;
            }
        }
        throw CLI::ValidationError(flag, fmt::format("expected one of {}; found {}", names, text));
    };
    return app
        .add_option_function<std::string>(
            flag, assign, fmt::format("{}: {} (default: {})", description, names, name(value)))
        ->type_name("NAME");
}

/// Adds --format with the formats offered, of which the first is the default.
/// `format` must outlive the parsing.
void add_format_option(CLI::App& app, Format& format, const std::vector<Format>& offered);

/// The whole content of a file, or of standard input if `path` is "-". Fails with io_error and the
/// file's name.
Result<std::string> read_input(const std::string& path);

/// Writes a file, or standard output if `path` is "-", to the end: a full disk is a failure.
Status write_output(const std::string& path, std::string_view text);

/// The same failure with the name of the file in which it was found before the message.
Status in_file(const std::string& path, const Status& status);

/// Adds --version, parses, runs `body`. A failure goes to standard error as "TOOL: message", and no
/// exception leaves. Returns an ExitStatus; the result of main().
int run(CLI::App& app, int argc, const char* const* argv, const std::function<Status()>& body);

} // namespace ucg::tools
