#include "test/support/catch.hpp"
#include "topo/machine.hpp"

using namespace ucg;
using namespace ucg::topo;

namespace {

// Two packages with two caches of two cores of two threads each; the second threads are numbered
// last, as Linux does.
Machine two_by_two_by_two() {
    std::vector<Core> cores;
    for (std::uint32_t i = 0; i < 8; ++i) {
        cores.push_back(
            {.package = i / 4, .numa = i / 4, .l3 = i / 2, .l2 = i, .threads = {i, i + 8}});
    }
    return Machine(cores, {.l2_bytes = 1 << 20, .l3_bytes = 32 << 20, .memory_bytes = 1ULL << 34});
}

} // namespace

TEST_CASE("topo: a machine counts its levels", "[topo][machine]") {
    const Machine machine = two_by_two_by_two();
    CHECK(machine.core_count() == 8);
    CHECK(machine.package_count() == 2);
    CHECK(machine.numa_count() == 2);
    CHECK(machine.l3_count() == 4);
    CHECK(machine.l2_count() == 8);
    CHECK(machine.l3_bytes() == 32 << 20);
    CHECK(Machine().core_count() == 0);
    CHECK(Machine().package_count() == 0);
}

TEST_CASE("topo: a binding's place is known as deep as one level holds it all", "[topo][machine]") {
    const Machine machine = two_by_two_by_two();
    const auto place = [](std::uint32_t package, std::uint32_t cache, std::uint32_t core,
                          Distance known) {
        return Place{0, package, package, cache, core, known};
    };
    SECTION("one thread") {
        CHECK(machine.place_of({13}) == place(1, 2, 5, Distance::core));
    }
    SECTION("both threads of a core") {
        CHECK(machine.place_of({13, 5}) == place(1, 2, 5, Distance::core));
    }
    SECTION("a CPU named twice") {
        CHECK(machine.place_of({5, 5}) == place(1, 2, 5, Distance::core));
    }
    SECTION("two cores under one cache") {
        CHECK(machine.place_of({6, 7}) == place(1, 3, 0, Distance::cache));
    }
    SECTION("two caches of one NUMA domain") {
        CHECK(machine.place_of({5, 6}) == place(1, 0, 0, Distance::numa));
    }
    SECTION("two packages") {
        CHECK(machine.place_of({0, 7}) == Place{.known = Distance::host});
    }
    SECTION("no CPU") {
        CHECK(machine.place_of({}) == Place{.known = Distance::host});
    }
    SECTION("a CPU that the machine lacks") {
        CHECK(machine.place_of({5, 16}) == Place{.known = Distance::host});
    }
}

TEST_CASE("topo: a package of several NUMA domains is a level of its own", "[topo][machine]") {
    const Machine machine({{.package = 0, .numa = 0, .l3 = 0, .l2 = 0, .threads = {0}},
                           {.package = 0, .numa = 1, .l3 = 0, .l2 = 1, .threads = {1}},
                           {.package = 1, .numa = 2, .l3 = 1, .l2 = 2, .threads = {2}}});
    // The cache is shared, but its halves belong to different memories, so the package counts.
    CHECK(machine.place_of({0, 1}) == Place{.known = Distance::package});
    CHECK(distance(machine.place_of_core(0), machine.place_of_core(1)) == Distance::package);
    CHECK(distance(machine.place_of_core(0), machine.place_of_core(2)) == Distance::host);
}
