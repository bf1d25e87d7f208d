// Two-level algorithms whose phases on the hosts go by messages, by flag slots, or by reading
// peers' memory: each way is taken where it costs least, and is proved.
#include <algorithm>
#include <set>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"

namespace ucg::plan {
namespace {

using graph::Collective;
using test::Case;

/// What is known of the hosts: nothing; that they have two sockets, with ranks dealt to them; or
/// that they have two packages of caches of two cores, with ranks in their order.
enum class Inside { unknown, sockets, levels };

topo::Placement hosts_of(const std::vector<std::uint32_t>& hosts, Inside inside) {
    std::vector<topo::Place> places;
    std::uint32_t rank = 0;
    for (const std::uint32_t host : hosts) {
        switch (inside) {
        case Inside::unknown:
            places.push_back(topo::forget_inside({.host = host}, topo::Distance::host));
            break;
        case Inside::sockets:
            places.push_back(
                topo::forget_inside({.host = host, .package = rank % 2}, topo::Distance::package));
            break;
        case Inside::levels:
            places.push_back({.host = host,
                              .package = rank / 4 % 2,
                              .numa = rank / 4 % 2,
                              .cache = rank / 2,
                              .core = rank});
            break;
        }
        ++rank;
    }
    return topo::Placement(places);
}

std::vector<topo::Placement> placements() {
    const std::vector<std::uint32_t> even = {0, 0, 0, 0, 1, 1, 1, 1};
    const std::vector<std::uint32_t> uneven = {0, 0, 0, 1, 1, 1, 1, 1, 2};
    const std::vector<std::uint32_t> dealt = {0, 1, 2, 0, 1, 2, 0, 1};
    std::vector<topo::Placement> all;
    for (const std::vector<std::uint32_t>& hosts : {even, uneven, dealt}) {
        for (const Inside inside : {Inside::unknown, Inside::sockets, Inside::levels}) {
            all.push_back(hosts_of(hosts, inside));
        }
    }
    return all;
}

/// A profile in which messages on a host cost much for each byte, and signals do not.
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
    unsigned flag_slots = 0;
    unsigned memory = 0;
    unsigned proved = 0;
};

/// Proves two-level schedules for every request of that collective with `bytes`.
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
                found.flag_slots += schedule.flag_slots ? 1 : 0;
                found.memory += schedule.staging_buffer_bytes > 0 ? 1 : 0;
                ++found.proved;
            }
        }
    }
}

Found prove_with(std::uint64_t staging_bytes, std::uint64_t flag_slot_bytes, std::uint64_t bytes) {
    const cost::Profile profile = dear_messages();
    Found found;
    for (const topo::Placement& placement : placements()) {
        const Facts facts{placement, profile,
                          shared_memory(placement, profile, staging_bytes, false, flag_slot_bytes)};
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
        CHECK(found.flag_slots == 0);
        CHECK(found.memory == 0);
    }
    SECTION("what is short goes by flag slots") {
        const Found found = prove_with(64 << 10, 4096, 64);
        CHECK(found.flag_slots == found.proved);
    }
    SECTION("what is long is read in peers' memory") {
        const Found found = prove_with(64 << 10, 4096, 20000);
        CHECK(found.memory > found.proved / 2);
    }
    SECTION("in many segments, where staging is short") {
        const Found found = prove_with(6144, 0, 20000);
        CHECK(found.memory > found.proved / 2);
        CHECK(found.flag_slots == 0);
    }
}

TEST_CASE("plan: what two-level algorithms share on a host goes by its levels where that is less",
          "[plan][levels][proof]") {
    constexpr Rank kFullest = 128;
    std::vector<topo::Place> places;
    for (std::uint32_t rank = 0; rank < kFullest + 6; ++rank) {
        const std::uint32_t core = rank % kFullest;
        places.push_back({.host = rank / kFullest,
                          .package = core / 64,
                          .numa = core / 64,
                          .cache = core / 8,
                          .core = core});
    }
    const topo::Placement placement(std::move(places));
    const cost::Profile profile = cost::default_profile();
    const Facts facts{placement, profile,
                      shared_memory(placement, profile, 64 << 10, false, 4 << 10)};
    for (const Collective collective :
         {Collective::barrier, Collective::bcast, Collective::reduce, Collective::allreduce}) {
        for (const std::uint64_t bytes : {8, 512}) {
            const Rank root = graph::rooted(collective) ? 21 : 0;
            const Case sample{collective, placement.rank_count(), root,
                              collective == Collective::barrier ? 0 : bytes, 8};
            INFO(describe(sample));
            const Status status = test::prove(facts, "two_level", sample);
            INFO(status.message());
            CHECK(status.ok());
            // The pairs of a rank and the rank whose flag slot it reads.
            std::set<std::pair<Rank, Rank>> looks;
            for (Rank rank = 0; rank < kFullest; ++rank) {
                const graph::Schedule schedule =
                    plan(facts, test::request_of(sample, rank), rank, "two_level").value();
                for (const graph::Op& op : schedule.ops) {
                    for (const Rank owner : graph::flag_slots_read(schedule, op)) {
                        looks.emplace(rank, owner);
                    }
                }
            }
            const auto of_root = [&](const auto& look) {
                return look.first == root || look.second == root;
            };
            const auto at_root = std::count_if(looks.begin(), looks.end(), of_root);
            CHECK(at_root > 0);
            // The root neither reads every rank's flag slot nor is read by every rank.
            CHECK(at_root < kFullest - 1);
        }
    }
}

TEST_CASE("plan: nobody reads vectors whose place only their owner knows", "[plan][levels]") {
    const topo::Placement placement = hosts_of({0, 0, 0, 0, 1, 1, 1, 1}, Inside::unknown);
    const cost::Profile profile = dear_messages();
    const Facts facts{placement, profile, shared_memory(placement, profile, 1 << 20, false)};
    const Case sample{Collective::reduce_scatter, 8, 0, 20000, 8, true};
    CHECK_FALSE(plan(facts, test::request_of(sample, 1), 1, "two_level").value().exposed);
}

TEST_CASE("plan: of scratch, only what peers name has to lie in staging memory", "[plan][levels]") {
    const std::uint64_t bytes = 16 << 20; // This is more than all staging memory.
    const topo::Placement placement = hosts_of({0, 0, 0, 0, 1, 1, 1, 1}, Inside::unknown);
    const cost::Profile profile = dear_messages();
    const Facts facts{placement, profile, shared_memory(placement, profile, 1 << 20, false)};
    const Case sample{Collective::allreduce, 8, 0, bytes, 8};
    const graph::Schedule schedule =
        plan(facts, test::request_of(sample, 0), 0, "two_level").value();
    CHECK(schedule.staging_buffer_bytes > 0);
    CHECK(schedule.own_scratch_bytes >= bytes);
    CHECK(graph::staging_layout(schedule).total_bytes <= std::uint64_t{1} << 20);
}

} // namespace ucg::plan
