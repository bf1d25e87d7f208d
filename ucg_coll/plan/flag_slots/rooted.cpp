// Collectives with a root by flag slots: bcast, reduce, gather, scatter. A rank that shares does
// not wait for those that read.
#include <algorithm>
#include <array>

#include "ucg_coll/plan/flag_slots/pieces.hpp"
#include "ucg_coll/plan/messages/block_best.hpp"
#include "ucg_coll/plan/messages/pieces.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Returns the time in which the root shares `shared_bytes`, and each of the others reads
/// request.bytes of them and copies these to their place.
double from_root_ns(const Facts& facts, const graph::Request& request, std::uint64_t shared_bytes) {
    const double landing_ns = host_link(facts).copy_ns(request.bytes);
    const double span_ns =
        from_root_by_flag_slots_ns(facts, request.rank_count, shared_bytes, request.bytes) +
        landing_ns;
    return oversubscribed_ns(facts, host_link(facts), request.bytes, span_ns,
                             [&](const Work& work) {
                                 const FlagSlotUse part = {1, 1, 0, request.bytes};
                                 return all_but_one(request.rank_count) *
                                            (flag_slots_work_ns(facts, work, part) + landing_ns) +
                                        work.link().copy_ns(shared_bytes) / request.rank_count;
                             });
}

/// Returns the time in which all others share `block_bytes`, and the root reads them and works on
/// them for `root_ns`.
double to_root_ns(const Facts& facts, const graph::Request& request, std::uint64_t block_bytes,
                  double root_ns) {
    const double span_ns =
        to_root_by_flag_slots_ns(facts, request.rank_count, block_bytes, request.root) + root_ns;
    return oversubscribed_ns(facts, host_link(facts), block_bytes, span_ns, [&](const Work& work) {
        const FlagSlotUse one = {1, 1, block_bytes, block_bytes};
        return all_but_one(request.rank_count) * flag_slots_work_ns(facts, work, one) +
               root_ns / request.rank_count;
    });
}

double bcast_ns(const Facts& facts, const graph::Request& request) {
    return from_root_ns(facts, request, request.bytes);
}

graph::Schedule build_bcast(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kBcastFlagSlots.name);
    builder.flag_slots();
    bcast_by_flag_slots(builder, Team::whole(request.rank_count, rank), request.root,
                        bcast_data(builder, request));
    return builder.finish();
}

double flag_slots_allgather_ns(const Facts& facts, const graph::Request& request) {
    graph::Request scatter = request;
    scatter.bytes = bcast_block_bytes(request.rank_count, request.bytes);
    const std::uint64_t shared_bytes = request.bytes - scatter.bytes; // The root keeps a block.
    const double share_ns = cost::copy_ns(facts.profile.memory, shared_bytes);
    return after_scatter_ns(request.rank_count, request.bytes,
                            from_root_ns(facts, scatter, shared_bytes), share_ns,
                            bcast_allgather_ns(facts, request));
}

graph::Schedule build_flag_slots_allgather(const Facts& facts, const graph::Request& request,
                                           Rank rank) {
    Builder builder(request, rank, kBcastFlagSlotsAllgather.name);
    builder.flag_slots();
    const Team from_root = Team::rotated(request.rank_count, rank, request.root);
    const BlockMap blocks = bcast_blocks(from_root, bcast_data(builder, request));
    scatter_by_flag_slots(builder, from_root, 0, blocks,
                          rank == request.root ? Slice{} : blocks.block(from_root.index()));
    bcast_allgather(builder, from_root, blocks, bcast_allgather_choice(facts, request),
                    held_by_root);
    return builder.finish();
}

double reduce_ns(const Facts& facts, const graph::Request& request) {
    return to_root_ns(facts, request, request.bytes,
                      combining_flag_slots_ns(facts, request.rank_count, request.bytes));
}

graph::Schedule build_reduce(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kReduceFlagSlots.name);
    builder.flag_slots();
    const Slice target = rank == request.root ? builder.output(0, request.bytes) : Slice{};
    reduce_by_flag_slots(builder, Team::whole(request.rank_count, rank), request.root,
                         contribution(builder, request), target);
    return builder.finish();
}

double gather_ns(const Facts& facts, const graph::Request& request) {
    const std::uint64_t block = request.bytes;
    return to_root_ns(facts, request, block, landing_ns(facts, request.rank_count, block));
}

graph::Schedule build_gather(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kGatherFlagSlots.name);
    builder.flag_slots();
    const BlockMap target =
        rank == request.root ? output_blocks(builder, request) : BlockMap::of({});
    gather_by_flag_slots(builder, Team::whole(request.rank_count, rank), request.root,
                         gather_contribution(builder, request, target), target);
    return builder.finish();
}

std::uint64_t all_of(const graph::Request& request) {
    return request.bytes * static_cast<std::uint64_t>(request.rank_count);
}

Rank scattered_blocks(const graph::Request& request) {
    return shared_blocks(request.root, request.rank_count).count;
}

double scatter_ns(const Facts& facts, const graph::Request& request) {
    return from_root_ns(facts, request,
                        request.bytes * static_cast<std::uint64_t>(scattered_blocks(request)));
}

graph::Schedule build_scatter(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kScatterFlagSlots.name);
    builder.flag_slots();
    const BlockMap source =
        rank == request.root
            ? input_blocks(builder, request)
            : BlockMap::equal({0, all_of(request)}, request.rank_count, request.bytes);
    scatter_by_flag_slots(builder, Team::whole(request.rank_count, rank), request.root, source,
                          scatter_result(builder, request));
    return builder.finish();
}

/// Needs more than two ranks: a single reader can read from the flag slot what the allgather would
/// bring it.
constexpr std::array kFlagSlotsAllgatherNeeds = {kOneHost, kFlagSlots, kVectorTaken,
                                                 kMoreThanTwoRanks};

} // namespace

const Algorithm kBcastFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::bcast,
    .summary = "the root writes the vector once, where all read it",
    .cost_ns = bcast_ns,
    .build = build_bcast,
    .needs = kVectorNeeds,
};

const Algorithm kBcastFlagSlotsAllgather = {
    .name = "flag_slots_allgather",
    .collective = graph::Collective::bcast,
    .summary = "the root writes the vector once, each rank reads a block, then the cheapest "
               "allgather",
    .cost_ns = flag_slots_allgather_ns,
    .build = build_flag_slots_allgather,
    .needs = kFlagSlotsAllgatherNeeds,
};

const Algorithm kReduceFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::reduce,
    .summary = "each rank writes its vector once, and the root combines them all",
    .cost_ns = reduce_ns,
    .build = build_reduce,
    .needs = kVectorNeeds,
};

const Algorithm kGatherFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::gather,
    .summary = "each rank writes its block once, where the root reads it",
    .cost_ns = gather_ns,
    .build = build_gather,
    .needs = kVectorNeeds,
};

const Algorithm kScatterFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::scatter,
    .summary = "the root writes all blocks at once, of which every rank reads its own",
    .cost_ns = scatter_ns,
    .build = build_scatter,
    .needs = kBlocksNeeds,
};

} // namespace ucg::plan
