#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "test/support/catch.hpp"
#include "topo/machine.hpp"
#include "topo/placement.hpp"

using namespace ucg;
using namespace ucg::topo;

namespace {

Machine synthetic(const std::string& description) {
    Result<Machine> machine = machine_from_synthetic(description);
    REQUIRE(machine.ok());
    return std::move(machine).value();
}

std::vector<Rank> to_vector(Ranks ranks) {
    return {ranks.begin(), ranks.end()};
}

// Checks what the lists by host promise, rank by rank.
void check_consistent(const Placement& placement) {
    Rank counted = 0;
    Rank most = 0;
    Rank fewest = placement.rank_count();
    bool contiguous = true;
    bool equal_blocks = true;
    for (std::uint32_t host = 0; host < placement.host_count(); ++host) {
        const Ranks ranks = placement.ranks_on(host);
        REQUIRE_FALSE(ranks.empty());
        CHECK(placement.leader(host) == ranks[0]);
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            REQUIRE(placement.host(ranks[i]) == host);
            REQUIRE(placement.index_on_host(ranks[i]) == static_cast<Rank>(i));
            REQUIRE((i == 0 || ranks[i - 1] < ranks[i]));
            contiguous = contiguous && (i == 0 || ranks[i - 1] + 1 == ranks[i]);
            const auto of_first = static_cast<Rank>(placement.ranks_on(0).size());
            equal_blocks = equal_blocks && host == static_cast<std::uint32_t>(ranks[i] / of_first);
        }
        REQUIRE((host == 0 || placement.leader(host - 1) < placement.leader(host)));
        counted += static_cast<Rank>(ranks.size());
        most = std::max(most, static_cast<Rank>(ranks.size()));
        fewest = std::min(fewest, static_cast<Rank>(ranks.size()));
    }
    CHECK(counted == placement.rank_count());
    CHECK(most == placement.ranks_per_host_max());
    CHECK(fewest == placement.ranks_per_host_min());
    CHECK(equal_blocks == placement.hosts_are_equal_blocks());
    CHECK(contiguous == placement.hosts_are_contiguous());
}

} // namespace

TEST_CASE("topo: hosts are numbered by first appearance", "[topo][placement]") {
    const Placement placement({{.host = 70}, {.host = 5}, {.host = 70}, {.host = 0}, {.host = 5}});
    CHECK(placement.host_count() == 3);
    CHECK(to_vector(placement.ranks_on(0)) == std::vector<Rank>{0, 2});
    CHECK(to_vector(placement.ranks_on(1)) == std::vector<Rank>{1, 4});
    CHECK(to_vector(placement.ranks_on(2)) == std::vector<Rank>{3});
    CHECK(placement.index_on_host(4) == 1);
    CHECK(placement.same_host(1, 4));
    CHECK_FALSE(placement.same_host(0, 1));
    CHECK_FALSE(placement.hosts_are_contiguous());
    CHECK(placement.ranks_per_host_max() == 2);
    check_consistent(placement);
    CHECK(placement ==
          Placement({{.host = 1}, {.host = 9}, {.host = 1}, {.host = 2}, {.host = 9}}));
}

TEST_CASE("topo: groups without and with one rank", "[topo][placement]") {
    CHECK(Placement().rank_count() == 0);
    CHECK(Placement().host_count() == 0);
    CHECK(Placement(std::vector<Place>()) == Placement());
    CHECK(Placement::one_host(0) == Placement());
    const Placement one = Placement::one_host(1);
    CHECK(one.host_count() == 1);
    CHECK(one.hosts_are_contiguous());
    CHECK(one.leader(0) == 0);
}

TEST_CASE("topo: distance is the innermost level that both share", "[topo][placement]") {
    const Place base = {0, 1, 2, 3, 4};
    const auto from_base = [&](const Place& other) { return distance(base, other); };
    CHECK(from_base(base) == Distance::core);
    CHECK(from_base({0, 1, 2, 3, 5}) == Distance::cache);
    CHECK(from_base({0, 1, 2, 4, 5}) == Distance::numa);
    CHECK(from_base({0, 1, 3, 4, 5}) == Distance::package);
    CHECK(from_base({0, 2, 3, 4, 5}) == Distance::host);
    CHECK(from_base({1, 1, 2, 3, 4}) == Distance::network);
}

TEST_CASE("topo: what is not known is not taken for shared", "[topo][placement]") {
    SECTION("nobody is bound") {
        const Placement placement = Placement::regular(2, 2);
        CHECK(placement.distance(0, 1) == Distance::host);
        CHECK(placement.distance(0, 2) == Distance::network);
    }
    SECTION("both are bound to one package") {
        const Place package1 = forget_inside({0, 1, 2, 3, 4}, Distance::package);
        CHECK(package1 == Place{0, 1, 0, 0, 0, Distance::package});
        CHECK(distance(package1, package1) == Distance::package);
        CHECK(distance(package1, {0, 1, 0, 0, 0}) == Distance::package);
        CHECK(distance(package1, {0, 0, 0, 0, 0}) == Distance::host);
        CHECK(forget_inside(package1, Distance::core) == package1);
    }
    SECTION("indexes of levels that are not known do not count") {
        CHECK(Placement({{0, 7, 7, 7, 7, Distance::host}}) == Placement::one_host(1));
    }
}

TEST_CASE("topo: regular placements fill one host before the next", "[topo][placement]") {
    const Placement placement = Placement::regular(3, 4);
    CHECK(placement.rank_count() == 12);
    CHECK(placement.host_count() == 3);
    CHECK(to_vector(placement.ranks_on(1)) == std::vector<Rank>{4, 5, 6, 7});
    CHECK(placement.hosts_are_contiguous());
    check_consistent(placement);
}

TEST_CASE("topo: packed placements follow the cores", "[topo][placement]") {
    const Machine machine = synthetic("package:2 numa:1 l3:1 core:6 pu:1");
    const Placement placement = Placement::packed(machine, 2, 14);
    CHECK(placement.place(7) == Place{0, 1, 1, 1, 7});
    // The host is oversubscribed, so places start again at core 0.
    CHECK(placement.place(12) == Place{0, 0, 0, 0, 0});
    CHECK(placement.place(14) == Place{1, 0, 0, 0, 0});
    CHECK(placement.distance(0, 12) == Distance::core);
    CHECK(placement.distance(0, 5) == Distance::cache);
    CHECK(placement.distance(0, 6) == Distance::host);
    check_consistent(placement);
}

TEST_CASE("topo: ranks go round over the level they are mapped by", "[topo][mapping]") {
    // The machine has 16 cores.
    const Machine machine = synthetic("package:2 numa:2 l3:2 core:2 pu:1");
    const auto cores = [&](MapBy map_by, Rank hosts, Rank ranks_per_host) {
        const Placement placement = map_ranks(machine, hosts, ranks_per_host, map_by);
        check_consistent(placement);
        std::vector<std::uint32_t> found;
        for (const Rank rank : placement.ranks_on(0)) {
            found.push_back(placement.place(rank).core);
        }
        return found;
    };
    using Cores = std::vector<std::uint32_t>;
    CHECK(cores(MapBy::core, 1, 5) == Cores{0, 1, 2, 3, 4});
    CHECK(cores(MapBy::cache, 1, 10) == Cores{0, 2, 4, 6, 8, 10, 12, 14, 1, 3});
    CHECK(cores(MapBy::numa, 1, 6) == Cores{0, 4, 8, 12, 1, 5});
    CHECK(cores(MapBy::package, 1, 5) == Cores{0, 8, 1, 9, 2});
    CHECK(cores(MapBy::host, 2, 3) == Cores{0, 1, 2});
    CHECK(cores(MapBy::package, 2, 18).back() == 8);
    const Placement cyclic = map_ranks(machine, 3, 2, MapBy::host);
    CHECK(to_vector(cyclic.ranks_on(1)) == std::vector<Rank>{1, 4});
    CHECK_FALSE(cyclic.hosts_are_contiguous());
}

TEST_CASE("topo: groups of unequal size are gone round without gaps", "[topo][mapping]") {
    const Machine machine({{.package = 0}, {.package = 1}, {.package = 1}, {.package = 1}});
    const Placement placement = map_ranks(machine, 1, 4, MapBy::package);
    std::vector<std::uint32_t> cores;
    for (Rank rank = 0; rank < 4; ++rank) {
        cores.push_back(placement.place(rank).core);
    }
    CHECK(cores == std::vector<std::uint32_t>{0, 1, 2, 3});
}

TEST_CASE("topo: a placement keeps each place, however regular the hosts are before it",
          "[topo][placement]") {
    const auto seed = GENERATE(range(1U, 201U));
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const std::uint32_t hosts = 1 + random() % 5;
    const std::uint32_t per_host = 1 + random() % 5;
    const std::uint32_t cores = 1 + random() % per_host;
    // The last host may have fewer ranks.
    const std::uint32_t count = hosts * per_host - random() % per_host;
    std::vector<Place> places;
    for (std::uint32_t rank = 0; rank < count; ++rank) {
        places.push_back({.host = rank / per_host, .core = rank % per_host % cores});
    }
    const Placement regular(places);
    for (unsigned changes = random() % 3; changes > 0; --changes) {
        Place& place = places[random() % places.size()];
        (random() % 2 == 0 ? place.core : place.host) += random() % 3;
    }
    const Placement placement(places);
    check_consistent(placement);
    bool same = true;
    std::map<std::uint32_t, std::uint32_t> numbers; // The hosts' numbers, by first appearance.
    for (std::uint32_t rank = 0; rank < count; ++rank) {
        Place expected = places[rank];
        expected.host = numbers.try_emplace(expected.host, numbers.size()).first->second;
        CHECK(placement.place(static_cast<Rank>(rank)) == expected);
        same = same && regular.place(static_cast<Rank>(rank)) == expected;
    }
    CHECK((placement == regular) == same);
}

TEST_CASE("topo: random placements keep their lists by host", "[topo][placement]") {
    const auto seed = GENERATE(range(1U, 31U));
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const std::uint32_t host_limit = 1 + random() % 40;
    std::vector<Place> places(random() % 300);
    for (Place& place : places) {
        place.host = (random() % host_limit) * 1000003U;
    }
    const Placement placement(places);
    check_consistent(placement);
    for (std::size_t i = 0; i < places.size(); ++i) {
        const auto j = static_cast<std::size_t>(random() % places.size());
        CHECK(placement.same_host(static_cast<Rank>(i), static_cast<Rank>(j)) ==
              (places[i].host == places[j].host));
    }
}

namespace {

/// The distances of all pairs of ranks of a host.
std::vector<Distance> all_distances(const Placement& placement) {
    std::set<Distance> found;
    for (std::uint32_t host = 0; host < placement.host_count(); ++host) {
        const Ranks ranks = placement.ranks_on(host);
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                found.insert(placement.distance(ranks[i], ranks[j]));
            }
        }
    }
    return {found.begin(), found.end()};
}

bool all_contiguous(const Placement& placement) {
    for (std::uint32_t host = 0; host < placement.host_count(); ++host) {
        for (const Distance limit : placement.distances_on_host()) {
            for (const auto& group :
                 groups_closer_than(placement, placement.ranks_on(host), limit)) {
                const Rank between =
                    placement.index_on_host(group.back()) - placement.index_on_host(group.front());
                if (static_cast<std::size_t>(between) + 1 != group.size()) {
                    return false;
                }
            }
        }
    }
    return true;
}

} // namespace

TEST_CASE("topo: the levels that differ are those between some ranks of a host",
          "[topo][placement]") {
    const auto seed = GENERATE(range(1U, 201U));
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const Machine machine = synthetic("package:2 numa:2 l3:2 core:2 pu:1");
    const auto known = static_cast<Distance>(random() % 5);
    const bool dealt = random() % 2 == 0;
    std::vector<Place> places;
    for (std::uint32_t rank = 0; rank < 1 + seed % 20; ++rank) {
        const std::uint32_t core = dealt ? static_cast<std::uint32_t>(random() % 16) : rank % 16;
        Place place = forget_inside(machine.place_of_core(core), known);
        place.host = rank / 12;
        places.push_back(place);
    }
    const Placement placement(std::move(places));
    CHECK(placement.distances_on_host() == all_distances(placement));
    CHECK(placement.groups_are_contiguous() == all_contiguous(placement));
}

TEST_CASE("topo: ranks that are bound unlike have levels that some of them differ by",
          "[topo][placement]") {
    const auto seed = GENERATE(range(1U, 201U));
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const Machine machine = synthetic("package:2 numa:2 l3:2 core:2 pu:1");
    std::vector<Place> places;
    for (std::uint32_t rank = 0; rank < 10; ++rank) {
        places.push_back(
            forget_inside(machine.place_of_core(static_cast<std::uint32_t>(random() % 16)),
                          static_cast<Distance>(random() % 5)));
    }
    const Placement placement(std::move(places));
    const std::vector<Distance> all = all_distances(placement);
    const std::vector<Distance>& levels = placement.distances_on_host();
    CHECK(std::includes(all.begin(), all.end(), levels.begin(), levels.end()));
    CHECK(levels.back() == placement.widest_on_host());
    CHECK((!placement.groups_are_contiguous() || all_contiguous(placement)));
}

TEST_CASE("topo: a million ranks are placed, printed and read", "[topo][placement]") {
    const Machine machine = synthetic("package:2 numa:4 l3:2 core:8 pu:1");
    const Placement placement = Placement::packed(machine, 7813, 128);
    CHECK(placement.rank_count() == 1000064);
    CHECK(placement.ranks_on(7812).back() == 1000063);
    const Result<Placement> again = parse_placement(to_text(placement));
    REQUIRE(again.ok());
    CHECK(*again == placement);
}
