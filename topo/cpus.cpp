#include "topo/cpus.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <sched.h>
#include <sstream>
#include <sys/stat.h>

#include <fmt/format.h>

#include "topo/cgroup.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::topo {

std::optional<std::string> read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return file.is_open() && !file.bad() ? std::optional(std::move(text)) : std::nullopt;
}

std::vector<std::uint32_t> usable_cpus() {
    // The kernel wants a mask as large as its own, whose size is not known.
    static constexpr int kCpusMax = 1 << 20;
    for (int capacity = 1024; capacity <= kCpusMax; capacity *= 4) {
        const std::size_t bytes = CPU_ALLOC_SIZE(capacity);
        const auto release = [](cpu_set_t* set) { CPU_FREE(set); };
        const std::unique_ptr<cpu_set_t, decltype(release)> set(CPU_ALLOC(capacity), release);
        if (set == nullptr) {
            return {};
        }
        if (sched_getaffinity(0, bytes, set.get()) == 0) {
            std::vector<std::uint32_t> cpus;
            for (int cpu = 0; cpu < capacity; ++cpu) {
                if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) {
                    cpus.push_back(static_cast<std::uint32_t>(cpu));
                }
            }
            return cpus;
        }
        if (errno != EINVAL) {
            return {};
        }
    }
    return {};
}

unsigned usable_cpu_count() {
    return limit_cpu_count(usable_cpus().size(), cpu_quota(read_file));
}

// Returns a number of the directory that every mount of its file system shows alike; 0 if it cannot
// be asked.
static std::uint64_t directory_identity(const std::string& path) {
    struct stat facts = {};
    if (::stat(path.c_str(), &facts) != 0) {
        return 0;
    }
    return std::max<std::uint64_t>(1, Hash().value(facts.st_dev).value(facts.st_ino).digest());
}

CpuGrant cpu_grant() {
    const std::optional<CpuQuota> quota = tightest_cpu_quota(read_file);
    if (!quota) {
        return {};
    }
    return {limit_cpu_count(kNoCpuQuota, quota->cpus), directory_identity(quota->directory)};
}

unsigned limit_cpu_count(std::size_t affinity, std::optional<double> quota) {
    const double limit =
        quota ? std::min(*quota, static_cast<double>(affinity)) : static_cast<double>(affinity);
    return std::max(1U, static_cast<unsigned>(limit));
}

// Consumes and returns a number at the front of `text`, after blanks; nothing if there is none.
static std::optional<std::int64_t> take_number(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    return value;
}

static std::optional<double> quota_in_cpus(std::optional<std::int64_t> quota_us,
                                           std::optional<std::int64_t> period_us) {
    if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) {
        return std::nullopt; // "max", -1 and what no kernel writes: no limit.
    }
    return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

std::optional<double> parse_cpu_max(std::string_view text) {
    const std::optional<std::int64_t> quota_us = take_number(text);
    return quota_in_cpus(quota_us, take_number(text));
}

std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period) {
    return quota_in_cpus(take_number(quota), take_number(period));
}

static std::optional<double> directory_quota(const CgroupDirectory& directory,
                                             const ReadFile& read) {
    if (directory.version == 2) {
        const auto text = read(directory.path + "/cpu.max");
        return text ? parse_cpu_max(*text) : std::nullopt;
    }
    const auto quota = read(directory.path + "/cpu.cfs_quota_us");
    const auto period = read(directory.path + "/cpu.cfs_period_us");
    return quota && period ? parse_cfs_quota(*quota, *period) : std::nullopt;
}

std::optional<CpuQuota> tightest_cpu_quota(const ReadFile& read) {
    const auto groups = read("/proc/self/cgroup");
    const auto mounts = read("/proc/self/mountinfo");
    if (!groups || !mounts) {
        return std::nullopt;
    }
    std::optional<CpuQuota> tightest;
    for (const CgroupDirectory& directory : cpu_cgroup_directories(*groups, *mounts)) {
        const std::optional<double> quota = directory_quota(directory, read);
        if (quota && (!tightest || *quota <= tightest->cpus)) {
            tightest = {*quota, directory.path};
        }
    }
    return tightest;
}

std::optional<double> cpu_quota(const ReadFile& read) {
    const std::optional<CpuQuota> tightest = tightest_cpu_quota(read);
    return tightest ? std::optional(tightest->cpus) : std::nullopt;
}

std::string format_ranges(const std::vector<std::uint32_t>& numbers) {
    std::string text;
    for (std::size_t begin = 0; begin < numbers.size();) {
        std::size_t end = begin + 1;
        while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) {
            ++end;
        }
        text += text.empty() ? "" : ",";
        text += fmt::to_string(numbers[begin]);
        if (end - begin > 1) {
            text += fmt::format("-{}", numbers[end - 1]);
        }
        begin = end;
    }
    return text;
}

// Consumes and returns the number of a CPU at the front of `text`; nothing if there is none.
static std::optional<std::uint32_t> take_cpu(std::string_view& text) {
    static constexpr std::uint32_t kCpuMax = 1U << 20;
    std::uint32_t cpu = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
    if (error != std::errc() || cpu > kCpuMax) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    return cpu;
}

std::optional<std::vector<std::uint32_t>> parse_ranges(std::string_view text) {
    std::vector<std::uint32_t> numbers;
    while (text.ends_with('\n')) {
        text.remove_suffix(1);
    }
    while (!text.empty()) {
        const std::optional<std::uint32_t> first = take_cpu(text);
        std::optional<std::uint32_t> last = first;
        if (text.starts_with('-')) {
            text.remove_prefix(1);
            last = take_cpu(text);
        }
        const bool rising =
            first && last && *first <= *last && (numbers.empty() || numbers.back() < *first);
        const bool ends = text.empty() || (text.starts_with(',') && text.size() > 1);
        if (!rising || !ends) {
            return std::nullopt;
        }
        for (std::uint32_t number = *first; number <= *last; ++number) {
            numbers.push_back(number);
        }
        text.remove_prefix(text.empty() ? 0 : 1);
    }
    return numbers;
}

} // namespace ucg::topo
