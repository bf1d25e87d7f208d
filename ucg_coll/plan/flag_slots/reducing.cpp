// Reductions to all ranks by flag slots: allreduce, reduce_scatter(_block), scan, exscan. Every
// rank combines for itself, in rank order, in one pass.
#include <algorithm>

#include "ucg_coll/plan/flag_slots/flag_slots.hpp"
#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/pieces.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Returns the time in which all ranks share, read and combine. `combined` is how many operands the
/// last rank combines.
double reading_all_ns(const Facts& facts, const graph::Request& request, std::uint64_t shared_bytes,
                      std::uint64_t read_bytes, Rank combined, bool prefix = false) {
    const Rank peers = request.rank_count - 1;
    const double combine_ns = combined == 1 ? host_link(facts).copy_ns(read_bytes)
                                            : combining_flag_slots_ns(facts, combined, read_bytes);
    return all_flag_slots_ns(facts, {peers, peers, shared_bytes, read_bytes, prefix}, combine_ns);
}

double allreduce_ns(const Facts& facts, const graph::Request& request) {
    return reading_all_ns(facts, request, request.bytes, request.bytes, request.rank_count);
}

/// Combines the vectors of ranks [first, last) to the output.
void combine(Builder& builder, const graph::Request& request, Rank first, Rank last) {
    const Slice own = contribution(builder, request);
    reduce_to_result(builder, in_rank_order(builder, first, last, 0, own),
                     builder.output(0, request.bytes));
}

graph::Schedule build_allreduce(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kAllreduceFlagSlots.name);
    builder.flag_slots();
    builder.share(contribution(builder, request));
    combine(builder, request, 0, request.rank_count);
    return builder.finish();
}

/// Returns the most bytes that any rank shares.
std::uint64_t reduce_scatter_shared_bytes(const graph::Request& request) {
    return shared_blocks_max(request.rank_count) < request.rank_count ? longest_block(request)
                                                                      : all_blocks(request);
}

constexpr std::array kReduceScatterNeeds = {
    kOneHost, kFlagSlots, Need{kTaken, [](const Facts& facts, const graph::Request& request) {
                                   return flag_slot_takes(facts,
                                                          reduce_scatter_shared_bytes(request));
                               }}};

double reduce_scatter_ns(const Facts& facts, const graph::Request& request) {
    return reading_all_ns(facts, request, reduce_scatter_shared_bytes(request),
                          longest_block(request), request.rank_count);
}

graph::Schedule build_reduce_scatter(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kReduceScatterFlagSlots.name);
    builder.flag_slots();
    const BlockMap source = reduce_scatter_source(builder, request);
    const SharedBlocks shared = shared_blocks(rank, request.rank_count);
    builder.share(packed(builder, source.runs(shared.first, shared.count)));
    const Slice own = source.block(rank);
    std::vector<Slice> operands;
    for (Rank peer = 0; peer < request.rank_count; ++peer) {
        const Rank first = shared_blocks(peer, request.rank_count).first;
        operands.push_back(
            peer == rank
                ? own
                : Builder::flag_slot(peer, source.run_bytes(first, rank - first), own.length));
    }
    reduce_to_result(builder, operands, reduce_scatter_target(builder, request));
    return builder.finish();
}

/// The last rank combines all contributions, the others fewer.
double scan_ns(const Facts& facts, const graph::Request& request) {
    return reading_all_ns(facts, request, request.bytes, request.bytes, request.rank_count, true);
}

graph::Schedule build_scan(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kScanFlagSlots.name);
    builder.flag_slots();
    if (rank + 1 < request.rank_count) {
        builder.share(contribution(builder, request));
    }
    combine(builder, request, 0, rank + 1);
    return builder.finish();
}

double exscan_ns(const Facts& facts, const graph::Request& request) {
    return reading_all_ns(facts, request, request.bytes, request.bytes, request.rank_count - 1,
                          true);
}

graph::Schedule build_exscan(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kExscanFlagSlots.name);
    builder.flag_slots();
    if (rank + 1 < request.rank_count) {
        builder.share(contribution(builder, request));
    }
    if (rank > 0) {
        builder.reduce(in_rank_order(builder, 0, rank, 0, contribution(builder, request)),
                       builder.output(0, request.bytes));
    }
    return builder.finish();
}

} // namespace

const Algorithm kAllreduceFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::allreduce,
    .summary = "each rank writes its vector once, and combines those of all for itself",
    .cost_ns = allreduce_ns,
    .build = build_allreduce,
    .needs = kVectorNeeds,
};

constexpr Algorithm kReduceScatterFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::reduce_scatter,
    .summary = "each rank writes its peers' blocks once, and combines its own of all of them",
    .cost_ns = reduce_scatter_ns,
    .build = build_reduce_scatter,
    .needs = kReduceScatterNeeds,
};

constexpr Algorithm kReduceScatterBlockFlagSlots =
    for_collective(kReduceScatterFlagSlots, graph::Collective::reduce_scatter_block);

const Algorithm kScanFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::scan,
    .summary = "each rank writes its vector once, and combines those up to its own",
    .cost_ns = scan_ns,
    .build = build_scan,
    .needs = kVectorNeeds,
};

const Algorithm kExscanFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::exscan,
    .summary = "each rank writes its vector once, and combines those below its own",
    .cost_ns = exscan_ns,
    .build = build_exscan,
    .needs = kVectorNeeds,
};

} // namespace ucg::plan
