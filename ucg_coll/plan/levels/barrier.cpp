// Two-level barrier: arrivals are gathered on each host, leaders disseminate, hosts are released.
// Li, Hoefler, Snir, "NUMA-aware shared-memory collective communication for MPI", 2013,
// section 2.6.
#include "ucg_coll/plan/levels/rows.hpp"
#include "ucg_coll/plan/levels/two_level.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

bool eligible(const Facts& facts, const graph::Request& request) {
    static_cast<void>(request);
    return has_two_levels(facts);
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    static_cast<void>(request);
    const Link on_host = host_link(facts);
    const Link across = leader_link(facts);
    const Rank ranks = facts.placement.ranks_per_host_max();
    const auto hosts = static_cast<Rank>(facts.placement.host_count());
    return 2 * barrier_tree_ns(on_host, ranks, barrier_tree_radix(on_host, ranks)) +
           barrier_dissemination_ns(across, hosts, barrier_dissemination_radix(across, hosts));
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBarrierTwoLevel.name);
    const TwoLevels levels(facts, rank);
    const unsigned radix = barrier_tree_radix(host_link(facts), levels.host().size());
    OpIds last;
    barrier_arrive(builder, levels.host(), radix, last);
    if (levels.leads()) {
        const Team& leaders = levels.leaders();
        barrier_dissemination(builder, leaders,
                              barrier_dissemination_radix(leader_link(facts), leaders.size()),
                              last);
    }
    barrier_release(builder, levels.host(), radix, last);
    return builder.finish();
}

} // namespace

const Algorithm kBarrierTwoLevel = {
    .name = "two_level",
    .collective = graph::Collective::barrier,
    .summary = "trees on the hosts, dissemination between them (Li, Hoefler, Snir 2013)",
    .eligible = eligible,
    .cost_ns = cost_ns,
    .build = build,
    .needs = kTwoLevelNeeds,
};

} // namespace ucg::plan
