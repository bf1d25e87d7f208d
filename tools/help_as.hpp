// A tool's --help as a manual page and as completion scripts for shells. Both are made from the
// command line's definition, which is thus the only source of what an option means.
#pragma once

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace ucg::tools {

/// The forms that `--help-as` takes: "man" (roff with the macros of man(7)), "bash" and "zsh"
/// (scripts that complete options, subcommands and file names). Packages are built with them.
inline constexpr std::string_view kHelpForms = "man, bash, zsh";

/// Returns the help of `app` in this form, or "" if there is no such form. `app` has all its
/// options and has parsed nothing yet.
std::string help_as(const CLI::App& app, std::string_view form);

} // namespace ucg::tools
