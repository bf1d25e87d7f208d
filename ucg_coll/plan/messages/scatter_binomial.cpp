// Binomial scatter: each member receives the blocks of its subtree in one message and passes on
// what is not its own, largest part first. ceil(log2 P) rounds. Thakur, Rabenseifner, Gropp,
// "Optimization of collective communication operations in MPICH", 2005.
#include "ucg_coll/plan/messages/binomial.hpp"
#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return binomial_blocks_ns(facts, request, Root::sends);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kScatterBinomial.name);
    scatter_binomial(builder, Team::whole(request.rank_count, rank), request.root,
                     input_blocks(builder, request), scatter_result(builder, request));
    return builder.finish();
}

void distribute_from_root(Builder& builder, const Team& team, const BinomialTree& tree,
                          const BlockMap& source, Slice own) {
    const auto& children = tree.children();
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
        builder.send(team.rank(child->first),
                     packed(builder, source.runs(child->first, child->count)));
    }
    if (own.length > 0) {
        builder.copy(source.block(team.index()), own);
    }
}

} // namespace

void scatter_binomial(Builder& builder, const Team& team, Rank root, const BlockMap& source,
                      Slice own) {
    const BinomialTree tree(team, root);
    if (team.index() == root) {
        distribute_from_root(builder, team, tree, source, own);
        return;
    }
    if (tree.own().count == 1) {
        builder.recv(team.rank(tree.parent()), own);
        return;
    }
    const Slice received = builder.scratch(source.run_bytes(tree.own().first, tree.own().count));
    builder.recv(team.rank(tree.parent()), received);
    const auto& children = tree.children();
    std::uint64_t end = received.length;
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
        const std::uint64_t bytes = source.run_bytes(child->first, child->count);
        end -= bytes;
        builder.send(team.rank(child->first), part(received, end, bytes));
    }
    builder.copy(part(received, 0, own.length), own);
}

const Algorithm kScatterBinomial = {
    .name = "binomial",
    .collective = graph::Collective::scatter,
    .summary = "down a binomial tree, ceil(log2 P) rounds (Thakur, Rabenseifner, Gropp 2005)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
