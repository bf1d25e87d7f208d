// Binomial gather: each member collects the blocks of its subtree, which are neighbours from it
// upwards, and passes them on in one message. ceil(log2 P) rounds. Thakur, Rabenseifner, Gropp,
// "Optimization of collective communication operations in MPICH", 2005.
#include <algorithm>
#include <bit>

#include "ucg_coll/plan/messages/binomial.hpp"
#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/knomial_prices.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kGatherBinomial.name);
    const BlockMap target = output_blocks(builder, request);
    gather_binomial(builder, Team::whole(request.rank_count, rank), request.root,
                    gather_contribution(builder, request, target), target);
    return builder.finish();
}

void collect_at_root(Builder& builder, const Team& team, const BinomialTree& tree, Slice own,
                     const BlockMap& target) {
    struct Wrapped {
        Slice landing;
        std::vector<Slice> runs;
    };
    std::vector<Wrapped> wrapped;
    for (const BinomialTree::Subtree& child : tree.children()) {
        std::vector<Slice> runs = target.runs(child.first, child.count);
        const Slice landing = landing_place(builder, runs);
        builder.recv(team.rank(child.first), landing);
        wrapped.push_back({landing, std::move(runs)});
    }
    builder.copy(own, target.block(team.index()));
    for (const Wrapped& piece : wrapped) {
        unpack(builder, piece.landing, piece.runs);
    }
}

/// The steps of KnomialPrice for messages that have the blocks of whole subtrees. A rank that has
/// nothing else to do helps to copy them.
struct BlockSteps {
    const Link& link;
    std::uint64_t block_bytes;
    Root root;

    TreeMessage message(const TreeChild& child) const {
        const Link way = link.rotated(static_cast<std::uint64_t>(child.span),
                                      static_cast<std::uint64_t>(child.span) + 1);
        const std::uint64_t bytes = static_cast<std::uint64_t>(child.members) * block_bytes;
        const bool settled = root == Root::sends ? child.of_root : child.is_leaf();
        return {alone_ns(child, way.to_one_of(bytes, settled ? Source::settled : Source::fresh),
                         root == Root::sends ? link.copy_ns(block_bytes) : 0),
                root == Root::sends ? way.gap_of_sender_ns(bytes) : way.gap_ns(bytes),
                way.has_plain_messages(bytes), way.sender_copy_ns(bytes)};
    }
    /// Returns the time of a message by itself. The sender helps when it is free and has copied its
    /// own block, which takes `own_ns`; copies of other receivers take the way to the sender's
    /// memory, too.
    static double alone_ns(const TreeChild& child, const ToOneOf& way, double own_ns) {
        const double part = own_ns / std::max(way.busy_ns - way.rts_fin_ns, 1.0);
        const double alone = std::min(child.busy_before / child.members + part, 1.0);
        const double of_all = 1 + static_cast<double>(child.members_before) / child.members;
        const double taken_ns = way.contended_ns > 0 && child.before > 0
                                    ? way.rts_fin_ns + of_all * way.contended_ns
                                    : 0;
        return std::max(way.helped_ns + alone * (way.busy_ns - way.helped_ns), taken_ns);
    }
    std::size_t level(std::int64_t span) const {
        return link.levels().between(0, static_cast<Rank>(span));
    }
    static double at_level(std::int64_t /*span*/, unsigned /*children*/) { return 0; }
    /// Returns the time to copy a member's own block, which leaves have in place.
    double at_node(Rank members) const { return members > 1 ? link.copy_ns(block_bytes) : 0; }
};

} // namespace

void gather_binomial(Builder& builder, const Team& team, Rank root, Slice own,
                     const BlockMap& target) {
    const BinomialTree tree(team, root);
    if (team.index() == root) {
        collect_at_root(builder, team, tree, own, target);
        return;
    }
    if (tree.own().count == 1) {
        builder.send(team.rank(tree.parent()), own);
        return;
    }
    const Slice collected = builder.scratch(target.run_bytes(tree.own().first, tree.own().count));
    std::uint64_t offset = own.length;
    for (const BinomialTree::Subtree& child : tree.children()) {
        const std::uint64_t bytes = target.run_bytes(child.first, child.count);
        builder.recv(team.rank(child.first), part(collected, offset, bytes));
        offset += bytes;
    }
    builder.copy(own, part(collected, 0, own.length));
    builder.send(team.rank(tree.parent()), collected);
}

double binomial_blocks_once_ns(const Link& link, Rank count, std::uint64_t block_bytes, Root root) {
    if (count == 1) {
        return link.copy_ns(block_bytes);
    }
    const BlockSteps steps{link, block_bytes, root};
    KnomialPrice price(2, steps);
    return root == Root::sends ? price.down_ns(count) : price.up_ns(count);
}

double binomial_blocks_ns(const Link& link, Rank count, std::uint64_t block_bytes, Root root) {
    const auto ranks = static_cast<std::uint64_t>(count);
    double ns = binomial_blocks_once_ns(link, count, block_bytes, root);
    for (std::uint64_t distance = 1; distance < ranks; distance *= 2) {
        const std::uint64_t bytes = std::min(distance, ranks - distance) * block_bytes;
        const Link level = link.in_tree(2 * distance);
        ns += root == Root::sends ? level.sends_before_ns(1, bytes)
                                  : level.receives_before_ns(link.at_a_time(), bytes);
    }
    // The largest message shares the root's way out with the others, and arrives with the last.
    if (root == Root::sends && link.is_bound_by_way_out(block_bytes)) {
        const std::uint64_t first = std::bit_floor(ranks - 1);
        ns += static_cast<double>((ranks - 1 - std::min(first, ranks - first)) * block_bytes) *
              link.gap_per_byte_ns();
    }
    return ns;
}

double binomial_blocks_ns(const Facts& facts, const graph::Request& request, Root root) {
    const Link link = flat_link(facts, Traffic::sparse);
    const Rank count = request.rank_count;
    const double span_ns = binomial_blocks_ns(link, count, request.bytes, root);
    const std::uint64_t all_bytes = static_cast<std::uint64_t>(count) * request.bytes;
    return oversubscribed_ns(facts, link, all_bytes, span_ns, [&](const Work& work) {
        // At each level half of all blocks move.
        return tree_depth(count, 2) * work.link().message_ns(all_bytes / 2) / count;
    });
}

static double cost_ns(const Facts& facts, const graph::Request& request) {
    return binomial_blocks_ns(facts, request, Root::receives);
}

const Algorithm kGatherBinomial = {
    .name = "binomial",
    .collective = graph::Collective::gather,
    .summary = "up a binomial tree, ceil(log2 P) rounds (Thakur, Rabenseifner, Gropp 2005)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
