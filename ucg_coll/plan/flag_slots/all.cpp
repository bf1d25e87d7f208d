// Collectives of all with all by flag slots, without an operator: barrier, allgather(v), alltoall.
#include <algorithm>

#include "ucg_coll/plan/flag_slots/flag_slots.hpp"
#include "ucg_coll/plan/messages/block_pieces.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

FlagSlotUse use_of(const graph::Request& request, std::uint64_t shared_bytes,
                   std::uint64_t read_bytes) {
    const Rank peers = request.rank_count - 1;
    return {peers, peers, shared_bytes, read_bytes};
}

/// Calls visit(peer) for all peers, beginning with the next rank, so that not all ranks look at one
/// flag slot first.
template <typename Visit>
void for_each_peer(const graph::Request& request, Rank rank, Visit&& visit) {
    for (Rank distance = 1; distance < request.rank_count; ++distance) {
        visit(static_cast<Rank>((std::int64_t{rank} + distance) % request.rank_count));
    }
}

constexpr std::array kBarrierNeeds = {kOneHost, kFlagSlots};
constexpr std::array kAllgatherNeeds = {
    kOneHost, kFlagSlots, Need{kTaken, [](const Facts& facts, const graph::Request& request) {
                                   return flag_slot_takes(facts, longest_block(request));
                               }}};

double barrier_ns(const Facts& facts, const graph::Request& request) {
    return all_flag_slots_ns(facts, use_of(request, 0, 0), 0);
}

graph::Schedule build_barrier(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kBarrierFlagSlots.name);
    builder.flag_slots();
    builder.share(builder.input(0, 0));
    for_each_peer(request, rank, [&](Rank peer) { builder.await_share(peer); });
    return builder.finish();
}

double allgather_ns(const Facts& facts, const graph::Request& request) {
    const std::uint64_t longest = longest_block(request);
    return all_flag_slots_ns(facts, use_of(request, longest, longest),
                             landing_ns(facts, request.rank_count, longest));
}

graph::Schedule build_allgather(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kAllgatherFlagSlots.name);
    builder.flag_slots();
    const BlockMap target = output_blocks(builder, request);
    const Slice own = own_contribution(builder, request);
    builder.share(own);
    builder.copy(own, target.block(rank));
    for_each_peer(request, rank, [&](Rank peer) {
        const Slice block = target.block(peer);
        builder.copy(Builder::flag_slot(peer, 0, block.length), block);
    });
    return builder.finish();
}

double alltoall_ns(const Facts& facts, const graph::Request& request) {
    const std::uint64_t shared_bytes =
        request.bytes * static_cast<std::uint64_t>(shared_blocks_max(request.rank_count));
    return all_flag_slots_ns(facts, use_of(request, shared_bytes, request.bytes),
                             landing_ns(facts, request.rank_count, request.bytes));
}

graph::Schedule build_alltoall(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kAlltoallFlagSlots.name);
    builder.flag_slots();
    const BlockMap target = output_blocks(builder, request);
    const BlockMap source = request.in_place ? target : input_blocks(builder, request);
    const SharedBlocks shared = shared_blocks(rank, request.rank_count);
    builder.share(packed(builder, source.runs(shared.first, shared.count)));
    if (!request.in_place) {
        builder.copy(source.block(rank), target.block(rank));
    }
    for_each_peer(request, rank, [&](Rank peer) {
        const Rank before = rank - shared_blocks(peer, request.rank_count).first;
        const std::uint64_t offset = request.bytes * static_cast<std::uint64_t>(before);
        builder.copy(Builder::flag_slot(peer, offset, request.bytes), target.block(peer));
    });
    return builder.finish();
}

} // namespace

const Algorithm kBarrierFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::barrier,
    .summary = "each rank writes a line that all read (Li, Hoefler, Snir 2013)",
    .cost_ns = barrier_ns,
    .build = build_barrier,
    .needs = kBarrierNeeds,
};

constexpr Algorithm kAllgatherFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::allgather,
    .summary = "each rank writes its block once, where all read it",
    .cost_ns = allgather_ns,
    .build = build_allgather,
    .needs = kAllgatherNeeds,
};

constexpr Algorithm kAllgathervFlagSlots =
    for_collective(kAllgatherFlagSlots, graph::Collective::allgatherv);

const Algorithm kAlltoallFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::alltoall,
    .summary = "each rank writes its peers' blocks at once, of which every peer reads its own",
    .cost_ns = alltoall_ns,
    .build = build_alltoall,
    .needs = kBlocksNeeds,
};

} // namespace ucg::plan
