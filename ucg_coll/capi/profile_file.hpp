// Where a process finds the costs that its plans are chosen by: UCG_PROFILE, else the places where
// `ucg_tune` writes them, first the user's and then those of the system, as the XDG Base Directory
// Specification has it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::capi {

/// The value of UCG_PROFILE that asks for no file, but for the built-in costs.
inline constexpr std::string_view kBuiltinProfile = "builtin";

/// Returns the built-in costs for the processor at hand.
cost::BuiltinCosts builtin_costs_here();

/// A file that a process has looked for, and what became of it.
struct LookedFor {
    std::string path;
    std::string_view outcome; ///< "used", "not there", ...
};

/// The costs of a process and how it came to them.
struct LoadedProfile {
    cost::Profile profile = builtin_costs_here().profile;
    std::uint64_t hash = cost::hash_of(profile);
    std::string path;   ///< Of the file; empty: the costs are built in.
    bool named = false; ///< The user named it, or asked for what is built in.
    /// What is wrong with files, though the program runs, and the remedy; or empty.
    std::string complaint;
    std::vector<LookedFor> looked_for; ///< In this order; none if the user named the file.
};

/// For about how many seconds `ucg_tune memory` measures, unless it is told otherwise.
inline constexpr unsigned kTuneSeconds = 10;

/// Returns what measuring this machine would bring and how it is done, where nobody has measured
/// it. Empty where somebody has, where the user asked for the built-in costs, and where there is a
/// complaint, which gives the advice as well.
std::string tune_advice(const LoadedProfile& loaded);

/// Returns the path of the user's profile: $XDG_CONFIG_HOME/ucg/profile.toml, or
/// $HOME/.config/ucg/profile.toml where the former is not set to an absolute path; empty where HOME
/// is not either.
std::string default_profile_path();

/// Returns PROCESSOR below: cost::processor_text() of this processor as part of a file's name, such
/// as "AuthenticAMD-family-25-model-17"; empty if the processor is not known.
std::string processor_file_name();

/// Returns the path of the profile for all users of machines with this kind of processor:
/// ucg/profiles/PROCESSOR.toml in the first folder of $XDG_CONFIG_DIRS (/etc/xdg where that is not
/// set), or ucg/profile.toml there if the processor is not known. Empty if no folder is absolute.
std::string system_profile_path();

/// Reads the file that `setting` names. If that is empty, reads the first usable one of
/// default_profile_path() and, in each folder of $XDG_CONFIG_DIRS, ucg/profiles/PROCESSOR.toml and
/// ucg/profile.toml. Fails with "UCG_PROFILE: PATH: ..." if a file that was named cannot be read or
/// is malformed. Files that nobody named may be missing. One that cannot be read, is malformed or
/// was measured on another kind of processor is passed over with a complaint, which the first such
/// rank of a group logs; if there is no other, the built-in costs are used. A file of another
/// processor that was named is used, with a complaint as well.
Result<LoadedProfile> load_profile(std::string_view setting);

} // namespace ucg::capi
