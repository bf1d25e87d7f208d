#include "ucg_coll/capi/profile_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "ucg_coll/capi/read_file.hpp"
#include "ucg_coll/cost/profile_origin.hpp"

namespace ucg::capi {
namespace {

/// Longest file that is read: a profile has some 5 KiB.
constexpr std::size_t kProfileBytesMax = 1 << 20;

std::optional<std::string> absolute_path(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && value[0] == '/' ? std::optional<std::string>(value) : std::nullopt;
}

struct FoundProfile {
    cost::Profile profile;
    std::string measured_on; ///< Empty: it does not say.
};

Result<FoundProfile> read_profile(const std::string& path, int& error) {
    const Result<std::string> text = read_file(path, "the cost profile", kProfileBytesMax, error);
    if (!text.ok()) {
        return text.status();
    }
    error = 0;
    const Result<cost::Profile> profile = cost::parse_toml(*text, builtin_costs_here().profile);
    if (!profile.ok()) {
        return failure(profile.status().code(), "{}: {}", path, profile.status().message());
    }
    return FoundProfile{*profile, cost::measured_on(*text)};
}

/// Returns what is wrong with a file that was measured on another kind of processor; empty for any
/// other file.
std::string foreign(const std::string& path, const std::string& measured_on) {
    return cost::is_foreign(measured_on)
               ? fmt::format("{} was measured on another processor ({}) than this one ({})", path,
                             measured_on, cost::processor_text(topo::this_processor()))
               : "";
}

} // namespace

cost::BuiltinCosts builtin_costs_here() {
    return cost::builtin_costs(topo::this_processor());
}

std::string tune_advice(const LoadedProfile& loaded) {
    const bool as_asked = loaded.named && loaded.path.empty();
    if (loaded.profile.memory.cache(cost::Cache::l2).measured || as_asked ||
        !loaded.complaint.empty()) {
        return "";
    }
    return fmt::format("costs are built in ({}), not measured here. `ucg_tune memory` measures "
                       "this machine, once, in some {} s: algorithms, and how ranks of a host "
                       "copy, are then chosen by what its caches, kernel and waits take",
                       builtin_costs_here().name, kTuneSeconds);
}

std::string default_profile_path() {
    std::optional<std::string> folder = absolute_path("XDG_CONFIG_HOME");
    if (!folder) {
        folder = absolute_path("HOME");
        if (!folder) {
            return "";
        }
        *folder += "/.config";
    }
    return *folder + "/ucg/profile.toml";
}

Result<LoadedProfile> load_profile(std::string_view setting) {
    LoadedProfile loaded;
    loaded.named = !setting.empty();
    const std::string path = loaded.named ? std::string(setting) : default_profile_path();
    if (path.empty() || path == kBuiltinProfile) {
        return loaded;
    }
    int error = 0;
    const Result<FoundProfile> profile = read_profile(path, error);
    if (profile.ok()) {
        if (const std::string other = foreign(path, profile->measured_on); !other.empty()) {
            loaded.complaint = fmt::format(
                "{}. {}; `ucg_tune memory -o FILE` measures this machine "
                "for UCG_PROFILE=FILE",
                other,
                loaded.named ? "It is used as UCG_PROFILE asks" : "The built-in costs are used");
            if (!loaded.named) {
                return loaded;
            }
        }
        loaded.profile = profile->profile;
        loaded.hash = cost::hash_of(loaded.profile);
        loaded.path = path;
        return loaded;
    }
    if (loaded.named) {
        return failure(profile.status().code(), "UCG_PROFILE: {}", profile.status().message());
    }
    if (error != ENOENT && error != ENOTDIR) {
        loaded.complaint = fmt::format("{}. The built-in costs are used. Mend that file, or remove "
                                       "it, and `ucg_tune memory` writes a new one; UCG_PROFILE={} "
                                       "silences this",
                                       profile.status().message(), kBuiltinProfile);
    }
    return loaded;
}

} // namespace ucg::capi
