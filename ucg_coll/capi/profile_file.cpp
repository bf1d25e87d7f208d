#include "ucg_coll/capi/profile_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace ucg::capi {
namespace {

/// A profile has some 5 KiB. Whatever is longer by far is something else, perhaps without an end.
constexpr std::size_t kProfileBytesMax = 1 << 20;

std::optional<std::string> absolute_path(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && value[0] == '/' ? std::optional<std::string>(value) : std::nullopt;
}

/// Fails with what went wrong, errno's value behind it: ENOENT is no news to some.
Result<std::string> read_file(const std::string& path, int& error) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                               std::fclose);
    std::string text;
    std::array<char, 1 << 13> chunk;
    std::size_t count = 1;
    while (file != nullptr && count > 0 && text.size() <= kProfileBytesMax) {
        count = std::fread(chunk.data(), 1, chunk.size(), file.get());
        text.append(chunk.data(), count);
    }
    error = errno;
    if (file == nullptr || std::ferror(file.get()) != 0) {
        return failure(Code::io_error, "{}: cannot read the cost profile: {}", path,
                       std::strerror(error));
    }
    if (text.size() > kProfileBytesMax) {
        return failure(Code::invalid_argument,
                       "{}: expected a cost profile, found more than {} bytes", path,
                       kProfileBytesMax);
    }
    return text;
}

Result<cost::Profile> read_profile(const std::string& path, int& error) {
    const Result<std::string> text = read_file(path, error);
    if (!text.ok()) {
        return text.status();
    }
    error = 0;
    Result<cost::Profile> profile = cost::parse_toml(*text);
    return profile.ok()
               ? profile
               : failure(profile.status().code(), "{}: {}", path, profile.status().message());
}

} // namespace

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
