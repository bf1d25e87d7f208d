#include "tools/cli.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <exception>
#include <iostream>
#include <system_error>

#include "tools/help_as.hpp"
#include "ucg_coll/base/printable.hpp"
#include "ucg_coll/base/similar.hpp"

namespace ucg::tools {

namespace {

void print_failure(const CLI::App& app, std::string_view message) {
    const std::string line =
        fmt::format("{}: {}\n", app.get_name(), printable(message, LineBreaks::escape));
    std::fputs(line.c_str(), stderr);
}

/// Appends the options and subcommands that may stand on the command line, with those of the
/// subcommand that was given.
void add_names(const CLI::App& app, std::vector<std::string>& names) {
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) {
            names.push_back("--" + name);
        }
    }
    for (const CLI::App* part :
         app.get_subcommands([](const CLI::App* /*part*/) { return true; })) {
        if (part->get_name().empty() || part->parsed()) { // Groups of options have no name.
            add_names(*part, names);
        } else {
            names.push_back(part->get_name());
        }
    }
}

std::vector<std::string_view> split(std::string_view names) {
    constexpr std::string_view kComma = ", ";
    std::vector<std::string_view> words;
    for (std::size_t begin = 0; begin < names.size();) {
        const std::size_t end = std::min(names.find(kComma, begin), names.size());
        words.push_back(names.substr(begin, end - begin));
        begin = end + kComma.size();
    }
    return words;
}

/// Returns whether `word` is a value of an option that add_choice_option() has added.
bool offers(CLI::Option& option, const std::string& word) {
    try {
        return (*option.get_validator(kChoice))(word).empty();
    } catch (const CLI::OptionNotFound&) {
        return false;
    }
}

/// Returns the first option that has `word` among its choices; empty if none has.
std::string option_with(CLI::App& app, const std::string& word) {
    for (CLI::Option* option : app.get_options()) {
        if (offers(*option, word)) {
            return option->get_name();
        }
    }
    for (CLI::App* part : app.get_subcommands([](CLI::App* /*part*/) { return true; })) {
        if (part->get_name().empty() || part->parsed()) {
            if (std::string name = option_with(*part, word); !name.empty()) {
                return name;
            }
        }
    }
    return {};
}

/// Returns the program with the subcommand that was given, such as "ucg_plan explain".
std::string command_of(const CLI::App& app) {
    std::string command = app.get_name();
    for (const CLI::App* part : app.get_subcommands()) {
        command += part->get_name().empty() ? "" : " " + part->get_name();
    }
    return command;
}

/// Returns a line for each word that was not understood but is similar to a name that exists, or is
/// the value of an option that was left out.
std::string proposals(CLI::App& app) {
    std::vector<std::string> names;
    add_names(app, names);
    const std::vector<std::string_view> views(names.begin(), names.end());
    std::string lines;
    for (const std::string& word : app.remaining(true)) {
        if (const std::string option = option_with(app, word); !option.empty()) {
            lines += fmt::format("'{}' is a value; did you mean {} {}?\n", word, option, word);
            continue;
        }
        const std::string_view typed = std::string_view(word).substr(0, word.find('='));
        const std::string_view similar = most_similar(typed, views);
        if (typed.size() > 2 && !similar.empty()) {
            lines += fmt::format("There is no '{}'; did you mean {}?\n", typed, similar);
        }
    }
    return lines;
}

/// Returns CLI11's message behind the name of the command, with proposals. It is made printable,
/// since it may quote file names.
std::string usage_message(CLI::App& app, const CLI::Error& error) {
    return printable(fmt::format("{}: {}\n{}Run with --help for more information.\n",
                                 command_of(app), error.what(), proposals(app)));
}

CLI::Validator validator(std::function<std::string(std::string&)> read) {
    return CLI::Validator(std::move(read), "");
}

// Parses digits alone: no sign, no blank, no prefix that sets the base.
bool parse_digits(std::string_view text, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

/// Prints the help in a form for packagers of the tools. Returns the exit status.
int print_help_as(const CLI::App& app, std::string_view form) {
    const std::string help = help_as(app, form);
    if (help.empty()) {
        print_failure(app,
                      fmt::format("--help-as: expected one of {}; found {}", kHelpForms, form));
        return kExitUsage;
    }
    const Status status = write_output("-", help);
    if (!status.ok()) {
        print_failure(app, status.message());
    }
    return status.ok() ? kExitOk : kExitFailed;
}

int print_answer(const CLI::App& app, const CLI::Success& asked) {
    app.exit(asked);
    std::cout.flush();
    const Status status = check_printed();
    if (!status.ok()) {
        print_failure(app, status.message());
    }
    return status.ok() ? kExitOk : kExitFailed;
}

int parse_and_run(CLI::App& app, int argc, const char* const* argv,
                  const std::function<Status()>& body) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) { // --help and --version.
        return print_answer(app, asked);
    } catch (const CLI::ParseError& error) {
        // If an option was mistyped, the message should not say that this option is missing.
        const bool is_unknown = app.remaining_size(true) > 0;
        app.exit(is_unknown ? CLI::ExtrasError(app.remaining_for_passthrough(true)) : error);
        return kExitUsage;
    }
    const Status status = body();
    if (!status.ok()) {
        print_failure(app, status.message());
        return kExitFailed;
    }
    return kExitOk;
}

} // namespace

std::string_view name(Format format) {
    static constexpr std::array<std::string_view, 5> kNames = {"text", "outline", "json", "dot",
                                                               "toml"};
    return kNames[static_cast<std::size_t>(format)];
}

std::string not_a_choice(std::string_view names, std::string_view found) {
    const std::string_view similar = most_similar(found, split(names));
    return fmt::format("expected one of {}; found {}{}", names, found,
                       similar.empty() ? "" : fmt::format("; did you mean {}?", similar));
}

void add_format_option(CLI::App& app, Format& format, const std::vector<Format>& offered) {
    format = offered.front();
    add_choice_option(app, "--format", format, offered, "Output");
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
    return validator([least, most](std::string& text) -> std::string {
        std::uint64_t value = 0;
        if (!parse_digits(text, value) || value < least || value > most) {
            return fmt::format("expected a whole number from {} to {}, found '{}'", least, most,
                               text);
        }
        text = fmt::format("{}", value);
        return {};
    });
}

CLI::Validator size_in_bytes(std::uint64_t least, std::uint64_t most) {
    return validator([least, most](std::string& text) -> std::string {
        const Result<std::uint64_t> bytes = parse_size(text);
        if (!bytes || *bytes < least || *bytes > most) {
            return fmt::format("expected a size from {} to {}, such as 65536, 64k, 16M or 1G; "
                               "found '{}'",
                               size_text(least), size_text(most), text);
        }
        text = fmt::format("{}", *bytes);
        return {};
    });
}

CLI::Validator real_number(double least, double most) {
    return validator([least, most](std::string& text) -> std::string {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        // No order holds for what is not a number, and an infinite one is above any limit.
        if (error != std::errc() || end != text.data() + text.size() ||
            !(value >= least && value <= most)) {
            return fmt::format("expected a number from {} to {}, found '{}'", least, most, text);
        }
        return {};
    });
}

int run(CLI::App& app, int argc, const char* const* argv, const std::function<Status()>& body) {
    try {
        app.failure_message([&app](const CLI::App* /*same*/, const CLI::Error& error) {
            return usage_message(app, error);
        });
        app.set_version_flag("--version", fmt::format("{} (UCG) {}", app.get_name(), UCG_VERSION));
        if (argc == 3 && argv[1] == std::string_view("--help-as")) {
            return print_help_as(app, argv[2]);
        }
        return parse_and_run(app, argc, argv, body);
    } catch (const std::exception& error) { // Out of memory.
        print_failure(app, error.what());
        return kExitFailed;
    }
}

} // namespace ucg::tools
