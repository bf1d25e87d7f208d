#include "tools/help_as.hpp"

#include <algorithm>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {
namespace {

using Options = std::vector<const CLI::Option*>;
using Apps = std::vector<const CLI::App*>;

/// Returns the options that the help shows. Options with an empty group are hidden.
Options options_of(const CLI::App& app) {
    Options options =
        app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
    // Option groups are subcommands without a name.
    for (const CLI::App* group : app.get_subcommands([](const CLI::App* part) {
             return part->get_name().empty() && !part->get_group().empty();
         })) {
        const Options more = options_of(*group);
        options.insert(options.end(), more.begin(), more.end());
    }
    return options;
}

Apps subcommands_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App* part) { return !part->get_name().empty(); });
}

bool takes_value(const CLI::Option& option) {
    return option.get_items_expected_max() > 0;
}

bool takes_file(const CLI::Option& option) {
    return option.get_type_name().find("FILE") != std::string::npos;
}

/// Returns what can be typed for an option: "-o", "--output".
std::vector<std::string> switches_of(const CLI::Option& option) {
    std::vector<std::string> switches;
    for (const std::string& name : option.get_snames()) {
        switches.push_back("-" + name);
    }
    for (const std::string& name : option.get_lnames()) {
        switches.push_back("--" + name);
    }
    return switches;
}

std::string replaced(std::string_view text, char what, std::string_view by) {
    std::string result;
    for (const char c : text) {
        c == what ? result.append(by) : result.append(1, c);
    }
    return result;
}

// ---- man

/// Returns the text escaped for roff: backslashes and dashes stay, and no line is a request.
std::string roff(std::string_view text) {
    std::string escaped = replaced(replaced(text, '\\', "\\e"), '-', "\\-");
    std::string result;
    bool line_begins = true;
    for (const char c : escaped) {
        if (line_begins && (c == '.' || c == '\'')) {
            result += "\\&";
        }
        line_begins = c == '\n';
        result += c;
    }
    return result;
}

void add_options(std::string& page, const CLI::App& app) {
    for (const CLI::Option* option : options_of(app)) {
        std::string heading;
        for (const std::string& name : switches_of(*option)) {
            heading += fmt::format("{}\\fB{}\\fR", heading.empty() ? "" : ", ", roff(name));
        }
        if (heading.empty()) {
            heading = fmt::format("\\fI{}\\fR", roff(option->get_name(true)));
        } else if (takes_value(*option)) {
            heading += fmt::format(" \\fI{}\\fR", roff(option->get_type_name()));
        }
        page += fmt::format(".TP\n{}\n{}{}\n", heading, roff(option->get_description()),
                            option->get_required() ? " Required." : "");
    }
}

/// Appends the free text behind the options with its line breaks.
void add_notes(std::string& page, const CLI::App& app) {
    if (!app.get_footer().empty()) {
        page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(app.get_footer()));
    }
}

std::string man_page(const CLI::App& app) {
    const std::string name = roff(app.get_name());
    std::string summary = app.get_description();
    summary = summary.substr(0, summary.find(':'));
    while (!summary.empty() && summary.back() == '.') {
        summary.pop_back();
    }
    std::string page =
        fmt::format(".TH \"{}\" 1 \"\" \"UCG {}\" \"UCG\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n"
                    "\\fB{}\\fR [\\fIOPTIONS\\fR]{}\n.SH DESCRIPTION\n{}\n",
                    replaced(app.get_name(), ' ', "-"), UCG_VERSION, replaced(name, ' ', "\\-"),
                    roff(summary), name, subcommands_of(app).empty() ? "" : " \\fISUBCOMMAND\\fR",
                    roff(app.get_description()));
    page += ".SH OPTIONS\n";
    add_options(page, app);
    for (const CLI::App* command : subcommands_of(app)) {
        page += fmt::format(".SH {} {}\n{}\n", name, roff(command->get_name()),
                            roff(command->get_description()));
        add_options(page, *command);
        add_notes(page, *command);
    }
    if (!app.get_footer().empty()) {
        page += ".SH NOTES";
        page += app.get_footer().front() == '\n' ? "" : "\n";
        add_notes(page, app);
    }
    return page;
}

// ---- shells

std::string joined_switches(const CLI::App& app) {
    std::string all;
    for (const CLI::Option* option : options_of(app)) {
        for (const std::string& name : switches_of(*option)) {
            all += all.empty() ? name : " " + name;
        }
    }
    return all;
}

/// Returns a pattern such as "-o|--output" of the options of `app` and its subcommands whose value
/// is a file, or, if `files` is false, something else.
std::string pattern_of(const CLI::App& app, bool files) {
    std::string pattern;
    Apps apps = subcommands_of(app);
    apps.push_back(&app);
    for (const CLI::App* part : apps) {
        for (const CLI::Option* option : options_of(*part)) {
            if (!takes_value(*option) || takes_file(*option) != files) {
                continue;
            }
            for (const std::string& name : switches_of(*option)) {
                pattern += pattern.empty() ? name : "|" + name;
            }
        }
    }
    return pattern.empty() ? "''" : pattern; // '' matches no word that precedes another.
}

std::string bash_completion(const CLI::App& app) {
    const std::string& name = app.get_name();
    std::string cases;
    std::string commands;
    for (const CLI::App* command : subcommands_of(app)) {
        commands += " " + command->get_name();
        cases += fmt::format("            {}) words='{}'; break ;;\n", command->get_name(),
                             joined_switches(*command));
    }
    return fmt::format(R"(# bash completion of {0}; made by {0} --help-as bash.
_{0}() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} word
    local words='{1}{2}'
    case "$previous" in
    {3}) mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    {4}) return ;;
    esac
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD - 1}}"; do
        case "$word" in
{5}            -*) ;;
        esac
    done
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o filenames -F _{0} {0}
)",
                       name, joined_switches(app), commands, pattern_of(app, true),
                       pattern_of(app, false), cases);
}

/// Returns the text as zsh's _arguments takes it in brackets.
std::string zsh_text(std::string_view text) {
    std::string escaped = replaced(replaced(text, '\'', "'\\''"), '\n', " ");
    return replaced(replaced(replaced(escaped, '[', "\\["), ']', "\\]"), ':', "\\:");
}

std::string zsh_arguments(const CLI::App& app, std::string_view indent) {
    std::string arguments;
    for (const CLI::Option* option : options_of(app)) {
        for (const std::string& name : switches_of(*option)) {
            arguments += fmt::format(
                " \\\n{}'{}[{}]{}'", indent, name, zsh_text(option->get_description()),
                !takes_value(*option) ? ""
                : takes_file(*option) ? ":file:_files"
                                      : fmt::format(":{}: ", zsh_text(option->get_type_name())));
        }
    }
    return arguments;
}

std::string zsh_completion(const CLI::App& app) {
    const std::string& name = app.get_name();
    const Apps commands = subcommands_of(app);
    std::string script = fmt::format("#compdef {0}\n# zsh completion of {0}; made by {0} --help-as "
                                     "zsh.\n",
                                     name);
    if (commands.empty()) {
        return script + fmt::format("_arguments{}\n", zsh_arguments(app, "    "));
    }
    std::string names;
    std::string cases;
    for (const CLI::App* command : commands) {
        names +=
            fmt::format("    '{}:{}'\n", command->get_name(), zsh_text(command->get_description()));
        cases += fmt::format("{})\n    _arguments{}\n    ;;\n", command->get_name(),
                             zsh_arguments(*command, "        "));
    }
    return script + fmt::format(R"(local -a commands=(
{})
local curcontext=$curcontext state line
_arguments -C{} \
    '1: :->command' '*:: :->rest'
[[ $state == command ]] && _describe subcommand commands
[[ $state == rest ]] && case $line[1] in
{}esac
)",
                                names, zsh_arguments(app, "    "), cases);
}

} // namespace

std::string help_as(const CLI::App& app, std::string_view form) {
    if (form == "man") {
        return man_page(app);
    }
    if (form == "bash") {
        return bash_completion(app);
    }
    return form == "zsh" ? zsh_completion(app) : std::string();
}

} // namespace ucg::tools
