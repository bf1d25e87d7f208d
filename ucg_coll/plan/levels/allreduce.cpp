// Two-level allreduce: a reduction on each host, an allreduce among the leaders, a broadcast on
// each host. Li, Hoefler, Snir, "NUMA-aware shared-memory collective communication for MPI", 2013,
// section 2.5.
#include "ucg_coll/plan/levels/on_host.hpp"
#include "ucg_coll/plan/levels/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Operator op = operator_of(request);
    return reduce_on_host_ns(facts, 0, request.bytes, op, request.element_bytes) +
           allreduce_best_ns(leader_link(facts), static_cast<Rank>(facts.placement.host_count()),
                             request.bytes, op) +
           bcast_on_host_ns(facts, request.bytes, request.element_bytes,
                            used_to_reduce(facts, request.bytes, op, request.element_bytes));
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceTwoLevel.name);
    const TwoLevels levels(facts, rank);
    const Operator op = operator_of(request);
    const Slice result = builder.output(0, request.bytes);
    const Slice source = contribution(builder, request);
    const Slice partial =
        reduce_on_host(builder, facts, levels, source, op, {source, request.element_bytes});
    if (levels.leads()) {
        allreduce_best(builder, levels.leaders(), leader_link(facts), partial, result, op);
    }
    bcast_on_host(builder, facts, levels, result, {result, request.element_bytes},
                  used_to_reduce(facts, request.bytes, op, request.element_bytes));
    return builder.finish();
}

} // namespace

const Algorithm kAllreduceTwoLevel = {
    .name = "two_level",
    .collective = graph::Collective::allreduce,
    .summary = "reduce on the hosts, allreduce between them, bcast (Li, Hoefler, Snir 2013)",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kTwoLevelReductionNeeds,
};

} // namespace ucg::plan
