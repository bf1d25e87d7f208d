// Two-level barrier: arrivals are gathered on each host, leaders disseminate, hosts are released.
// Li, Hoefler, Snir, "NUMA-aware shared-memory collective communication for MPI", 2013,
// section 2.6.
#include "ucg_coll/plan/levels/on_host.hpp"
#include "ucg_coll/plan/levels/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

double cost_ns(const Facts& facts, const graph::Request& request) {
    static_cast<void>(request);
    const Link across = leader_link(facts);
    const auto hosts = static_cast<Rank>(facts.placement.host_count());
    return barrier_on_host_ns(facts) +
           barrier_dissemination_ns(across, hosts, barrier_dissemination_radix(across, hosts));
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBarrierTwoLevel.name);
    const TwoLevels levels(facts, rank);
    OpIds last;
    arrive_on_host(builder, facts, levels, last);
    if (levels.leads()) {
        const Team& leaders = levels.leaders();
        barrier_dissemination(builder, leaders,
                              barrier_dissemination_radix(leader_link(facts), leaders.size()),
                              last);
    }
    release_on_host(builder, facts, levels, last);
    return builder.finish();
}

} // namespace

const Algorithm kBarrierTwoLevel = {
    .name = "two_level",
    .collective = graph::Collective::barrier,
    .summary = "to the leaders of hosts, dissemination between them, back (Li, Hoefler, Snir 2013)",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kTwoLevelNeeds,
};

} // namespace ucg::plan
