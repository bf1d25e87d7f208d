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
