#include "topo/binding.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace ucg::topo {

namespace {

using Cpus = std::vector<std::uint32_t>;

bool contains(const Cpus& cpus, std::uint32_t cpu) {
    return std::binary_search(cpus.begin(), cpus.end(), cpu);
}

/// Returns the CPUs that a file of the kernel lists, "0-3,8"; empty if it does not exist.
Cpus read_cpus(const ReadFile& read, const std::string& path) {
    const std::optional<std::string> text = read(path);
    return text ? parse_ranges(*text).value_or(Cpus()) : Cpus();
}

/// Reads `path`, or `old_path` in kernels before 5.3, which know only that name.
Cpus read_cpus(const ReadFile& read, const std::string& path, const std::string& old_path) {
    Cpus cpus = read_cpus(read, path);
    return cpus.empty() ? read_cpus(read, old_path) : cpus;
}

/// Returns the CPUs of the NUMA node whose ordinary memory is local to `cpu`. Linux assigns each
/// CPU to one such node; memory of other kinds makes nodes without CPUs.
Cpus read_numa(const ReadFile& read, std::uint32_t cpu) {
    for (const std::uint32_t node : read_cpus(read, "/sys/devices/system/node/online")) {
        Cpus cpus = read_cpus(read, fmt::format("/sys/devices/system/node/node{}/cpulist", node));
        if (contains(cpus, cpu)) {
            return cpus;
        }
    }
    return {};
}

/// Returns the CPUs that share the outermost cache that holds data.
Cpus read_last_cache(const ReadFile& read, const std::string& directory) {
    constexpr int kCachesMax = 32; // More than any processor has.
    Cpus outermost;
    std::uint32_t outermost_level = 0;
    for (int index = 0; index < kCachesMax; ++index) {
        const std::string cache = fmt::format("{}/cache/index{}/", directory, index);
        const std::optional<std::string> type = read(cache + "type");
        if (!type) {
            break;
        }
        const Cpus level = read_cpus(read, cache + "level"); // One number reads as a list of one.
        if (type->starts_with("Instruction") || level.size() != 1 || level[0] < outermost_level) {
            continue;
        }
        outermost_level = level[0];
        outermost = read_cpus(read, cache + "shared_cpu_list");
    }
    return outermost;
}

/// Returns the threads of all cores for which `belongs` is true, in rising order.
template <typename Belongs>
Cpus threads_of(const Machine& machine, Belongs belongs) {
    Cpus threads;
    for (const Core& core : machine.cores()) {
        if (belongs(core)) {
            threads.insert(threads.end(), core.threads.begin(), core.threads.end());
        }
    }
    std::sort(threads.begin(), threads.end());
    return threads;
}

bool is_set(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

bool shows_another_machine() {
    return is_set("HWLOC_SYNTHETIC") || is_set("HWLOC_XMLFILE") || is_set("HWLOC_FSROOT");
}

} // namespace

std::optional<CpuSurroundings> surroundings(std::uint32_t cpu, const ReadFile& read) {
    const std::string directory = fmt::format("/sys/devices/system/cpu/cpu{}", cpu);
    const std::string topology = directory + "/topology/";
    CpuSurroundings found;
    found.core = read_cpus(read, topology + "core_cpus_list", topology + "thread_siblings_list");
    found.package =
        read_cpus(read, topology + "package_cpus_list", topology + "core_siblings_list");
    if (!contains(found.core, cpu) || !contains(found.package, cpu)) {
        return std::nullopt;
    }
    found.numa = read_numa(read, cpu);
    if (found.numa.empty()) {
        found.numa = found.package;
    }
    found.cache = read_last_cache(read, directory);
    if (found.cache.empty()) {
        found.cache = found.core;
    }
    return found;
}

std::optional<CpuSurroundings> surroundings(std::uint32_t cpu, const Machine& machine) {
    const auto has_cpu = [&](const Core& core) {
        return std::find(core.threads.begin(), core.threads.end(), cpu) != core.threads.end();
    };
    const auto own = std::find_if(machine.cores().begin(), machine.cores().end(), has_cpu);
    if (own == machine.cores().end()) {
        return std::nullopt;
    }
    return CpuSurroundings{
        threads_of(machine, [&](const Core& core) { return core.package == own->package; }),
        threads_of(machine, [&](const Core& core) { return core.numa == own->numa; }),
        threads_of(machine, [&](const Core& core) { return core.l3 == own->l3; }),
        threads_of(machine, has_cpu)};
}

Place place_within(const CpuSurroundings& around, const std::vector<std::uint32_t>& cpus) {
    const auto holds_all = [&](const Cpus& level) {
        return std::all_of(cpus.begin(), cpus.end(),
                           [&](std::uint32_t cpu) { return contains(level, cpu); });
    };
    Place place;
    place.known = Distance::host;
    // The loop goes from the outside in: levels that do not nest count as far as their outermost
    // difference.
    const std::pair<const Cpus&, std::pair<Distance, std::uint32_t Place::*>> levels[] = {
        {around.package, {Distance::package, &Place::package}},
        {around.numa, {Distance::numa, &Place::numa}},
        {around.cache, {Distance::cache, &Place::cache}},
        {around.core, {Distance::core, &Place::core}}};
    for (const auto& [level, meaning] : levels) {
        if (!holds_all(level)) {
            break;
        }
        place.known = meaning.first;
        place.*meaning.second = level.front();
    }
    return place;
}

Result<Place> place_of_binding(const std::vector<std::uint32_t>& cpus) {
    const Place unknown{.known = Distance::host};
    if (cpus.empty()) {
        return unknown;
    }
    std::optional<CpuSurroundings> around;
    if (!shows_another_machine()) {
        around = surroundings(cpus.front(), read_file);
    }
    if (!around) {
        const Result<Machine> machine = discover_machine();
        if (!machine.ok()) {
            return machine.status();
        }
        around = surroundings(cpus.front(), *machine);
    }
    return around ? place_within(*around, cpus) : unknown;
}

} // namespace ucg::topo
