#include "ucg_coll/capi/profile_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "ucg_coll/capi/read_file.hpp"

namespace ucg::capi {
namespace {

/// A profile has some 5 KiB.
constexpr std::size_t kProfileBytesMax = 1 << 20;

std::optional<std::string> absolute_path(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && value[0] == '/' ? std::optional<std::string>(value) : std::nullopt;
}

Result<cost::Profile> read_profile(const std::string& path, int& error) {
    const Result<std::string> text = read_file(path, "the cost profile", kProfileBytesMax, error);
    if (!text.ok()) {
        return text.status();
    }
    error = 0;
    Result<cost::Profile> profile = cost::parse_toml(*text, builtin_costs_here().profile);
    return profile.ok()
               ? profile
               : failure(profile.status().code(), "{}: {}", path, profile.status().message());
}

} // namespace

cost::BuiltinCosts builtin_costs_here() {
    return cost::builtin_costs(topo::this_processor());
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
    Result<cost::Profile> profile = read_profile(path, error);
    if (profile.ok()) {
        loaded.profile = *profile;
        loaded.hash = cost::hash_of(loaded.profile);
        loaded.path = path;
        return loaded;
    }
    if (loaded.named) {
        return failure(profile.status().code(), "UCG_PROFILE: {}", profile.status().message());
    }
    if (error != ENOENT && error != ENOTDIR) {
        loaded.complaint = fmt::format("{}. The built-in costs are used; ucg_tune writes a new "
                                       "file, UCG_PROFILE={} silences this",
                                       profile.status().message(), kBuiltinProfile);
    }
    return loaded;
}

} // namespace ucg::capi
