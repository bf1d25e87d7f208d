// Ring allreduce: a ring reduce-scatter, then a ring allgather. Every link carries the vector
// twice, less two blocks, which is the least possible (Patarasuk, Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", 2009). A block is combined in the order of
// the ring from where it starts, which is not rank order.
#include <array>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

constexpr std::array kNeeds = {kCommutative};

double cost_ns(const Facts& facts, const graph::Request& request) {
    return oversubscribed_exchange_ns(
        facts, unshared_link(facts).by_host(), 5 * request.bytes, [&](const Link& link) {
            return allreduce_ring_ns(link, request.rank_count, request.bytes, operator_of(request));
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceRing.name);
    const HostOrder order(facts, rank);
    allreduce_ring(builder, order.team(), contribution(builder, request),
                   builder.output(0, request.bytes), operator_of(request));
    return builder.finish();
}

/// Returns the lengths of the blocks, one per member. The first ones may be one element longer than
/// the others.
std::vector<std::uint64_t> block_lengths(Rank count, std::uint64_t bytes, Operator op) {
    const std::uint64_t elements = bytes / op.element_bytes;
    const auto blocks = static_cast<std::uint64_t>(count);
    std::vector<std::uint64_t> lengths(blocks, elements / blocks * op.element_bytes);
    for (std::uint64_t i = 0; i < elements % blocks; ++i) {
        lengths[i] += op.element_bytes;
    }
    return lengths;
}

} // namespace

void allreduce_ring(Builder& builder, const Team& team, Slice source, Slice target, Operator op) {
    const std::vector<std::uint64_t> lengths = block_lengths(team.size(), source.length, op);
    const BlockMap result = BlockMap::end_to_end(target, lengths);
    const Slice own = result.block(team.index());
    reduce_scatter_ring(builder, team, BlockMap::end_to_end(source, lengths), own);
    allgather_ring(builder, team, own, result);
}

double allreduce_ring_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op) {
    const std::uint64_t block = BlockMap::cut_bytes(bytes, count, op.element_bytes);
    // The allgather finds its own block in place.
    const auto step_ns = [&](const Link& step) { return step.message_ns(block, Source::fresh); };
    return reduce_scatter_ring_ns(link, count, block) +
           std::max(link.around_ns(count - 1, count, step_ns),
                    link.message_ns(block, Source::fresh) + (count - 2) * link.chain_gap_ns(block));
}

const Algorithm kAllreduceRing = {
    .name = "ring",
    .collective = graph::Collective::allreduce,
    .summary = "reduce-scatter and allgather around the ring of ranks (Patarasuk, Yuan 2009)",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kNeeds,
};

} // namespace ucg::plan
