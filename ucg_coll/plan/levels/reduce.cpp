// Two-level reduction: on each host to its leader, then from the leaders to the root.
#include "ucg_coll/plan/levels/on_host.hpp"
#include "ucg_coll/plan/levels/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const topo::Placement& placement = facts.placement;
    const Operator op = operator_of(request);
    // Leaders begin the next of several calls in a row when their hosts' vectors are combined.
    return calls_in_a_row(facts, request.collective) *
               reduce_on_host_ns(facts, placement.index_on_host(request.root), request.bytes, op,
                                 request.element_bytes) +
           reduce_best_ns(leader_link(facts), static_cast<Rank>(placement.host_count()),
                          static_cast<Rank>(placement.host(request.root)), request.bytes, op);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceTwoLevel.name);
    const TwoLevels levels(facts, rank, request.root);
    const Operator op = operator_of(request);
    const Slice partial = reduce_on_host(builder, facts, levels, contribution(builder, request), op,
                                         {builder.input(0, request.bytes), request.element_bytes});
    if (levels.leads()) {
        reduce_best(builder, levels.leaders(), leader_link(facts), levels.root_host(), partial,
                    builder.output(0, request.bytes), op);
    }
    return builder.finish();
}

} // namespace

const Algorithm kReduceTwoLevel = {
    .name = "two_level",
    .collective = graph::Collective::reduce,
    .summary = "the cheapest reduction on each host, then the cheapest between hosts",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kTwoLevelReductionNeeds,
};

} // namespace ucg::plan
