// Where a process finds the costs that its plans are chosen by: UCG_PROFILE, else the place where
// `ucg_tune` writes them.
#pragma once

#include <string>
#include <string_view>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::capi {

/// The value of UCG_PROFILE that asks for no file, but for the built-in costs.
inline constexpr std::string_view kBuiltinProfile = "builtin";

/// Returns the built-in costs for the processor at hand.
cost::BuiltinCosts builtin_costs_here();

/// The costs of a process and how it came to them.
struct LoadedProfile {
    cost::Profile profile = builtin_costs_here().profile;
    std::uint64_t hash = cost::hash_of(profile);
    std::string path;   ///< Of the file; empty: the costs are built in.
    bool named = false; ///< The user named it, or asked for what is built in.
    /// What is wrong with the file, though the program runs, and the remedy; or empty.
    std::string complaint;
};

/// For about how many seconds `ucg_tune memory` measures, unless it is told otherwise.
inline constexpr unsigned kTuneSeconds = 10;

/// Returns what measuring this machine would bring and how it is done, where nobody has measured
/// it. Empty where somebody has, where the user asked for the built-in costs, and where there is a
/// complaint, which gives the advice as well.
std::string tune_advice(const LoadedProfile& loaded);

/// Returns $XDG_CONFIG_HOME/ucg/profile.toml, or $HOME/.config/ucg/profile.toml where the former is
/// not set to an absolute path; empty where HOME is not either.
std::string default_profile_path();

/// Reads the file that `setting` names, or the one at default_profile_path() if `setting` is empty.
/// Fails with "UCG_PROFILE: PATH: ..." if a file that was named cannot be read or is malformed. A
/// file that nobody named may be missing. If it is malformed, or was measured on another kind of
/// processor, that is a complaint, which the first such rank of a group logs, and the built-in
/// costs are used. A file of another processor that was named is used, with a complaint as well.
Result<LoadedProfile> load_profile(std::string_view setting);

} // namespace ucg::capi
