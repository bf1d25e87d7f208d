#include "shm/budget.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace ucg::shm {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// The first number of a file; nothing when it says "max" or cannot be read.
std::optional<std::uint64_t> read_number(const std::string& path) {
    std::ifstream file(path);
    std::uint64_t value = 0;
    return file >> value ? std::optional(value) : std::nullopt;
}

/// The number after `key` in lines of "key number".
std::uint64_t read_field(const std::string& path, const std::string& key) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string name;
        std::uint64_t value = 0;
        if (words >> name >> value && name == key) {
            return value;
        }
    }
    return 0;
}

/// The names that version 1 and version 2 give to the same things.
struct GroupFiles {
    const char* limit;
    const char* usage;
    const char* inactive;
    const char* active;
};
constexpr GroupFiles kVersion2 = {"/memory.max", "/memory.current", "inactive_file", "active_file"};
constexpr GroupFiles kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                  "total_inactive_file", "total_active_file"};

void limit_by_group(const std::string& folder, const GroupFiles& files, MemoryBudget& budget) {
    const auto limit = read_number(folder + files.limit);
    if (!limit) {
        return;
    }
    // The page cache is charged to the group but is dropped before anything is killed.
    const std::string statistics = folder + "/memory.stat";
    const std::uint64_t cache =
        read_field(statistics, files.inactive) + read_field(statistics, files.active);
    const std::uint64_t usage = read_number(folder + files.usage).value_or(0);
    const std::uint64_t held = usage - std::min(usage, cache);
    budget.total = std::min(budget.total, *limit);
    budget.available = std::min(budget.available, *limit - std::min(*limit, held));
}

/// A limit of any group from `path` up to the root holds.
void limit_by_groups(const std::string& mount, std::string path, const GroupFiles& files,
                     MemoryBudget& budget) {
    while (true) {
        limit_by_group(mount + path, files, budget);
        const auto slash = path.find_last_of('/');
        if (path.empty() || slash == std::string::npos) {
            return;
        }
        path.resize(slash);
    }
}

} // namespace

MemoryBudget memory_budget(const std::string& root) {
    const std::string meminfo = root + "/proc/meminfo";
    MemoryBudget budget = {read_field(meminfo, "MemTotal:") * 1024,
                           read_field(meminfo, "MemAvailable:") * 1024};
    if (budget.total == 0) {
        budget = {kUnlimited, kUnlimited};
    }
    // Lines of "id:controllers:path"; version 2 has id 0 and no controllers.
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) {
            continue;
        }
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string path = line.substr(second + 1);
        if (controllers.empty()) {
            limit_by_groups(root + "/sys/fs/cgroup", path, kVersion2, budget);
        } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
            limit_by_groups(root + "/sys/fs/cgroup/memory", path, kVersion1, budget);
        }
    }
    return budget;
}

} // namespace ucg::shm
