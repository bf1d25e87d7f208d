// When ranks help one another although the user has not asked for it.
#include <algorithm>

#include "test/support/catch.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::plan {

TEST_CASE("plan: ranks help one another where that costs hardly more", "[plan][helped]") {
    using graph::Collective;
    const topo::Placement placement = topo::Placement::regular(1, 2);
    const cost::Profile& profile = cost::default_profile();
    const Facts facts = {placement, profile,
                         shared_memory(placement, profile, 1 << 20, true, 4096, true), 1};
    bool is_dearer = false; // It must be so somewhere.
    for (const Collective collective :
         {Collective::bcast, Collective::reduce, Collective::allreduce, Collective::allgather,
          Collective::alltoall}) {
        for (std::uint64_t bytes = 64; bytes <= 4 << 20; bytes *= 2) {
            graph::Request request;
            request.collective = collective;
            request.rank_count = 2;
            request.bytes = bytes;
            request.element_bytes = 8;
            INFO(graph::name(collective) << " of " << bytes);
            const Candidate others = candidates(facts, request).front();
            CHECK_FALSE(others.algorithm->helped);
            CHECK_FALSE(choose(facts, request).helped);
            request.nonblocking = true;
            const Algorithm& helped = *find_algorithm(collective, "helped");
            if (!helped.eligible(facts, request)) {
                continue;
            }
            const double price_ns = helped.cost_ns(facts, request);
            CHECK(choose(facts, request).helped == (price_ns < 1.15 * others.cost_ns));
            CHECK(candidates(facts, request).front().algorithm->name ==
                  choose(facts, request).name);
            is_dearer = is_dearer || (choose(facts, request).helped && price_ns > others.cost_ns);
        }
    }
    CHECK(is_dearer);
}

TEST_CASE("plan: ranks do not help one another unasked where the kernel would copy",
          "[plan][helped]") {
    using graph::Collective;
    const topo::Placement placement = topo::Placement::regular(1, 2);
    const cost::Profile zen4 = cost::builtin_costs({"AuthenticAMD", 25, 17}).profile;
    const cost::Profile zen5 = cost::builtin_costs({"AuthenticAMD", 26, 2}).profile;
    for (const cost::Profile& profile : {cost::default_profile(), zen4, zen5}) {
        const Facts facts = {placement, profile,
                             shared_memory(placement, profile, 1 << 20, false, 4096, true), 1};
        for (std::uint64_t bytes = 64; bytes <= 64 << 20; bytes *= 2) {
            graph::Request request;
            request.collective = Collective::reduce;
            request.rank_count = 2;
            request.bytes = bytes;
            request.element_bytes = 8;
            request.nonblocking = true;
            CHECK_FALSE(choose(facts, request).helped);
        }
    }
}

} // namespace ucg::plan
