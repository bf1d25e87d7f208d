// Where the commands of ucg_tune put what they found.
#pragma once

#include <string>

#include "tools/cli.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

/// Where UCG finds a profile unasked, or why that is nowhere; for --help.
std::string shown_default_path();

/// The profile to write: `output`, or the default place if it is empty.
Result<std::string> profile_path(const std::string& output);

/// The folder of a file, and those above it.
Status make_folder(const std::string& path);

struct ExistingProfile {
    cost::Profile profile;
    std::string measured_on; ///< The processor (cost::measured_on); empty: the file does not say.
};

/// What the file says already; what is built in if it is empty, if there is none, or for "-".
Result<ExistingProfile> existing_profile(const std::string& path);

/// What of it holds on this machine: if it was measured on another kind of processor, its network
/// alone, and for the rest what is built in.
cost::Profile profile_here(const ExistingProfile& existing);

/// Says on standard error that the library will not read `path` here unasked, if that profile was
/// measured on another kind of processor.
void tell_foreign(const ExistingProfile& existing, const std::string& path);

/// To be called when all options are parsed: the report's format goes with a report, and a gnuplot
/// program can hold `plot` between quotes. Throws CLI::ParseError.
void check_outputs(const CLI::App& app, const std::string& output, Format format,
                   const std::string& plot);

/// Gives a program to gnuplot and waits for it.
Status draw(const std::string& program);

} // namespace ucg::tools
