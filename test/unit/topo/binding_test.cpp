// The place of a binding, derived from what the kernel says and from what hwloc says.
#include <map>
#include <string>

#include <fmt/format.h>

#include "test/support/catch.hpp"
#include "topo/topo.hpp"

using namespace ucg::topo;

namespace {

using Files = std::map<std::string, std::string>;
using Cpus = std::vector<std::uint32_t>;

ReadFile reader(const Files& files) {
    return [&files](const std::string& path) -> std::optional<std::string> {
        const auto found = files.find(path);
        return found == files.end() ? std::nullopt : std::optional(found->second);
    };
}

std::string line(const Cpus& cpus) {
    return format_ranges(cpus) + "\n";
}

Machine synthetic(const std::string& description) {
    ucg::Result<Machine> machine = machine_from_synthetic(description);
    INFO(machine.status().message());
    REQUIRE(machine.ok());
    return std::move(machine).value();
}

/// The files that Linux would show in /sys on that machine. Lists of CPUs are in rising order.
Files linux_files(const Machine& machine) {
    constexpr const char* kCpu = "/sys/devices/system/cpu/cpu";
    Files files;
    for (const Core& core : machine.cores()) {
        for (const std::uint32_t cpu : core.threads) {
            const CpuSurroundings around = *surroundings(cpu, machine);
            const std::string directory = fmt::format("{}{}/", kCpu, cpu);
            files[directory + "topology/core_cpus_list"] = line(around.core);
            files[directory + "topology/package_cpus_list"] = line(around.package);
            const auto add_cache = [&](int index, const char* level, const char* type,
                                       const Cpus& cpus) {
                const std::string cache = fmt::format("{}cache/index{}/", directory, index);
                files[cache + "level"] = level;
                files[cache + "type"] = type;
                files[cache + "shared_cpu_list"] = line(cpus);
            };
            add_cache(0, "1\n", "Data\n", around.core);
            add_cache(1, "1\n", "Instruction\n", around.core);
            add_cache(2, "2\n", "Unified\n", around.core);
            add_cache(3, "3\n", "Unified\n", around.cache);
            files[fmt::format("/sys/devices/system/node/node{}/cpulist", core.numa)] =
                line(around.numa);
        }
    }
    files["/sys/devices/system/node/online"] = fmt::format("0-{}\n", machine.numa_count() - 1);
    return files;
}

/// Compares both for one machine, with bindings to one, two, three and many of its CPUs.
void check_against_hwloc(const Machine& machine, const ReadFile& read) {
    std::vector<Cpus> bindings;
    Cpus all;
    for (const Core& core : machine.cores()) {
        all.insert(all.end(), core.threads.begin(), core.threads.end());
    }
    for (const std::uint32_t cpu : all) {
        bindings.insert(bindings.end(),
                        {{cpu}, {cpu, all.back()}, {all.front(), cpu}, {cpu, cpu ^ 1U, cpu ^ 2U}});
    }
    bindings.push_back(all);
    std::vector<Place> places;
    std::vector<Place> expected;
    for (const Cpus& cpus : bindings) {
        const auto around = surroundings(cpus.front(), read);
        REQUIRE(around);
        CHECK(around == surroundings(cpus.front(), machine));
        places.push_back(place_within(*around, cpus));
        expected.push_back(machine.place_of(cpus));
    }
    const auto order = [](const Place& a, const Place& b) {
        return std::tuple(a.package, a.numa, a.cache, a.core) <
               std::tuple(b.package, b.numa, b.cache, b.core);
    };
    for (std::size_t i = 0; i < places.size(); ++i) {
        REQUIRE(places[i].known == expected[i].known);
        for (std::size_t j = 0; j < places.size(); ++j) {
            REQUIRE(distance(places[i], places[j]) == distance(expected[i], expected[j]));
            if (places[i].known == Distance::core && places[j].known == Distance::core) {
                REQUIRE(order(places[i], places[j]) == order(expected[i], expected[j]));
            }
        }
    }
}

} // namespace

TEST_CASE("topo: lists of CPUs as Linux writes them", "[topo][binding]") {
    CHECK(parse_ranges("0-3,8,10-11\n") == Cpus{0, 1, 2, 3, 8, 10, 11});
    CHECK(parse_ranges("7") == Cpus{7});
    CHECK(parse_ranges("\n") == Cpus{});
    for (const char* wrong :
         {"a", "3-1", "1,1", "2,1", "1-", "-1", "1,", ",1", "1 2", "0-4294967295", "99999999999"}) {
        INFO(wrong);
        CHECK(parse_ranges(wrong) == std::nullopt);
    }
    const Cpus some = {0, 2, 3, 4, 64, 65, 1023};
    CHECK(parse_ranges(format_ranges(some)) == some);
}

TEST_CASE("topo: the kernel and hwloc tell the same of a binding", "[topo][binding]") {
    for (const char* description :
         {"package:2 numa:1 l3:1 core:6 pu:1", "package:2 numa:2 l3:2 core:2 pu:2",
          "package:1 numa:1 l3:1 core:2 pu:1", "package:4 numa:1 l3:1 core:2 pu:2"}) {
        INFO(description);
        const Machine machine = synthetic(description);
        const Files files = linux_files(machine);
        check_against_hwloc(machine, reader(files));
    }
}

TEST_CASE("topo: the second threads of cores may be numbered last", "[topo][binding]") {
    std::vector<Core> cores;
    for (std::uint32_t i = 0; i < 8; ++i) {
        cores.push_back(
            {.package = i / 4, .numa = i / 4, .l3 = i / 2, .l2 = i, .threads = {i, i + 8}});
    }
    const Machine machine(cores);
    const Files files = linux_files(machine);
    check_against_hwloc(machine, reader(files));
}

TEST_CASE("topo: the kernel and hwloc tell the same of this machine", "[topo][binding]") {
    const ucg::Result<Machine> machine = discover_machine();
    REQUIRE(machine.ok());
    check_against_hwloc(*machine, read_file);
}

TEST_CASE("topo: what the kernel does not tell", "[topo][binding]") {
    const Machine machine = synthetic("package:2 numa:2 l3:2 core:2 pu:2");
    Files files = linux_files(machine);
    SECTION("no caches: cores share none") {
        std::erase_if(
            files, [](const auto& file) { return file.first.find("cache") != std::string::npos; });
        const CpuSurroundings around = surroundings(5, reader(files)).value();
        CHECK(around.cache == around.core);
        CHECK(around.numa == surroundings(5, machine)->numa);
        const Place one = place_within(around, {5});
        const Place other = place_within(surroundings(7, reader(files)).value(), {7});
        REQUIRE(one.numa == other.numa);
        CHECK(distance(one, other) == Distance::numa);
    }
    SECTION("no NUMA domains: the package") {
        files.erase("/sys/devices/system/node/online");
        CHECK(surroundings(5, reader(files))->numa == surroundings(5, machine)->package);
    }
    SECTION("memory without CPUs is nobody's domain") {
        files["/sys/devices/system/node/online"] = "0-4\n";
        files["/sys/devices/system/node/node4/cpulist"] = "\n";
        CHECK(surroundings(12, reader(files)) == surroundings(12, machine));
    }
    SECTION("the names before Linux 5.3") {
        Files old;
        for (const auto& [path, text] : files) {
            std::string name = path;
            for (const auto& [now, then] :
                 {std::pair("core_cpus", "thread_siblings"), {"package_cpus", "core_siblings"}}) {
                if (const std::size_t at = name.find(now); at != std::string::npos) {
                    name.replace(at, std::string_view(now).size(), then);
                }
            }
            old[name] = text;
        }
        REQUIRE(old != files);
        CHECK(surroundings(5, reader(old)) == surroundings(5, machine));
    }
    SECTION("no core: nothing") {
        CHECK(surroundings(32, reader(files)) == std::nullopt);
        CHECK(surroundings(0, reader(Files())) == std::nullopt);
        CHECK(surroundings(32, machine) == std::nullopt);
    }
}

TEST_CASE("topo: a binding to nothing is on the host", "[topo][binding]") {
    const ucg::Result<Place> place = place_of_binding({});
    REQUIRE(place.ok());
    CHECK(*place == Place{.known = Distance::host});
}
