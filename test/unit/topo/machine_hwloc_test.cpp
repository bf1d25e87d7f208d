// Machines as hwloc describes them, converted to this library's values. Synthetic descriptions
// stand for machines that are not at hand.
#include <fstream>
#include <iterator>

#include "test/support/catch.hpp"
#include "topo/topo.hpp"

using namespace ucg;
using namespace ucg::topo;

namespace {

Machine synthetic(const std::string& description) {
    Result<Machine> machine = machine_from_synthetic(description);
    INFO(machine.status().message());
    REQUIRE(machine.ok());
    return std::move(machine).value();
}

} // namespace

TEST_CASE("topo: two packages of six cores", "[topo][hwloc]") {
    const Machine machine = synthetic("package:2 numa:1 l3:1 core:6 pu:1");
    CHECK(machine.core_count() == 12);
    CHECK(machine.package_count() == 2);
    CHECK(machine.numa_count() == 2);
    CHECK(machine.l3_count() == 2);
    CHECK(machine.l2_count() == 12); // hwloc describes no L2, so each core has its own.
    CHECK(machine.l2_bytes() == 0);
    CHECK(machine.l3_bytes() > 0);
    CHECK(machine.memory_bytes() > 0);
    CHECK(machine.cores()[7] == Core{1, 1, 1, 7, {7}});
    CHECK(machine.place_of({3}).core == 3);
}

TEST_CASE("topo: four packages of eight cores with two threads", "[topo][hwloc]") {
    const Machine machine = synthetic("package:4 numa:1 l3:1 l2:8 core:1 pu:2");
    CHECK(machine.core_count() == 32);
    CHECK(machine.package_count() == 4);
    CHECK(machine.l2_count() == 32);
    CHECK(machine.l2_bytes() > 0);
    CHECK(machine.cores()[9] == Core{1, 1, 1, 9, {18, 19}});
}

TEST_CASE("topo: two packages of 64 cores in groups of eight under an L3", "[topo][hwloc]") {
    const Machine machine = synthetic("package:2 numa:4 l3:2 core:8 pu:2");
    CHECK(machine.core_count() == 128);
    CHECK(machine.numa_count() == 8);
    CHECK(machine.l3_count() == 16);
    CHECK(machine.cores()[127] == Core{1, 7, 15, 127, {254, 255}});
    const Placement placement = Placement::packed(machine, 1, 128);
    CHECK(placement.distance(0, 7) == Distance::cache);
    CHECK(placement.distance(0, 8) == Distance::numa);
    CHECK(placement.distance(0, 16) == Distance::package);
    CHECK(placement.distance(0, 64) == Distance::host);
}

TEST_CASE("topo: machines that lack a level", "[topo][hwloc]") {
    SECTION("no L3: the L2 is the last level") {
        const Machine machine = synthetic("package:1 numa:1 l2:2 core:4 pu:1");
        CHECK(machine.l3_count() == 2);
        CHECK(machine.l3_bytes() == machine.l2_bytes());
    }
    SECTION("an L4 above the L3s is the last level") {
        CHECK(synthetic("package:1 numa:1 l4:1 l3:2 core:2 pu:1").l3_count() == 1);
    }
    SECTION("no cache: cores share none") {
        const Machine machine = synthetic("package:2 numa:2 core:2 pu:1");
        CHECK(machine.l3_count() == 8);
        CHECK(machine.l3_bytes() == 0);
        CHECK(distance(machine.place_of_core(0), machine.place_of_core(1)) == Distance::numa);
    }
    SECTION("no package: the machine") {
        CHECK(synthetic("numa:2 core:2 pu:1").package_count() == 1);
    }
    SECTION("no core: each hardware thread") {
        const Machine machine = synthetic("numa:1 pu:4");
        CHECK(machine.core_count() == 4);
        CHECK(machine.cores()[3].threads == std::vector<std::uint32_t>{3});
    }
}

TEST_CASE("topo: memory of several kinds is one domain per locality", "[topo][hwloc]") {
    // There is ordinary and high-bandwidth memory on each package, and expansion memory on the
    // machine.
    const Machine machine = synthetic(
        "[numa(memory=64GB)] package:2 [numa(memory=32GB)] [numa(memory=16GB)] core:4 pu:1");
    CHECK(machine.numa_count() == 2);
    CHECK(machine.cores()[0].numa == 0);
    CHECK(machine.cores()[4].numa == 1);
}

TEST_CASE("topo: a machine exported to XML is read back", "[topo][hwloc]") {
    std::ifstream file(UCG_SOURCE_ROOT "/test/unit/topo/two_packages.xml");
    const std::string xml{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    REQUIRE_FALSE(xml.empty());
    const Result<Machine> machine = machine_from_xml(xml);
    INFO(machine.status().message());
    REQUIRE(machine.ok());
    CHECK(*machine == synthetic("package:2 numa:1 l3:2 l2:4 core:1 pu:2"));
}

TEST_CASE("topo: descriptions that hwloc does not take are refused", "[topo][hwloc][malformed]") {
    const auto check = [](const Result<Machine>& machine) {
        REQUIRE_FALSE(machine.ok());
        CHECK(machine.status().code() == Code::invalid_argument);
    };
    SECTION("no number") {
        check(machine_from_synthetic("package:"));
    }
    SECTION("an unknown level") {
        check(machine_from_synthetic("shelf:2 pu:1"));
    }
    SECTION("nothing") {
        check(machine_from_synthetic(""));
    }
    SECTION("XML that is text") {
        check(machine_from_xml("rank 0: host 0"));
    }
    SECTION("XML that ends early") {
        check(machine_from_xml("<?xml version=\"1.0\"?><topology>"));
    }
    SECTION("no XML") {
        check(machine_from_xml(""));
    }
}

TEST_CASE("topo: the machine at hand holds the CPUs of this process", "[topo][hwloc]") {
    const Result<Machine> machine = discover_machine();
    REQUIRE(machine.ok());
    CHECK(machine->core_count() >= 1);
    const std::vector<std::uint32_t> cpus = usable_cpus();
    REQUIRE_FALSE(cpus.empty());
    for (const std::uint32_t cpu : cpus) {
        CHECK(machine->place_of({cpu}).known == Distance::core);
    }
    const Result<Machine> again = parse_machine(to_text(*machine));
    REQUIRE(again.ok());
    CHECK(*again == *machine);
}
