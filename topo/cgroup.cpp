#include "topo/cgroup.hpp"

#include <algorithm>
#include <optional>

namespace ucg::topo {

namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

bool contains(const std::vector<std::string_view>& parts, std::string_view part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
}

// Undoes the escapes of mountinfo, which writes blanks, tabs, newlines and backslashes as a
// backslash and three octal digits.
std::string unescape(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto is_octal = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
        if (text[i] == '\\' && i + 3 < text.size() && is_octal(i + 1) && is_octal(i + 2) &&
            is_octal(i + 3)) {
            plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                       (text[i + 3] - '0'));
            i += 3;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

// Returns the path of the process's group in the hierarchy of `version` that rules CPU time: that
// of the line "4:cpu,cpuacct:/user" or "0::/user".
std::optional<std::string> group_path(std::string_view groups, int version) {
    for (const std::string_view line : split(groups, '\n')) {
        const std::size_t first = line.find(':');
        const std::size_t second =
            first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) {
            continue;
        }
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        const bool unified = line.substr(0, first) == "0" && controllers.empty();
        if (version == 2 ? unified : contains(split(controllers, ','), "cpu")) {
            return std::string(line.substr(second + 1));
        }
    }
    return std::nullopt;
}

struct Mount {
    int version = 0;
    std::string root; // The directory of the hierarchy that is mounted; not "/" in many containers.
    std::string point; // Where it is mounted.
};

// Reads a line "36 35 0:32 /root /point rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate". The
// optional fields before "-" vary in number.
std::optional<Mount> parse_mount(std::string_view line) {
    const std::vector<std::string_view> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) {
        return std::nullopt;
    }
    const bool v2 = dash[1] == "cgroup2";
    const bool v1 = dash[1] == "cgroup" && contains(split(dash[3], ','), "cpu");
    if (!v1 && !v2) {
        return std::nullopt;
    }
    return Mount{v2 ? 2 : 1, unescape(fields[3]), unescape(fields[4])};
}

// Returns `path` of the hierarchy relative to the mount's root; empty for the root itself. For a
// group outside the mount (another container's view, "/../..") the mount's root is the best that
// can be seen.
std::string below_root(const std::string& path, const std::string& root) {
    const std::string prefix = root == "/" ? "" : root;
    const bool inside = path.starts_with(prefix) &&
                        (path.size() == prefix.size() || path[prefix.size()] == '/') &&
                        path.find("/..") == std::string::npos;
    std::string rest = inside ? path.substr(prefix.size()) : "";
    while (rest.ends_with('/')) {
        rest.pop_back();
    }
    return rest;
}

} // namespace

std::vector<CgroupDirectory> cpu_cgroup_directories(std::string_view groups,
                                                    std::string_view mounts) {
    std::vector<CgroupDirectory> directories;
    for (const std::string_view line : split(mounts, '\n')) {
        const std::optional<Mount> mount = parse_mount(line);
        const auto path = mount ? group_path(groups, mount->version) : std::nullopt;
        if (!path) {
            continue;
        }
        std::string below = below_root(*path, mount->root);
        while (!below.empty()) {
            directories.push_back({mount->version, mount->point + below});
            below.resize(below.rfind('/'));
        }
        directories.push_back({mount->version, mount->point});
    }
    return directories;
}

} // namespace ucg::topo
