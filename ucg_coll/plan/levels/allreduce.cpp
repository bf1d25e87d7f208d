// Two-level allreduce: a reduction on each host, an allreduce among the leaders, a broadcast on
// each host. Li, Hoefler, Snir, "NUMA-aware shared-memory collective communication for MPI", 2013,
// section 2.5.
#include "ucg_coll/plan/levels/rows.hpp"
#include "ucg_coll/plan/levels/two_level.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link on_host = host_link(facts);
    const Rank ranks = facts.placement.ranks_per_host_max();
    const Operator op = operator_of(request);
    return reduce_best_ns(on_host, ranks, 0, request.bytes, op) +
           allreduce_best_ns(leader_link(facts), static_cast<Rank>(facts.placement.host_count()),
                             request.bytes, op) +
           bcast_best_ns(on_host, ranks, request.bytes);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceTwoLevel.name);
    const TwoLevels levels(facts, rank);
    const Link on_host = host_link(facts);
    const Operator op = operator_of(request);
    const Slice result = builder.output(0, request.bytes);
    Slice partial = contribution(builder, request);
    if (levels.host().size() > 1) {
        const Slice source = partial;
        partial = levels.leads() ? builder.scratch(request.bytes) : Slice{};
        reduce_best(builder, levels.host(), on_host, levels.host_leader(), source, partial, op);
    }
    if (levels.leads()) {
        allreduce_best(builder, levels.leaders(), leader_link(facts), partial, result, op);
    }
    bcast_best(builder, levels.host(), on_host, levels.host_leader(), result);
    return builder.finish();
}

} // namespace

const Algorithm kAllreduceTwoLevel = {
    .name = "two_level",
    .collective = graph::Collective::allreduce,
    .summary = "reduce on the hosts, allreduce between them, bcast (Li, Hoefler, Snir 2013)",
    .eligible = eligible_for_two_level_reduction,
    .cost_ns = cost_ns,
    .build = build,
    .needs = kTwoLevelReductionNeeds,
};

} // namespace ucg::plan
