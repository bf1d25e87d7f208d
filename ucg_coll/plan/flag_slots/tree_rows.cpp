// Collectives of one host by flag slots over its levels: barrier, bcast, reduce, allreduce, and
// reduce_scatter_block as an allreduce of which each rank keeps its block. For vectors that fit a
// flag slot, what counts is how many flag slots a rank looks at.
#include <algorithm>

#include "ucg_coll/plan/flag_slots/tree.hpp"
#include "ucg_coll/plan/messages/block_pieces.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

constexpr Need kTreeCombines = {"a commutative operator or levels of consecutive ranks",
                                [](const Facts& facts, const graph::Request& request) {
                                    return tree_combines(facts, request.commutative);
                                }};
constexpr std::array kBarrierNeeds = {kOneHost, kFlagSlots, kSeveralLevels};
constexpr std::array kBcastNeeds = {kOneHost, kFlagSlots, kSeveralLevels, kVectorTaken};
constexpr std::array kBlockNeeds = {kOneHost, kFlagSlots, kSeveralLevels, kBlocksTaken,
                                    kTreeCombines};
constexpr std::array kReductionNeeds = {kOneHost, kFlagSlots, kSeveralLevels, kVectorTaken,
                                        kTreeCombines};

/// Returns the time of a collective that takes `span_ns` where each rank has a processor. Where
/// ranks share processors, each of the `waits` is for a turn. `reads` is how many flag slots a rank
/// takes in on average.
double with_work_ns(const Facts& facts, const graph::Request& request, double span_ns,
                    unsigned waits, double reads) {
    if (facts.ranks_per_cpu <= 1) {
        return span_ns;
    }
    const Work work(facts, host_link(facts), 2 * request.bytes);
    const double each_ns = flag_slots_work_ns(facts, work, {1, 1, request.bytes, request.bytes}) +
                           work.link().copy_ns(request.bytes);
    return std::max(span_ns, waits * turn_ns(facts.profile, facts.ranks_per_cpu) +
                                 facts.ranks_per_cpu * reads * each_ns);
}

// The time of each collective over the levels of `limits`, with a processor for each rank.

double all_by_ns(const Facts& facts, const graph::Request& request, const TreeLimits& limits) {
    return up_tree_ns(facts, limits, TreeEnd::tops, request.bytes) +
           from_tops_ns(facts, limits, request.bytes);
}

double bcast_by_ns(const Facts& facts, const graph::Request& request, const TreeLimits& limits) {
    return down_tree_ns(facts, limits, request.bytes);
}

double reduce_by_ns(const Facts& facts, const graph::Request& request, const TreeLimits& limits) {
    return up_tree_ns(facts, limits, TreeEnd::root, request.bytes);
}

template <auto by_ns>
TreeLimits limits_for(const Facts& facts, const graph::Request& request) {
    return cheapest_limits(facts,
                           [&](const TreeLimits& limits) { return by_ns(facts, request, limits); });
}

double all_ns(const Facts& facts, const graph::Request& request) {
    const TreeLimits limits = limits_for<all_by_ns>(facts, request);
    return with_work_ns(facts, request, all_by_ns(facts, request, limits),
                        up_tree_waits(limits, TreeEnd::tops) + kDownTreeWaits, 2);
}

double bcast_ns(const Facts& facts, const graph::Request& request) {
    const TreeLimits limits = limits_for<bcast_by_ns>(facts, request);
    return with_work_ns(facts, request, bcast_by_ns(facts, request, limits), kDownTreeWaits, 1);
}

double reduce_ns(const Facts& facts, const graph::Request& request) {
    const TreeLimits limits = limits_for<reduce_by_ns>(facts, request);
    return with_work_ns(facts, request, reduce_by_ns(facts, request, limits),
                        up_tree_waits(limits, TreeEnd::root), 1);
}

/// The whole vector of a reduce_scatter_block.
graph::Request whole_of(const graph::Request& request) {
    graph::Request whole = request;
    whole.bytes *= static_cast<std::uint64_t>(request.rank_count);
    return whole;
}

double reduce_scatter_ns(const Facts& facts, const graph::Request& request) {
    return all_ns(facts, whole_of(request)) + host_link(facts).copy_ns(request.bytes);
}

template <auto by_ns>
FlagSlotTree tree_of(const Facts& facts, const graph::Request& request, const Builder& builder) {
    return FlagSlotTree(facts.placement, limits_for<by_ns>(facts, request), builder.rank(),
                        graph::rooted(request.collective) ? request.root : kNoRank);
}

graph::Schedule build_barrier(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBarrierFlagSlotTree.name);
    builder.flag_slots();
    const FlagSlotTree tree = tree_of<all_by_ns>(facts, request, builder);
    OpIds last;
    arrive_by_tree(builder, tree, TreeEnd::tops, last);
    release_by_tops(builder, tree, last);
    return builder.finish();
}

graph::Schedule build_bcast(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastFlagSlotTree.name);
    builder.flag_slots();
    bcast_by_tree(builder, tree_of<bcast_by_ns>(facts, request, builder), request.root,
                  bcast_data(builder, request));
    return builder.finish();
}

graph::Schedule build_reduce(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceFlagSlotTree.name);
    builder.flag_slots();
    const Slice part = reduce_by_tree(builder, tree_of<reduce_by_ns>(facts, request, builder),
                                      TreeEnd::root, contribution(builder, request));
    if (rank == request.root) {
        builder.copy(part, builder.output(0, request.bytes));
    }
    return builder.finish();
}

graph::Schedule build_allreduce(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceFlagSlotTree.name);
    builder.flag_slots();
    const FlagSlotTree tree = tree_of<all_by_ns>(facts, request, builder);
    const Slice part = reduce_by_tree(builder, tree, TreeEnd::tops, contribution(builder, request));
    combine_by_tops(builder, tree, part, builder.output(0, request.bytes));
    return builder.finish();
}

graph::Schedule build_reduce_scatter(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceScatterBlockFlagSlotTree.name);
    builder.flag_slots();
    const graph::Request whole = whole_of(request);
    const FlagSlotTree tree = tree_of<all_by_ns>(facts, whole, builder);
    const Slice part = reduce_by_tree(builder, tree, TreeEnd::tops,
                                      request.in_place ? builder.output(0, whole.bytes)
                                                       : builder.input(0, whole.bytes));
    const Slice result = builder.scratch(whole.bytes);
    combine_by_tops(builder, tree, part, result);
    builder.copy(BlockMap::equal(result, request.rank_count, request.bytes).block(rank),
                 reduce_scatter_target(builder, request));
    return builder.finish();
}

} // namespace

const Algorithm kBarrierFlagSlotTree = {
    .name = "flag_slot_tree",
    .collective = graph::Collective::barrier,
    .summary = "lines that the ranks of a level read, over the levels (Li, Hoefler, Snir 2013)",
    .cost_ns = all_ns,
    .build = build_barrier,
    .needs = kBarrierNeeds,
};

const Algorithm kBcastFlagSlotTree = {
    .name = "flag_slot_tree",
    .collective = graph::Collective::bcast,
    .summary = "one rank of each group reads what the root writes, and writes it for its group",
    .cost_ns = bcast_ns,
    .build = build_bcast,
    .needs = kBcastNeeds,
};

const Algorithm kReduceFlagSlotTree = {
    .name = "flag_slot_tree",
    .collective = graph::Collective::reduce,
    .summary = "one rank of each group combines its ranks' vectors, over the levels",
    .cost_ns = reduce_ns,
    .build = build_reduce,
    .needs = kReductionNeeds,
};

const Algorithm kAllreduceFlagSlotTree = {
    .name = "flag_slot_tree",
    .collective = graph::Collective::allreduce,
    .summary = "up the levels to some ranks, whose results one of each group reads and combines",
    .cost_ns = all_ns,
    .build = build_allreduce,
    .needs = kReductionNeeds,
};

const Algorithm kReduceScatterBlockFlagSlotTree = {
    .name = "flag_slot_tree",
    .collective = graph::Collective::reduce_scatter_block,
    .summary = "as the allreduce over the levels, of which each rank keeps its block",
    .cost_ns = reduce_scatter_ns,
    .build = build_reduce_scatter,
    .needs = kBlockNeeds,
};

} // namespace ucg::plan
