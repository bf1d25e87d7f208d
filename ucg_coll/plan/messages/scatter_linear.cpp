// Linear scatter: the root sends every block to its owner, a window of messages at a time.
#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return linear_blocks_ns(facts, request, Root::sends);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kScatterLinear.name);
    const BlockMap source =
        rank == request.root ? input_blocks(builder, request) : BlockMap::of({});
    scatter_linear(builder, Team::whole(request.rank_count, rank), request.root, source,
                   scatter_result(builder, request));
    return builder.finish();
}

} // namespace

void scatter_linear(Builder& builder, const Team& team, Rank root, const BlockMap& source,
                    graph::Slice own) {
    if (team.index() != root) {
        builder.recv(team.rank(root), own);
        return;
    }
    MessageWindow under_way(kWindow);
    for (Rank step = 1; step < team.size(); ++step) {
        const Rank to = neighbour_index(team, step);
        under_way.push({builder.send(team.rank(to), source.block(to), under_way.after())});
    }
    if (own.length > 0) {
        builder.copy(source.block(root), own);
    }
}

constexpr Algorithm kScatterLinear = {
    .name = "linear",
    .collective = graph::Collective::scatter,
    .summary = "the root sends to every rank, a window of messages under way",
    .cost_ns = cost_ns,
    .build = build,
};

constexpr Algorithm kScattervLinear = for_collective(kScatterLinear, graph::Collective::scatterv);

} // namespace ucg::plan
