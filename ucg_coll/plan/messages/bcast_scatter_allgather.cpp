// Scatter-allgather broadcast: van de Geijn et al., "Interprocessor collective communication
// library (InterCom)", 1994. The scatter leaves inner members of its tree with more than their own
// block; the allgather, around the ring or by dissemination, does not send them again.
#include <algorithm>

#include "ucg_coll/plan/messages/binomial.hpp"
#include "ucg_coll/plan/messages/block_best.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/crowding.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

struct Way {
    Link link;
    AllgatherChoice choice;

    double price_ns(const graph::Request& request) const {
        return bcast_scatter_allgather_ns(link, request.rank_count, request.bytes, choice);
    }
};

/// Around a ring one rank of each host sends at a time, in a dissemination all do.
Way way_of(const Facts& facts, const graph::Request& request) {
    const Way ring{flat_link(facts, Traffic::sparse), {.ring = true, .rounds = {}}};
    const Link dense = flat_link(facts, Traffic::dense);
    const Way best{dense, bcast_allgather_choice(dense, request.rank_count, request.bytes)};
    return ring.price_ns(request) <= best.price_ns(request) ? ring : best;
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Way way = way_of(facts, request);
    return crowded_exchange_ns(facts, way.link, request.bytes, [&](const Link& link) {
        return Way{link, way.choice}.price_ns(request);
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastScatterAllgather.name);
    bcast_scatter_allgather(builder, Team::whole(request.rank_count, rank), request.root,
                            bcast_data(builder, request), way_of(facts, request).choice);
    return builder.finish();
}

std::uint64_t block_bytes(Rank count, std::uint64_t bytes) {
    return std::min(BlockMap::cut_bytes(bytes, count, kCacheLine), bytes);
}

/// Of members numbered from the root: how many blocks, from its own on, the scatter gives to one.
Rank held_after_scatter(Rank number, Rank count) {
    return number == 0 ? count : std::min(number & -number, count - number);
}

/// Down a binomial tree from the member at index 0. Each is left with the blocks of its subtree.
void scatter(Builder& builder, const Team& team, const BlockMap& blocks) {
    const BinomialTree tree(team, 0);
    const auto of = [&](const BinomialTree::Subtree& subtree) {
        return packed(builder, blocks.runs(subtree.first, subtree.count)); // It is one piece.
    };
    if (tree.parent() != kNoRank) {
        builder.recv(team.rank(tree.parent()), of(tree.own()));
    }
    for (auto child = tree.children().rbegin(); child != tree.children().rend(); ++child) {
        builder.send(team.rank(child->first), of(*child));
    }
}

} // namespace

AllgatherChoice bcast_allgather_choice(const Link& link, Rank count, std::uint64_t bytes) {
    return allgather_choice(link, count, bytes, block_bytes(count, bytes));
}

void bcast_scatter_allgather(Builder& builder, const Team& team, Rank root, Slice data,
                             const AllgatherChoice& choice) {
    const Team from_root = team.starting_at(root);
    const BlockMap blocks = BlockMap::cut(data, team.size(), kCacheLine);
    scatter(builder, from_root, blocks);
    allgather(builder, from_root, choice, blocks.block(from_root.index()), blocks,
              held_after_scatter);
}

double bcast_scatter_allgather_ns(const Link& link, Rank count, std::uint64_t bytes,
                                  const AllgatherChoice& choice) {
    const std::uint64_t block = block_bytes(count, bytes);
    const Rank sends = allgather_sends(count, choice);
    const std::uint64_t sent = sends > 0 ? (bytes - block) / static_cast<std::uint64_t>(sends) : 0;
    // Of a short vector the first members have all there is to scatter. One block goes down a tree,
    // as in a k-nomial broadcast, which is to be chosen then: hence two members at least.
    const auto holders = static_cast<Rank>(
        std::clamp<std::uint64_t>(divide_up(bytes, std::max<std::uint64_t>(block, 1)),
                                  std::min<std::uint64_t>(2, static_cast<std::uint64_t>(count)),
                                  static_cast<std::uint64_t>(count)));
    return binomial_blocks_ns(link, holders, block, Root::sends) +
           allgather_ns(link, count, bytes, block, choice) + link.sends_before_ns(sends, sent) -
           link.beside_ns(link.copy_ns(block), block); // The own block is in its place.
}

const Algorithm kBcastScatterAllgather = {
    .name = "scatter_allgather",
    .collective = graph::Collective::bcast,
    .summary = "a binomial scatter, then the cheapest allgather (van de Geijn 1994)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
