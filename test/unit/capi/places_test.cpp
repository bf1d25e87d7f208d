// How ranks share processors, from what they said of themselves.
#include "test/support/catch.hpp"
#include "ucg_coll/capi/wireup/places.hpp"

using namespace ucg;
using namespace ucg::capi;

namespace {

/// Returns what ranks of one host say, each of which is bound to a CPU of its own, or to none.
std::vector<Hello> ranks_on_host(unsigned ranks, unsigned cpus, bool bound, std::uint32_t quota) {
    std::vector<Hello> all(ranks);
    for (unsigned rank = 0; rank < ranks; ++rank) {
        Hello& hello = all[rank];
        hello.host = hello.machine = 1;
        hello.cpu_quota = quota;
        for (unsigned cpu = 0; cpu < cpus; ++cpu) {
            if (!bound || cpu == rank % cpus) {
                hello.cpus.add(cpu);
            }
        }
    }
    return all;
}

double ranks_per_cpu(unsigned ranks, unsigned cpus, bool bound, std::uint32_t quota) {
    return places_of(ranks_on_host(ranks, cpus, bound, quota), 0).ranks_per_cpu;
}

/// Puts the ranks into that many control groups by turns, each with a quota of its own.
void put_in_groups(std::vector<Hello>& all, unsigned groups) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        all[rank].cpu_quota_group = 1 + rank % groups;
    }
}

} // namespace

TEST_CASE("capi/places: ranks share the CPUs that their masks have", "[capi]") {
    for (const bool bound : {false, true}) {
        CHECK(ranks_per_cpu(16, 64, bound, topo::kNoCpuQuota) == 1);
        CHECK(ranks_per_cpu(16, 4, bound, topo::kNoCpuQuota) == 4);
    }
}

TEST_CASE("capi/places: ranks share what a quota grants, bound or not", "[capi]") {
    for (const bool bound : {false, true}) {
        CHECK(ranks_per_cpu(16, 64, bound, 8) == 2);
        CHECK(ranks_per_cpu(16, 64, bound, 64) == 1);
        CHECK(ranks_per_cpu(16, 4, bound, 8) == 4);
    }
}

TEST_CASE("capi/places: the quotas of several containers on a host add up", "[capi]") {
    for (const bool bound : {false, true}) {
        std::vector<Hello> all = ranks_on_host(16, 16, bound, 4);
        put_in_groups(all, 4);
        CHECK(places_of(all, 0).ranks_per_cpu == 1);
        CHECK_FALSE(places_of(all, 0).load.oversubscribed());
        CHECK(places_of(all, 0).host_cpus == 16);
        put_in_groups(all, 1);
        CHECK(places_of(all, 0).ranks_per_cpu == 4);
        CHECK(places_of(all, 0).host_cpus == 4);
    }
    std::vector<Hello> few = ranks_on_host(16, 8, false, 4); // The machine has fewer.
    put_in_groups(few, 4);
    CHECK(places_of(few, 0).ranks_per_cpu == 2);
}

TEST_CASE("capi/places: hosts in one control group share its quota", "[capi]") {
    std::vector<Hello> all = ranks_on_host(8, 16, false, 4);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        all[rank].host = 1 + rank % 2;
    }
    CHECK(places_of(all, 0).ranks_per_cpu == 1); // Hosts that do not know their groups.
    put_in_groups(all, 1);
    CHECK(places_of(all, 0).ranks_per_cpu == 2);
}

TEST_CASE("capi/places: the ranks of the fullest container count", "[capi]") {
    std::vector<Hello> all = ranks_on_host(16, 64, false, 32);
    put_in_groups(all, 2);
    for (std::size_t rank = 0; rank < all.size(); rank += 2) {
        all[rank].cpu_quota = 2;
    }
    CHECK(places_of(all, 1).ranks_per_cpu == 4);
    CHECK(places_of(all, 0).load.oversubscribed());
    CHECK_FALSE(places_of(all, 1).load.oversubscribed());
    CHECK(places_of(all, 1).host_cpus == 34);
}
