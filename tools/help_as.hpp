// What a tool says with --help, for man and for the shells that complete commands: made of the
// command line itself, so that there is one source of what an option means.
#pragma once

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace ucg::tools {

/// The forms, which `--help-as` takes: "man" (roff with the macros of man(7)), "bash" and "zsh"
/// (a script that completes options, subcommands and names of files). Packages are built with them.
inline constexpr std::string_view kHelpForms = "man, bash, zsh";

/// Empty if there is no such form. `app` has its options, and has parsed nothing.
std::string help_as(const CLI::App& app, std::string_view form);

} // namespace ucg::tools
