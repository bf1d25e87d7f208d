// Scatter-allgather broadcast: van de Geijn et al., "Interprocessor collective communication
// library (InterCom)", 1994. A binomial scatter leaves inner members of its tree with more than
// their own block; the allgather, around the ring or by dissemination, does not send them again. A
// linear one sends nothing twice.
#include <algorithm>

#include "ucg_coll/plan/messages/binomial.hpp"
#include "ucg_coll/plan/messages/block_best.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Returns the cheaper piece for the scatter, given the allgather that follows.
RootedPiece bcast_scatter_choice(const Link& link, Rank count, std::uint64_t bytes,
                                 const AllgatherChoice& allgather) {
    const auto price_ns = [&](RootedPiece scatter) {
        return bcast_scatter_allgather_ns(link, count, bytes, {scatter, allgather});
    };
    return price_ns(RootedPiece::binomial) <= price_ns(RootedPiece::linear) ? RootedPiece::binomial
                                                                            : RootedPiece::linear;
}

/// The pieces, and the link by which they are priced.
struct Way {
    Link link;
    BcastChoices choices;

    double price_ns(const graph::Request& request) const {
        return bcast_scatter_allgather_ns(link.in_exchanges(), request.rank_count, request.bytes,
                                          choices);
    }
};

/// Returns the cheaper of two ways: with a ring, in which one rank of each host sends at a time,
/// and with the cheapest allgather if all ranks send at a time, as in a dissemination.
Way way_of(const Facts& facts, const graph::Request& request) {
    const Link sparse = flat_link(facts, Traffic::sparse);
    const Link dense = flat_link(facts, Traffic::dense);
    const Rank count = request.rank_count;
    const AllgatherChoice around = {.ring = true, .rounds = {}};
    const RootedPiece scatter =
        bcast_scatter_choice(sparse.in_exchanges(), count, request.bytes, around);
    const Way ring{sparse, {scatter, around}};
    const Way best{dense, bcast_choices(dense.in_exchanges(), count, request.bytes)};
    return ring.price_ns(request) <= best.price_ns(request) ? ring : best;
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Way way = way_of(facts, request);
    return oversubscribed_exchange_ns(facts, way.link, request.bytes, [&](const Link& link) {
        return bcast_scatter_allgather_ns(link, request.rank_count, request.bytes, way.choices);
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastScatterAllgather.name);
    bcast_scatter_allgather(builder, Team::whole(request.rank_count, rank), request.root,
                            bcast_data(builder, request), way_of(facts, request).choices);
    return builder.finish();
}

/// Returns the unit of which blocks are multiples: a cache line, but less for short blocks, since
/// whole lines would leave no blocks for the last members.
std::uint64_t unit_of(Rank count, std::uint64_t bytes) {
    const bool short_blocks = divide_up(bytes, static_cast<std::uint64_t>(count)) < kCacheLine;
    return short_blocks ? sizeof(std::uint64_t) : kCacheLine;
}

/// A BlocksHeld for the time after a binomial scatter, which leaves each member with the blocks of
/// its subtree. Members are numbered from the root.
Rank held_in_tree(Rank number, Rank count) {
    return number == 0 ? count : std::min(number & -number, count - number);
}

/// Scatters the blocks down a binomial tree from the member at index 0. Each member is left with
/// the blocks of its subtree.
void scatter_down_tree(Builder& builder, const Team& team, const BlockMap& blocks) {
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

/// Returns how many members have a block that is not empty. Of a short vector only the first have.
Rank holders_of(Rank count, std::uint64_t bytes) {
    const std::uint64_t block = bcast_block_bytes(count, bytes);
    return block == 0 ? 0 : static_cast<Rank>(divide_up(bytes, block));
}

double scatter_ns(const Link& link, Rank count, std::uint64_t bytes, RootedPiece piece) {
    const Rank holders = holders_of(count, bytes);
    return holders < 2
               ? 0
               : rooted_ns(link, holders, bcast_block_bytes(count, bytes), Root::sends, piece);
}

} // namespace

std::uint64_t bcast_block_bytes(Rank count, std::uint64_t bytes) {
    return std::min(BlockMap::cut_bytes(bytes, count, unit_of(count, bytes)), bytes);
}

BlockMap bcast_blocks(const Team& from_root, Slice data) {
    return BlockMap::cut(data, from_root.size(), unit_of(from_root.size(), data.length));
}

Rank held_by_root(Rank index, Rank count) {
    return index == 0 ? count : holds_own(index, count);
}

AllgatherChoice bcast_allgather_choice(const Link& link, Rank count, std::uint64_t bytes) {
    return allgather_choice(link, count, bytes, bcast_block_bytes(count, bytes));
}

void bcast_allgather(Builder& builder, const Team& from_root, const BlockMap& blocks,
                     const AllgatherChoice& choice, BlocksHeld held) {
    allgather(builder, from_root, choice, blocks.block(from_root.index()), blocks, held);
}

double bcast_allgather_ns(const Link& link, Rank count, std::uint64_t bytes,
                          const AllgatherChoice& choice) {
    const std::uint64_t block = bcast_block_bytes(count, bytes);
    if (count == 2) { // The root alone sends.
        return link.message_ns(block, Sender::waits) + link.sends_before_ns(1, block);
    }
    const Rank sends = allgather_sends(count, choice);
    const std::uint64_t sent = sends > 0 ? (bytes - block) / static_cast<std::uint64_t>(sends) : 0;
    return allgather_ns(link, count, bytes, block, choice) + link.sends_before_ns(sends, sent) -
           link.not_hidden_ns(link.copy_ns(block), block); // The own block is in its place.
}

AllgatherChoice bcast_allgather_choice(const Facts& facts, const graph::Request& request) {
    return bcast_allgather_choice(flat_link(facts, Traffic::dense).in_exchanges(),
                                  request.rank_count, request.bytes);
}

double bcast_allgather_ns(const Facts& facts, const graph::Request& request) {
    const AllgatherChoice choice = bcast_allgather_choice(facts, request);
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense), request.bytes, [&](const Link& link) {
            return bcast_allgather_ns(link, request.rank_count, request.bytes, choice);
        });
}

BcastChoices bcast_choices(const Link& link, Rank count, std::uint64_t bytes) {
    const AllgatherChoice allgather = bcast_allgather_choice(link, count, bytes);
    return {bcast_scatter_choice(link, count, bytes, allgather), allgather};
}

void bcast_scatter_allgather(Builder& builder, const Team& team, Rank root, Slice data,
                             const BcastChoices& choices) {
    const Team from_root = team.starting_at(root);
    const BlockMap blocks = bcast_blocks(from_root, data);
    if (choices.scatter == RootedPiece::binomial) {
        scatter_down_tree(builder, from_root, blocks);
        bcast_allgather(builder, from_root, blocks, choices.allgather, held_in_tree);
        return;
    }
    const Rank index = from_root.index();
    scatter_linear(builder, from_root, 0, blocks, index == 0 ? Slice{} : blocks.block(index));
    bcast_allgather(builder, from_root, blocks, choices.allgather, held_by_root);
}

double bcast_scatter_allgather_ns(const Link& link, Rank count, std::uint64_t bytes,
                                  const BcastChoices& choices) {
    const std::uint64_t block = bcast_block_bytes(count, bytes);
    const double ns = after_scatter_ns(
        count, bytes, scatter_ns(link, count, bytes, choices.scatter), link.gap_to_one_ns(block),
        bcast_allgather_ns(link, count, bytes, choices.allgather));
    // Messages are cut to pieces anyway, so that two are no faster than one of all bytes.
    return count == 2 ? std::max(ns, link.message_ns(bytes, Sender::waits)) : ns;
}

double after_scatter_ns(Rank count, std::uint64_t bytes, double scatter_ns, double begun_ns,
                        double allgather_ns) {
    return count > 2 && holders_of(count, bytes) > 1
               ? scatter_ns + allgather_ns
               : std::max(scatter_ns, begun_ns + allgather_ns);
}

const Algorithm kBcastScatterAllgather = {
    .name = "scatter_allgather",
    .collective = graph::Collective::bcast,
    .summary = "the cheapest scatter, then the cheapest allgather (van de Geijn 1994)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
