// Where the commands of ucg_tune write their results.
#pragma once

#include <string>

#include "tools/cli.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

/// What --help says of --output. It names no folder of whoever runs it: manuals are made from it.
inline constexpr const char* kOutputHelp =
    "Profile to write; \"-\": standard output, and no report (default: where UCG finds it, "
    "ucg/profile.toml in $XDG_CONFIG_HOME or $HOME/.config)";

/// Returns the path of the profile to write: `output`, or the default path if that is empty.
Result<std::string> profile_path(const std::string& output);

/// Returns a failure if the profile cannot be written to `path`, which is profile_path(`output`):
/// to be called before measuring. Makes the folder of the default path, and those above it.
Status prepare_output(const std::string& output, const std::string& path);

struct ExistingProfile {
    cost::Profile profile;
    std::string measured_on; ///< The processor (cost::measured_on); empty: the file does not say.
};

/// Returns the profile in this file; the built-in one if the file is empty or missing, or for "-".
Result<ExistingProfile> existing_profile(const std::string& path);

/// Returns the part of the profile that holds on this machine. If it was measured on another kind
/// of processor, that is its network alone; the rest is built in.
cost::Profile profile_here(const ExistingProfile& existing);

/// Returns a failure if the profile at the default path (`output` is empty) was measured on another
/// kind of processor: a home folder may be shared by hosts of several kinds, and hosts of that kind
/// would lose it.
Status refuse_foreign(const ExistingProfile& existing, const std::string& output,
                      const std::string& path);

/// Writes the profile to `path`, and prints the report unless `path` is standard output. The report
/// is printed, too, if the profile cannot be written, which is a failure: measuring takes its time.
/// An empty `path`: there is only the report. Unless `silent`, says on standard error what was
/// written.
Status write_results(const std::string& path, const std::string& profile, const std::string& report,
                     bool silent);

/// Warns on standard error that the library will not read `path` here by default, if that profile
/// was measured on another kind of processor.
void tell_foreign(const ExistingProfile& existing, const std::string& path);

/// Checks that a report's format is given only with a report, and that a gnuplot program can hold
/// `plot` between quotes. To be called when all options are parsed. Throws CLI::ParseError.
void check_outputs(const CLI::App& app, const std::string& output, Format format,
                   const std::string& plot);

/// Runs gnuplot with this program and waits for it.
Status draw(const std::string& program);

} // namespace ucg::tools
