// Dissemination barrier: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization",
// 1988; with several signals a round: Hoefler et al., "Fast barrier synchronization for
// InfiniBand", 2006.
#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::dense);
    const unsigned radix = barrier_dissemination_radix(link, request.rank_count);
    return oversubscribed_exchange_ns(facts, link, 0, [&](const Link& prices) {
        return barrier_dissemination_ns(prices, request.rank_count, radix);
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBarrierDissemination.name);
    const unsigned radix =
        barrier_dissemination_radix(flat_link(facts, Traffic::dense), request.rank_count);
    OpIds last;
    barrier_dissemination(builder, Team::whole(request.rank_count, rank), radix, last);
    return builder.finish();
}

} // namespace

void barrier_dissemination(Builder& builder, const Team& team, unsigned radix, OpIds& last) {
    const MultiplyingSchedule rounds{
        std::vector<Phase>(tree_depth(team.size(), radix), factor_phase(static_cast<Rank>(radix)))};
    barrier_n_way_dissemination(builder, team, rounds, last);
}

double barrier_dissemination_ns(const Link& link, Rank count, unsigned radix) {
    return link.rounds_ns(
        0, tree_depth(count, radix), radix, Link::Partners::rotated,
        [&](const Link& round) { return round.message_ns(0) + (radix - 2) * round.gap_ns(0); });
}

unsigned barrier_dissemination_radix(const Link& link, Rank count) {
    return cheapest_radix(
        count, [&](unsigned radix) { return barrier_dissemination_ns(link, count, radix); });
}

const Algorithm kBarrierDissemination = {
    .name = "dissemination",
    .collective = graph::Collective::barrier,
    .summary = "in each round every rank signals some at growing distances (Hensgen 1988)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
