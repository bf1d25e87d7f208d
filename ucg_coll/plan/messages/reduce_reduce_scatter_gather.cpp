// Reduce as a reduce-scatter of the members' blocks and a gather of these to the root, each by its
// cheapest piece: van de Geijn, "On global combine operations", 1994. By pieces other than halving
// any number of members takes part without a fold, and the root combines no more than others do.
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
    const ReduceBlockChoices choices =
        reduce_scatter_gather_choices(flat.in_exchanges(), count, request.bytes, op);
    return oversubscribed_exchange_ns(facts, flat, 4 * request.bytes, [&](const Link& link) {
        return reduce_scatter_gather_ns(link, count, request.bytes, op, choices);
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceReduceScatterGather.name);
    const Operator op = operator_of(request);
    reduce_scatter_gather(
        builder, Team::whole(request.rank_count, rank), request.root,
        contribution(builder, request), builder.output(0, request.bytes), op,
        reduce_scatter_gather_choices(flat_link(facts, Traffic::dense).in_exchanges(),
                                      request.rank_count, request.bytes, op));
    return builder.finish();
}

} // namespace

ReduceBlockChoices reduce_scatter_gather_choices(const Link& link, Rank count, std::uint64_t bytes,
                                                 Operator op) {
    const std::uint64_t block = longest_cut(count, bytes, op);
    return {reduce_scatter_choice(link, count, bytes, block, op),
            rooted_choice(link, count, block, Root::receives)};
}

void reduce_scatter_gather(Builder& builder, const Team& team, Rank root, Slice source,
                           Slice target, Operator op, const ReduceBlockChoices& choices) {
    const Rank count = team.size();
    const BlockMap blocks = BlockMap::cut(source, count, op.element_bytes);
    const bool at_root = team.index() == root;
    // A member other than the root need only know the lengths of the others' blocks.
    const BlockMap result = at_root ? BlockMap::cut(target, count, op.element_bytes) : blocks;
    const Slice own =
        at_root ? result.block(root) : builder.scratch(blocks.block(team.index()).length);
    reduce_scatter(builder, team, choices.reduce_scatter, blocks, own);
    gather(builder, team, choices.gather, root, own, result);
}

/// Returns what copying the root's own block adds to a gather. Members that help the root to copy
/// help with that, too.
static double own_copy_ns(const Link& link, Rank count, std::uint64_t block, RootedPiece gather) {
    const double copy_ns = link.copy_ns(block);
    if (link.sender_copy_ns(block) > 0) {
        return copy_ns / (gather == RootedPiece::linear ? count : 2);
    }
    return link.not_hidden_ns(copy_ns, block);
}

double gather_combined_ns(const Link& link, Rank count, std::uint64_t block, RootedPiece piece) {
    return rooted_once_ns(link, count, block, Root::receives, piece) +
           link.message_ns(block, Source::fresh, Sender::waits) -
           link.message_ns(block, Sender::waits) - own_copy_ns(link, count, block, piece);
}

double reduce_scatter_gather_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op,
                                const ReduceBlockChoices& choices) {
    const std::uint64_t block = longest_cut(count, bytes, op);
    // The root takes part in all, so that the next begins when it is done.
    const double calls = link.is_across_hosts() ? 1 + cost::kBeforeAtRoot : 1;
    // Members other than the root have blocks to gather only if the vector is long enough.
    const double gather_ns =
        bytes > block ? gather_combined_ns(link, count, block, choices.gather) : 0;
    return calls *
           (reduce_scatter_ns(link, count, bytes, block, choices.reduce_scatter) + gather_ns);
}

const Algorithm kReduceReduceScatterGather = {
    .name = "reduce_scatter_gather",
    .collective = graph::Collective::reduce,
    .summary = "the cheapest reduce-scatter, then the cheapest gather (van de Geijn 1994)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
