// Allreduce as a reduction to the first rank and a broadcast from it, each by a k-nomial tree:
// twice the depth of recursive doubling, but 2 (n - 1) messages instead of n log n. Li, Hoefler,
// Snir (HPDC 2013), section 2.2, by messages.
#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

/// A reduction to the first rank keeps rank order.
constexpr Rank kRoot = 0;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse);
    const Rank count = request.rank_count;
    const std::uint64_t bytes = request.bytes;
    const double span_ns =
        reduce_knomial_once_ns(link, count, bytes, reduce_knomial_radix(link, count, bytes)) +
        bcast_knomial_once_ns(link, count, bytes, bcast_knomial_radix(link, count, bytes),
                              Source::fresh);
    // What is not combined on arrival goes to scratch.
    const std::uint64_t vectors = link.combines_on_arrival(bytes) ? 3 : 4;
    return oversubscribed_ns(facts, link, vectors * bytes, span_ns, [&](const Work& work) {
        return all_but_one(count) *
               (2 * work.link().message_ns(bytes) + work.link().reduce_ns(2, bytes));
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceReduceBcast.name);
    const Team team = Team::whole(request.rank_count, rank);
    const Link link = flat_link(facts, Traffic::sparse);
    const graph::Slice result = builder.output(0, request.bytes);
    reduce_knomial(builder, team, kRoot, contribution(builder, request), result,
                   operator_of(request),
                   reduce_knomial_radix(link, request.rank_count, request.bytes));
    bcast_knomial(builder, team, kRoot, result,
                  bcast_knomial_radix(link, request.rank_count, request.bytes));
    return builder.finish();
}

} // namespace

const Algorithm kAllreduceReduceBcast = {
    .name = "reduce_bcast",
    .collective = graph::Collective::allreduce,
    .summary = "up a k-nomial tree to the first rank, and down again",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
