// Reductions in blocks: each rank writes its vector once, and combines one block of all vectors;
// the combined blocks then go to their readers by messages. A rank reads of each flag slot a block
// where the rows of reducing.cpp read the whole vector, so these serve many ranks and vectors that
// are long for a flag slot. It is the reduce-scatter and allgather, or gather, of van de Geijn, "On
// global combine operations", 1994, whose first half is the tiled reduction of Li, Hoefler and Snir
// (HPDC 2013), section 2.5, without its barriers.
#include <array>

#include "ucg_coll/plan/flag_slots/flag_slots.hpp"
#include "ucg_coll/plan/messages/block_best.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

std::uint64_t block_bytes(const graph::Request& request) {
    return longest_cut(request.rank_count, request.bytes, operator_of(request));
}

/// Returns the time in which every rank has combined its block.
double combining_blocks_ns(const Facts& facts, const graph::Request& request) {
    const std::uint64_t block = block_bytes(request);
    const Rank peers = request.rank_count - 1;
    return all_flag_slots_ns(facts, {peers, peers, request.bytes, block},
                             combining_flag_slots_ns(facts, request.rank_count, block));
}

/// Shares the vector and combines this rank's block of all vectors to `target`, which is empty
/// where the vector cannot be cut in as many blocks as there are ranks, as 5 elements for 4 ranks.
void combine_block(Builder& builder, const graph::Request& request, Slice target) {
    const Slice vector = contribution(builder, request);
    builder.share(vector);
    if (target.length > 0) {
        const Slice own =
            BlockMap::cut(vector, request.rank_count, request.element_bytes).block(builder.rank());
        reduce_to_result(
            builder, in_rank_order(builder, 0, request.rank_count, own.offset - vector.offset, own),
            target);
    }
}

AllgatherChoice allgather_choice_of(const Facts& facts, const graph::Request& request) {
    return allgather_choice(flat_link(facts, Traffic::dense).in_exchanges(), request.rank_count,
                            request.bytes, block_bytes(request));
}

double allreduce_ns(const Facts& facts, const graph::Request& request) {
    const AllgatherChoice choice = allgather_choice_of(facts, request);
    return combining_blocks_ns(facts, request) +
           oversubscribed_exchange_ns(
               facts, flat_link(facts, Traffic::dense), 2 * request.bytes, [&](const Link& link) {
                   return allgather_combined_ns(link, request.rank_count, request.bytes,
                                                block_bytes(request), choice);
               });
}

graph::Schedule build_allreduce(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceFlagSlotsAllgather.name);
    builder.flag_slots();
    const BlockMap result =
        BlockMap::cut(builder.output(0, request.bytes), request.rank_count, request.element_bytes);
    const Slice own = result.block(rank);
    combine_block(builder, request, own);
    allgather(builder, Team::whole(request.rank_count, rank), allgather_choice_of(facts, request),
              own, result);
    return builder.finish();
}

RootedPiece gather_choice_of(const Facts& facts, const graph::Request& request) {
    return rooted_choice(flat_link(facts, Traffic::dense).in_exchanges(), request.rank_count,
                         block_bytes(request), Root::receives);
}

double reduce_ns(const Facts& facts, const graph::Request& request) {
    const RootedPiece choice = gather_choice_of(facts, request);
    return combining_blocks_ns(facts, request) +
           oversubscribed_exchange_ns(facts, flat_link(facts, Traffic::dense), 2 * request.bytes,
                                      [&](const Link& link) {
                                          return gather_combined_ns(link, request.rank_count,
                                                                    block_bytes(request), choice);
                                      });
}

graph::Schedule build_reduce(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceFlagSlotsGather.name);
    builder.flag_slots();
    const bool at_root = rank == request.root;
    // Of the others' blocks a rank on the way to the root need only know the lengths.
    const Slice vector =
        at_root ? builder.output(0, request.bytes) : contribution(builder, request);
    const BlockMap blocks = BlockMap::cut(vector, request.rank_count, request.element_bytes);
    const Slice own = at_root ? blocks.block(rank) : builder.scratch(blocks.block(rank).length);
    combine_block(builder, request, own);
    gather(builder, Team::whole(request.rank_count, rank), gather_choice_of(facts, request),
           request.root, own, blocks);
    return builder.finish();
}

/// Each rank has a block to combine.
constexpr Need kElementEach = {
    "an element for each rank", [](const Facts&, const graph::Request& request) {
        const std::uint64_t elements = request.bytes / request.element_bytes;
        return elements >= static_cast<std::uint64_t>(request.rank_count);
    }};
/// One of two ranks would read half of a vector, and wait for a message with the other half.
constexpr std::array kBlockwiseNeeds = {kOneHost, kFlagSlots, kVectorTaken, kMoreThanTwoRanks,
                                        kElementEach};

} // namespace

const Algorithm kAllreduceFlagSlotsAllgather = {
    .name = "flag_slots_allgather",
    .collective = graph::Collective::allreduce,
    .summary = "each rank writes its vector once and combines a block of all of them, then the "
               "cheapest allgather",
    .cost_ns = allreduce_ns,
    .build = build_allreduce,
    .needs = kBlockwiseNeeds,
};

const Algorithm kReduceFlagSlotsGather = {
    .name = "flag_slots_gather",
    .collective = graph::Collective::reduce,
    .summary = "each rank writes its vector once and combines a block of all of them, then the "
               "cheapest gather",
    .cost_ns = reduce_ns,
    .build = build_reduce,
    .needs = kBlockwiseNeeds,
};

} // namespace ucg::plan
