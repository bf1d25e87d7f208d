// Two-level algorithms whose phases on the hosts go by messages, by boards, or out of peers'
// memory: each way is taken where it costs least, and proved.
#include <algorithm>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"

namespace ucg::plan {
namespace {

using graph::Collective;
using test::Case;

/// By host; two sockets each where `sockets` says so, ranks dealt to them.
topo::Placement hosts_of(const std::vector<std::uint32_t>& hosts, bool sockets) {
    std::vector<topo::Place> places;
    std::uint32_t rank = 0;
    for (const std::uint32_t host : hosts) {
        topo::Place place;
        place.host = host;
        place.package = sockets ? rank++ % 2 : 0;
        places.push_back(
            topo::forget_inside(place, sockets ? topo::Distance::package : topo::Distance::host));
    }
    return topo::Placement(std::move(places));
}

std::vector<topo::Placement> placements() {
    const std::vector<std::uint32_t> even = {0, 0, 0, 0, 1, 1, 1, 1};
    const std::vector<std::uint32_t> uneven = {0, 0, 0, 1, 1, 1, 1, 1, 2};
    const std::vector<std::uint32_t> dealt = {0, 1, 2, 0, 1, 2, 0, 1};
    return {hosts_of(even, false),  hosts_of(even, true),   hosts_of(uneven, false),
            hosts_of(uneven, true), hosts_of(dealt, false), hosts_of(dealt, true)};
}

/// On a host bytes of messages are dear, and signals are not.
cost::Profile dear_messages() {
    cost::Profile profile = cost::default_profile();
    for (const topo::Distance distance :
         {topo::Distance::core, topo::Distance::cache, topo::Distance::numa,
          topo::Distance::package, topo::Distance::host}) {
        profile.levels[static_cast<std::size_t>(distance)].gap_per_byte_ns = 50;
    }
    profile.memory.cma.permitted = false;
    return profile;
}

struct Found {
    unsigned boards = 0;
    unsigned memory = 0;
    unsigned proved = 0;
};

/// Every request of that collective for `bytes`, by two levels.
void prove_all(const Facts& facts, Collective collective, std::uint64_t bytes, Found& found) {
    const Rank count = facts.placement.rank_count();
    const bool rooted = graph::rooted(collective);
    for (Rank root = 0; root < (rooted ? count : 1); root += 3) {
        for (const bool in_place : {false, true}) {
            for (const bool commutative : {true, false}) {
                const Case sample{collective, count, root, bytes, 8, in_place, commutative};
                const graph::Request request = test::request_of(sample, 0);
                if ((in_place && collective == Collective::bcast) ||
                    !find_algorithm(collective, "two_level")->eligible(facts, request)) {
                    continue;
                }
                const Status status = test::prove(facts, "two_level", sample);
                INFO(status.message());
                REQUIRE(status.ok());
                const graph::Schedule schedule = plan(facts, request, 0, "two_level").value();
                found.boards += schedule.boards ? 1 : 0;
                found.memory += schedule.window_bytes > 0 ? 1 : 0;
                ++found.proved;
            }
        }
    }
}

Found prove_with(std::uint64_t staging_bytes, std::uint64_t board_bytes, std::uint64_t bytes) {
    const cost::Profile profile = dear_messages();
    Found found;
    for (const topo::Placement& placement : placements()) {
        const Facts facts{placement, profile,
                          shared_memory(placement, profile, staging_bytes, false, board_bytes)};
        for (const Collective collective :
             {Collective::bcast, Collective::reduce, Collective::allreduce,
              Collective::reduce_scatter_block}) {
            prove_all(facts, collective, bytes, found);
        }
    }
    return found;
}

} // namespace

TEST_CASE("plan: hosts of a group share memory in two-level algorithms", "[plan][levels][proof]") {
    SECTION("nothing is shared") {
        const Found found = prove_with(0, 0, 4096);
        CHECK(found.proved > 0);
        CHECK(found.boards == 0);
        CHECK(found.memory == 0);
    }
    SECTION("what is short goes by boards") {
        const Found found = prove_with(64 << 10, 4096, 64);
        CHECK(found.boards == found.proved);
    }
    SECTION("what is long is read in peers' memory") {
        const Found found = prove_with(64 << 10, 4096, 20000);
        CHECK(found.memory > found.proved / 2);
    }
    SECTION("in many strips, where staging is short") {
        const Found found = prove_with(6144, 0, 20000);
        CHECK(found.memory > found.proved / 2);
        CHECK(found.boards == 0);
    }
}

TEST_CASE("plan: nobody reads vectors whose place only their owner knows", "[plan][levels]") {
    const topo::Placement placement = hosts_of({0, 0, 0, 0, 1, 1, 1, 1}, false);
    const cost::Profile profile = dear_messages();
    const Facts facts{placement, profile, shared_memory(placement, profile, 1 << 20, false)};
    const Case sample{Collective::reduce_scatter, 8, 0, 20000, 8, true};
    CHECK_FALSE(plan(facts, test::request_of(sample, 1), 1, "two_level").value().exposed);
}

TEST_CASE("plan: of scratch, only what peers name has to lie in staging memory", "[plan][levels]") {
    const std::uint64_t bytes = 16 << 20; // More than all staging.
    const topo::Placement placement = hosts_of({0, 0, 0, 0, 1, 1, 1, 1}, false);
    const cost::Profile profile = dear_messages();
    const Facts facts{placement, profile, shared_memory(placement, profile, 1 << 20, false)};
    const Case sample{Collective::allreduce, 8, 0, bytes, 8};
    const graph::Schedule schedule =
        plan(facts, test::request_of(sample, 0), 0, "two_level").value();
    CHECK(schedule.window_bytes > 0);
    CHECK(schedule.own_scratch_bytes >= bytes);
    CHECK(graph::staging_layout(schedule).total_bytes <= std::uint64_t{1} << 20);
}

} // namespace ucg::plan
