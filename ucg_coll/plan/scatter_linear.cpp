// Linear scatter: the root sends every block to its owner, a window of messages at a time.
#include "ucg_coll/plan/block_pieces.hpp"
#include "ucg_coll/plan/crowding.hpp"
#include "ucg_coll/plan/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = unshared_link(facts);
    const Rank count = request.rank_count;
    const std::uint64_t block = uniform_bytes(request);
    const double span_ns = scatter_linear_ns(link, count, block);
    return crowded_ns(facts, link, 3 * block, span_ns, [&](const Work& work) {
        return work.link().copy_ns(block) / count +
               all_but_one(count) * work.link().message_ns(block);
    });
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

double scatter_linear_ns(const Link& link, Rank count, std::uint64_t block_bytes) {
    if (count == 1) {
        return link.copy_ns(block_bytes);
    }
    return link.root_blocks_ns(count, block_bytes, Root::sends);
}

const Algorithm kScatterLinear = {
    .name = "linear",
    .collective = graph::Collective::scatter,
    .summary = "the root sends to every rank, a window of messages under way",
    .eligible = serves_all,
    .cost_ns = cost_ns,
    .build = build,
};

const Algorithm kScattervLinear = {
    .name = "linear",
    .collective = graph::Collective::scatterv,
    .summary = "the root sends to every rank, a window of messages under way",
    .eligible = serves_all,
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
