// Ring reduce-scatter: the partial result of block b starts at member b + 1, goes around the ring,
// gains each member's contribution and ends at member b. Bandwidth-optimal. Operands come in ring
// order, hence for commutative operators; so the ring may go from host to host. Thakur,
// Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005 (the
// first half of the ring allreduce).
#include <array>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return oversubscribed_exchange_ns(
        facts, unshared_link(facts).by_host().with_working_set(2 * all_blocks(request)),
        3 * all_blocks(request), [&](const Link& link) {
            return reduce_scatter_ring_ns(link, request.rank_count, longest_block(request));
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceScatterRing.name);
    const HostOrder order(facts, rank);
    reduce_scatter_ring(builder, order.team(), order.of(reduce_scatter_source(builder, request)),
                        reduce_scatter_target(builder, request));
    return builder.finish();
}

} // namespace

void reduce_scatter_ring(Builder& builder, const Team& team, const BlockMap& source, Slice target) {
    if (team.size() == 1) {
        builder.copy(source.block(0), target);
        return;
    }
    const Rank left = team.rank(neighbour_index(team, -1));
    const Rank right = team.rank(neighbour_index(team, 1));
    // One partial result is on its way out, one is being combined, one is on its way in.
    std::array<Slice, 3> places;
    for (Slice& place : places) {
        place = builder.scratch(source.bytes_max());
    }
    const Rank steps = team.size() - 1;
    const auto arriving = [&](Rank step) { // Where block index - 2 - step arrives.
        return part(places[static_cast<std::size_t>(step) % places.size()], 0,
                    source.bytes(neighbour_index(team, -step - 2)));
    };
    // Before the first receive, which may copy at once while the next rank waits.
    builder.send(right, source.block(neighbour_index(team, -1)));
    builder.recv(left, arriving(0));
    for (Rank step = 0; step < steps; ++step) {
        if (step + 1 < steps) {
            builder.recv(left, arriving(step + 1)); // Posted before the wait for this step's.
        }
        const std::array operands = {arriving(step),
                                     source.block(neighbour_index(team, -step - 2))};
        if (step + 1 < steps) {
            builder.reduce(operands, operands[0]);
            builder.send(right, operands[0]);
        } else {
            reduce_to_result(builder, operands, target);
        }
    }
}

double reduce_scatter_ring_ns(const Link& link, Rank count, std::uint64_t longest) {
    if (count == 1) {
        return link.copy_ns(longest);
    }
    const std::uint64_t vector_bytes = longest * static_cast<std::uint64_t>(count);
    const auto step_ns = [&](const Link& step) {
        return step.message_ns(longest) + step.combining_ns(longest, vector_bytes);
    };
    // The time of one block along all ranks, or, if that is longer, of all blocks over the slowest
    // link of the ring.
    const double combining_ns = link.combining_ns(longest, vector_bytes);
    const double load_ns = link.message_ns(longest) + combining_ns +
                           (count - 2) * link.chain_gap_ns(longest, combining_ns);
    return std::max(link.around_ns(count - 1, count, step_ns), load_ns);
}

constexpr Algorithm kReduceScatterRing = {
    .name = "ring",
    .collective = graph::Collective::reduce_scatter,
    .summary = "partial results once around the ring (Thakur, Rabenseifner, Gropp 2005)",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kReduceScatterAnyOrder,
};

constexpr Algorithm kReduceScatterBlockRing =
    for_collective(kReduceScatterRing, graph::Collective::reduce_scatter_block);

} // namespace ucg::plan
