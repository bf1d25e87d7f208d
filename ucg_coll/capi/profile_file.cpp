#include "ucg_coll/capi/profile_file.hpp"

#include <algorithm>
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

constexpr std::string_view kAnyProcessor = "/ucg/profile.toml";

std::optional<std::string> absolute_path(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && value[0] == '/' ? std::optional<std::string>(value) : std::nullopt;
}

/// Returns the absolute folders of $XDG_CONFIG_DIRS, without slashes at their ends.
std::vector<std::string> system_folders() {
    const char* value = std::getenv("XDG_CONFIG_DIRS");
    std::string_view rest = value == nullptr || *value == '\0' ? "/etc/xdg" : value;
    std::vector<std::string> folders;
    while (!rest.empty()) {
        std::string_view folder = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
        if (folder.substr(0, 1) == "/") {
            folders.emplace_back(folder.substr(0, folder.find_last_not_of('/') + 1));
        }
    }
    return folders;
}

/// Returns where in a folder of the system the profile of this kind of processor is. Empty if the
/// processor is not known.
std::string for_this_processor() {
    const std::string name = processor_file_name();
    return name.empty() ? "" : "/ucg/profiles/" + name + ".toml";
}

/// Returns the paths of all profiles that nobody has to name, in the order in which they are
/// looked for.
std::vector<std::string> profile_paths() {
    std::vector<std::string> paths;
    if (std::string own = default_profile_path(); !own.empty()) {
        paths.push_back(std::move(own));
    }
    const std::string here = for_this_processor();
    for (const std::string& folder : system_folders()) {
        if (!here.empty()) {
            paths.push_back(folder + here);
        }
        paths.push_back(folder + std::string(kAnyProcessor));
    }
    return paths;
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

/// Returns what is to be done about a file that was passed over, since it is `malformed` or was
/// measured on another processor.
const char* remedy(const std::string& path, bool malformed) {
    if (path != default_profile_path()) {
        return "`ucg_tune memory` measures this machine, for all users by --system, as root";
    }
    return malformed ? "Mend that file, or remove it, and `ucg_tune memory` writes a new one"
                     : "`ucg_tune memory -o FILE` measures this machine for UCG_PROFILE=FILE";
}

void use(const FoundProfile& found, const std::string& path, LoadedProfile& loaded) {
    loaded.profile = found.profile;
    loaded.hash = cost::hash_of(found.profile);
    loaded.path = path;
}

LoadedProfile find_profile() {
    LoadedProfile loaded;
    std::string problems;
    const char* advice = nullptr; // About the first file that is passed over: it comes first again.
    for (const std::string& path : profile_paths()) {
        int error = 0;
        const Result<FoundProfile> found = read_profile(path, error);
        if (!found.ok() && (error == ENOENT || error == ENOTDIR)) {
            loaded.looked_for.push_back({path, "not there"});
            continue;
        }
        const std::string problem =
            found.ok() ? foreign(path, found->measured_on) : std::string(found.status().message());
        if (problem.empty()) {
            loaded.looked_for.push_back({path, "used"});
            use(*found, path, loaded);
            break;
        }
        loaded.looked_for.push_back({path, found.ok() ? "of another processor" : "not usable"});
        problems += problem + ". ";
        advice = advice == nullptr ? remedy(path, !found.ok()) : advice;
    }
    if (!problems.empty()) {
        const bool none = loaded.path.empty();
        loaded.complaint =
            fmt::format("{}{} used. {}; UCG_PROFILE={} silences this", problems,
                        none ? "The built-in costs are" : loaded.path + " is", advice,
                        none ? kBuiltinProfile : std::string_view(loaded.path));
    }
    return loaded;
}

Result<LoadedProfile> named_profile(const std::string& path) {
    LoadedProfile loaded;
    loaded.named = true;
    if (path == kBuiltinProfile) {
        return loaded;
    }
    int error = 0;
    const Result<FoundProfile> found = read_profile(path, error);
    if (!found.ok()) {
        return failure(found.status().code(), "UCG_PROFILE: {}", found.status().message());
    }
    if (const std::string other = foreign(path, found->measured_on); !other.empty()) {
        loaded.complaint = fmt::format("{}. It is used as UCG_PROFILE asks; `ucg_tune memory -o "
                                       "FILE` measures this machine for UCG_PROFILE=FILE",
                                       other);
    }
    use(*found, path, loaded);
    return loaded;
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

std::string processor_file_name() {
    std::string name = cost::processor_text(topo::this_processor());
    std::replace_if(
        name.begin(), name.end(), [](char letter) { return letter == ' ' || letter == '/'; }, '-');
    return name;
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
    return *folder + std::string(kAnyProcessor);
}

std::string system_profile_path() {
    const std::vector<std::string> folders = system_folders();
    if (folders.empty()) {
        return "";
    }
    const std::string here = for_this_processor();
    return folders.front() + (here.empty() ? std::string(kAnyProcessor) : here);
}

Result<LoadedProfile> load_profile(std::string_view setting) {
    return setting.empty() ? Result<LoadedProfile>(find_profile())
                           : named_profile(std::string(setting));
}

} // namespace ucg::capi
