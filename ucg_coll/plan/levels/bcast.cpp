// Two-level broadcast: from the root to a leader on each host, then on each host.
#include "ucg_coll/plan/levels/on_host.hpp"
#include "ucg_coll/plan/levels/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    // Leaders begin the next of several calls in a row when they have passed the data to their
    // hosts.
    return bcast_best_ns(leader_link(facts), static_cast<Rank>(facts.placement.host_count()),
                         request.bytes) +
           calls_in_a_row(facts, request.collective) *
               bcast_on_host_ns(facts, request.bytes, request.element_bytes);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastTwoLevel.name);
    const TwoLevels levels(facts, rank, request.root);
    const Slice data = bcast_data(builder, request);
    if (levels.leads()) {
        bcast_best(builder, levels.leaders(), leader_link(facts), levels.root_host(), data);
    }
    const bool with_root = facts.placement.same_host(rank, request.root);
    bcast_on_host(builder, facts, levels, data,
                  {with_root ? builder.input(0, request.bytes) : builder.output(0, request.bytes),
                   request.element_bytes});
    return builder.finish();
}

} // namespace

const Algorithm kBcastTwoLevel = {
    .name = "two_level",
    .collective = graph::Collective::bcast,
    .summary = "the cheapest broadcast between hosts, then the cheapest on each host",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kTwoLevelNeeds,
};

} // namespace ucg::plan
