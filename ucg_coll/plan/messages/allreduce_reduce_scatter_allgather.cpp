// Allreduce as a reduce-scatter and an allgather of the members' blocks, each by its cheapest
// piece: van de Geijn, "On global combine operations", 1994. By n-way disseminations, which fold
// nobody, any number of members sends less than two vectors each; Rabenseifner's algorithm sends up
// to four where it is no power of two.
#include "ucg_coll/plan/messages/block_best.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link flat = flat_link(facts, Traffic::dense);
    const Rank count = request.rank_count;
    const Operator op = operator_of(request);
    const BlockChoices choices =
        allreduce_reduce_scatter_allgather_choices(flat.in_exchanges(), count, request.bytes, op);
    return oversubscribed_exchange_ns(facts, flat, 5 * request.bytes, [&](const Link& link) {
        return allreduce_reduce_scatter_allgather_ns(link, count, request.bytes, op, choices);
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceReduceScatterAllgather.name);
    const Operator op = operator_of(request);
    allreduce_reduce_scatter_allgather(
        builder, Team::whole(request.rank_count, rank), contribution(builder, request),
        builder.output(0, request.bytes), op,
        allreduce_reduce_scatter_allgather_choices(flat_link(facts, Traffic::dense).in_exchanges(),
                                                   request.rank_count, request.bytes, op));
    return builder.finish();
}

} // namespace

BlockChoices allreduce_reduce_scatter_allgather_choices(const Link& link, Rank count,
                                                        std::uint64_t bytes, Operator op) {
    const std::uint64_t block = longest_cut(count, bytes, op);
    return {reduce_scatter_choice(link, count, bytes, block, op),
            allgather_choice(link, count, bytes, block)};
}

void allreduce_reduce_scatter_allgather(Builder& builder, const Team& team, Slice source,
                                        Slice target, Operator op, const BlockChoices& choices) {
    const Rank count = team.size();
    const BlockMap result = BlockMap::cut(target, count, op.element_bytes);
    const Slice own = result.block(team.index());
    reduce_scatter(builder, team, choices.reduce_scatter,
                   BlockMap::cut(source, count, op.element_bytes), own);
    allgather(builder, team, choices.allgather, own, result);
}

double allgather_combined_ns(const Link& link, Rank count, std::uint64_t total,
                             std::uint64_t longest, const AllgatherChoice& choice) {
    const double begun_ns = count == 1 ? 0
                                       : link.message_ns(longest, Source::fresh) -
                                             link.message_ns(longest) -
                                             link.not_hidden_ns(link.copy_ns(longest), longest);
    return allgather_ns(link, count, total, longest, choice) + begun_ns;
}

double allreduce_reduce_scatter_allgather_ns(const Link& link, Rank count, std::uint64_t bytes,
                                             Operator op, const BlockChoices& choices) {
    const std::uint64_t block = longest_cut(count, bytes, op);
    return reduce_scatter_ns(link, count, bytes, block, choices.reduce_scatter) +
           allgather_combined_ns(link, count, bytes, block, choices.allgather);
}

const Algorithm kAllreduceReduceScatterAllgather = {
    .name = "reduce_scatter_allgather",
    .collective = graph::Collective::allreduce,
    .summary = "the cheapest reduce-scatter, then the cheapest allgather (van de Geijn 1994)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
