// Ring allgather: every block travels once around, each member talks to its two neighbours only.
// Bandwidth-optimal. The ring goes from host to host, whatever the numbers of their ranks. Thakur,
// Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005,
// section 3.1.
#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return oversubscribed_exchange_ns(
        facts, unshared_link(facts).by_host().with_working_set(2 * all_blocks(request)),
        2 * all_blocks(request), [&](const Link& link) {
            return allgather_ring_ns(link, request.rank_count, longest_block(request));
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllgatherRing.name);
    const HostOrder order(facts, rank);
    allgather_ring(builder, order.team(), own_contribution(builder, request),
                   order.of(output_blocks(builder, request)));
    return builder.finish();
}

} // namespace

void allgather_ring(Builder& builder, const Team& team, graph::Slice own, const BlockMap& target,
                    BlocksHeld held) {
    const Rank count = team.size();
    const Rank left = team.rank(neighbour_index(team, -1));
    const Rank right = neighbour_index(team, 1);
    const auto receive = [&](Rank step) { // Block index - step - 1.
        if (held(team.index(), count) < count - step) {
            builder.recv(left, target.block(neighbour_index(team, -step - 1)));
        }
    };
    const auto send = [&](Rank step, graph::Slice block) {
        if (held(right, count) < count - step) {
            builder.send(team.rank(right), block);
        }
    };
    if (count > 1) {
        // The send comes before the first receive, which may copy while the next rank waits.
        send(0, own);
        receive(0);
    }
    builder.copy(own, target.block(team.index()));
    for (Rank step = 1; step + 1 < count; ++step) {
        // The receive is posted first, since the send waits for the receive of the step before.
        receive(step);
        send(step, target.block(neighbour_index(team, -step)));
    }
}

double allgather_ring_ns(const Link& link, Rank count, std::uint64_t longest) {
    if (count == 1) {
        return link.copy_ns(longest);
    }
    // Each block goes along the whole ring, and each link of the ring carries all blocks, one after
    // the other.
    const auto first_ns = [&](const Link& step) { return step.message_ns(longest); };
    const auto further_ns = [&](const Link& step) {
        return step.message_ns(longest, Source::fresh);
    };
    const double way_ns =
        link.around_ns(1, count, first_ns) + link.around_ns(count - 2, count, further_ns);
    const double load_ns = link.message_ns(longest) + (count - 2) * link.chain_gap_ns(longest);
    return link.not_hidden_ns(link.copy_ns(longest), longest) + std::max(way_ns, load_ns);
}

constexpr Algorithm kAllgatherRing = {
    .name = "ring",
    .collective = graph::Collective::allgather,
    .summary = "each block once around the ring of ranks (Thakur, Rabenseifner, Gropp 2005)",
    .cost_ns = cost_ns,
    .build = build,
};

constexpr Algorithm kAllgathervRing = for_collective(kAllgatherRing, graph::Collective::allgatherv);

} // namespace ucg::plan
