// Linear gather: the root receives every block from its owner, a window of messages at a time.
#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return linear_blocks_ns(facts, request, Root::receives);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kGatherLinear.name);
    const BlockMap target =
        rank == request.root ? output_blocks(builder, request) : BlockMap::of({});
    gather_linear(builder, Team::whole(request.rank_count, rank), request.root,
                  gather_contribution(builder, request, target), target);
    return builder.finish();
}

} // namespace

void gather_linear(Builder& builder, const Team& team, Rank root, graph::Slice own,
                   const BlockMap& target) {
    if (team.index() != root) {
        builder.send(team.rank(root), own);
        return;
    }
    MessageWindow under_way(kWindow);
    for (Rank step = 1; step < team.size(); ++step) {
        const Rank from = neighbour_index(team, step);
        under_way.push({builder.recv(team.rank(from), target.block(from), under_way.after())});
    }
    builder.copy(own, target.block(root));
}

double linear_blocks_ns(const Facts& facts, const graph::Request& request, Root root) {
    const Link link = unshared_link(facts).of_rank(request.root);
    const Rank count = request.rank_count;
    const std::uint64_t block = uniform_bytes(request);
    const double span_ns = link.root_blocks_ns(count, block, root);
    return oversubscribed_ns(facts, link, 3 * block, span_ns, [&](const Work& work) {
        return work.link().copy_ns(block) / count +
               all_but_one(count) * work.link().message_ns(block);
    });
}

constexpr Algorithm kGatherLinear = {
    .name = "linear",
    .collective = graph::Collective::gather,
    .summary = "every rank sends to the root, which has a window of receives under way",
    .cost_ns = cost_ns,
    .build = build,
};

constexpr Algorithm kGathervLinear = for_collective(kGatherLinear, graph::Collective::gatherv);

} // namespace ucg::plan
