// Reduce-scatter as a reduction of all blocks to the first rank and a scatter from it: twice the
// depth of a tree, but few messages, and operands are combined in rank order, for operators that do
// not commute. Thakur, Rabenseifner, Gropp, "Optimization of collective
// communication operations in MPICH", 2005, section 3.4, where it is MPICH's old algorithm.
#include <array>

#include "ucg_coll/plan/messages/block_best.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// A reduction to the first rank keeps rank order.
constexpr Rank kRoot = 0;

/// Returns the cheapest pieces with this reduction, each by its link.
ReduceThenScatter choices_by(const Link& reduces, const Link& scatters, Rank count,
                             std::uint64_t total, std::uint64_t longest, Operator op,
                             bool by_halving) {
    return {by_halving, by_halving ? kRadixMin : reduce_knomial_once_radix(reduces, count, total),
            rooted_choice(scatters, count, longest, Root::sends), op};
}

double reduce_ns(const Link& link, Rank count, std::uint64_t total,
                 const ReduceThenScatter& choices) {
    return choices.by_halving
               ? reduce_rabenseifner_once_ns(link, count, total, choices.op.element_bytes)
               : reduce_knomial_once_ns(link, count, total, choices.radix);
}

/// The pieces among all ranks, and the links by which they are priced.
struct Way {
    Link reduces;
    Link scatters;
    ReduceThenScatter choices;

    /// Both are priced for a single call, since all ranks wait for the scatter.
    double span_ns(const graph::Request& request) const {
        return reduce_ns(reduces, request.rank_count, all_blocks(request), choices) +
               reduces.queue_ns() +
               rooted_once_ns(scatters, request.rank_count, longest_block(request), Root::sends,
                              choices.scatter);
    }
};

Way way_by(const Facts& facts, const graph::Request& request, const Link& reduces,
           bool by_halving) {
    const Link scatters = unshared_link(facts);
    return {reduces, scatters,
            choices_by(reduces, scatters, request.rank_count, all_blocks(request),
                       longest_block(request), operator_of(request), by_halving)};
}

/// Returns the cheaper of two ways: up a tree, in which one rank of each host sends at a time, and
/// by halving, in which all do.
Way way_of(const Facts& facts, const graph::Request& request) {
    const Way tree = way_by(facts, request, flat_link(facts, Traffic::sparse), false);
    const Way halving =
        way_by(facts, request, flat_link(facts, Traffic::dense).in_exchanges(), true);
    return tree.span_ns(request) <= halving.span_ns(request) ? tree : halving;
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Way way = way_of(facts, request);
    const Rank count = request.rank_count;
    const std::uint64_t total = all_blocks(request);
    return oversubscribed_ns(
        facts, way.reduces, 3 * total, way.span_ns(request), [&](const Work& work) {
            const Link& link = work.link();
            const double combine_ns =
                way.choices.by_halving
                    ? reduce_ns(link, count, total, way.choices)
                    : all_but_one(count) * (link.message_ns(total) + link.reduce_ns(2, total));
            // At each level of a binomial tree half of all blocks move.
            const double scatter_ns =
                way.choices.scatter == RootedPiece::linear
                    ? all_but_one(count) * link.message_ns(longest_block(request))
                    : tree_depth(count, 2) * link.message_ns(total / 2) / count;
            return combine_ns + scatter_ns;
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceScatterReduceThenScatter.name);
    reduce_then_scatter(builder, Team::whole(request.rank_count, rank),
                        way_of(facts, request).choices, reduce_scatter_source(builder, request),
                        reduce_scatter_target(builder, request));
    return builder.finish();
}

/// Returns the blocks, of the lengths of those in `blocks`, in scratch.
BlockMap blocks_in_scratch(Builder& builder, const BlockMap& blocks) {
    std::vector<std::uint64_t> bytes;
    bytes.reserve(static_cast<std::size_t>(blocks.count()));
    for (Rank index = 0; index < blocks.count(); ++index) {
        bytes.push_back(blocks.bytes(index));
    }
    return BlockMap::end_to_end(builder.scratch(blocks.run_bytes(0, blocks.count())), bytes);
}

/// Returns all blocks in one slice.
Slice whole(const BlockMap& blocks) {
    Slice vector = blocks.block(0);
    vector.length = blocks.run_bytes(0, blocks.count());
    return vector;
}

} // namespace

ReduceThenScatter reduce_then_scatter_choice(const Link& link, Rank count, std::uint64_t total,
                                             std::uint64_t longest, Operator op) {
    const auto tree = choices_by(link, link, count, total, longest, op, false);
    const auto halving = choices_by(link, link, count, total, longest, op, true);
    return reduce_ns(link, count, total, tree) <= reduce_ns(link, count, total, halving) ? tree
                                                                                         : halving;
}

double reduce_then_scatter_ns(const Link& link, Rank count, std::uint64_t total,
                              std::uint64_t longest, const ReduceThenScatter& choices) {
    return reduce_ns(link, count, total, choices) +
           rooted_once_ns(link, count, longest, Root::sends, choices.scatter);
}

void reduce_then_scatter(Builder& builder, const Team& team, const ReduceThenScatter& choices,
                         const BlockMap& source, Slice target) {
    if (team.size() == 1) {
        builder.copy(source.block(0), target);
        return;
    }
    const bool at_root = team.index() == kRoot;
    // Other members need only know the lengths.
    const BlockMap result = at_root ? blocks_in_scratch(builder, source) : source;
    if (choices.by_halving) {
        reduce_rabenseifner(builder, team, kRoot, whole(source), whole(result), choices.op);
    } else {
        reduce_knomial(builder, team, kRoot, whole(source), whole(result), choices.op,
                       choices.radix);
    }
    scatter(builder, team, choices.scatter, kRoot, result, target);
}

/// Where the order is free, other rows serve, whose prices have been checked by measurements.
static constexpr std::array kNeeds = {
    Need{"an operator that does not commute",
         [](const Facts&, const graph::Request& request) { return !request.commutative; }}};

template <graph::Collective collective>
static constexpr Algorithm row() {
    return {
        .name = "reduce_then_scatter",
        .collective = collective,
        .summary = "all blocks to the first rank, combined in rank order, then scattered",
        .cost_ns = cost_ns,
        .build = build,
        .needs = kNeeds,
    };
}

const Algorithm kReduceScatterReduceThenScatter = row<graph::Collective::reduce_scatter>();
const Algorithm kReduceScatterBlockReduceThenScatter =
    row<graph::Collective::reduce_scatter_block>();

} // namespace ucg::plan
