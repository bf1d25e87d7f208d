// Where the commands of ucg_tune write their results.
#pragma once

#include <string>

#include "tools/cli.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

/// Where a command is to write the profile: the options --output and --system.
class Target {
  public:
    void add_options(CLI::App& app);

    /// Whether one of the options was given.
    bool is_named() const { return system_ || !output_.empty(); }
    const std::string& output() const { return output_; } ///< Of --output; empty: not given.

    /// Returns the path of the profile to write.
    Result<std::string> path() const;

    /// Returns a failure if the profile cannot be written to `path`, which is path(): to be called
    /// before measuring. Makes the folder of a default path, and those above it.
    Status prepare(const std::string& path) const;

  private:
    std::string output_;
    bool system_ = false;
};

struct ExistingProfile {
    cost::Profile profile;
    std::string measured_on; ///< The processor (cost::measured_on); empty: the file does not say.
};

/// Returns the profile in this file; the built-in one if the file is empty or missing, or for "-".
Result<ExistingProfile> existing_profile(const std::string& path);

/// Returns the part of the profile that holds on this machine. If it was measured on another kind
/// of processor, that is its network alone; the rest is built in.
cost::Profile profile_here(const ExistingProfile& existing);

/// Returns a failure if the profile at the user's default path was measured on another kind of
/// processor: a home folder may be shared by hosts of several kinds, and hosts of that kind would
/// lose it.
Status refuse_foreign(const ExistingProfile& existing, const Target& target,
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
