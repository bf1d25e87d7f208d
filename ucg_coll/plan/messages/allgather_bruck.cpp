// Bruck's allgather: in round k a member has the 2^k blocks that begin with its own and sends them
// to the member 2^k below it: ceil(log2 P) rounds for any P. Bruck, Ho, Kipnis, Upfal, Weathersby,
// "Efficient algorithms for all-to-all communications in multiport message-passing systems", 1997.
//
// The original gathers in a rotated buffer and rotates it back at the end. Here blocks are received
// where they belong, and only runs that wrap around the end of the team go through scratch.
#include <algorithm>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense).with_working_set(2 * all_blocks(request)),
        3 * all_blocks(request), [&](const Link& link) {
            return allgather_bruck_ns(link, request.rank_count, all_blocks(request),
                                      longest_block(request));
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kAllgatherBruck.name);
    allgather_bruck(builder, Team::whole(request.rank_count, rank),
                    own_contribution(builder, request), output_blocks(builder, request));
    return builder.finish();
}

} // namespace

void allgather_bruck(Builder& builder, const Team& team, Slice own, const BlockMap& target) {
    if (team.size() == 1) {
        builder.copy(own, target.block(0));
    }
    for (Rank distance = 1; distance < team.size();) {
        const Rank count = std::min(distance, team.size() - distance);
        const Rank from = neighbour_index(team, distance);
        const std::vector<Slice> runs = target.runs(from, count);
        const Slice landing = landing_place(builder, runs);
        const Rank to = team.rank(neighbour_index(team, -distance));
        if (distance == 1) { // Before the receive, which may copy while the peer waits.
            builder.send(to, own);
        }
        builder.recv(team.rank(from), landing);
        if (distance == 1) {
            builder.copy(own, target.block(team.index()));
        } else {
            builder.send(to, packed(builder, target.runs(team.index(), count)));
        }
        unpack(builder, landing, runs);
        distance += count;
    }
}

/// Returns the price of a round whose run wraps around the end of the vector, so that it is packed
/// and then unpacked by its receiver. Where both ends copy a message, a member that waits for one
/// that is still being packed copies its own meanwhile, and both ends copy the rest together.
static double packed_round_ns(const Link& link, double copy_ns, std::uint64_t bytes) {
    const double message_ns = link.message_ns(bytes, Source::fresh);
    const double together_ns =
        link.sender_copy_ns(bytes) > 0 ? std::min(copy_ns, message_ns) / 2 : 0;
    return message_ns - together_ns + 2 * copy_ns;
}

double allgather_bruck_ns(const Link& link, Rank count, std::uint64_t total,
                          std::uint64_t longest) {
    const auto ranks = static_cast<std::uint64_t>(count);
    double ns = ranks == 1 ? link.copy_ns(total) : 0;
    for (std::uint64_t distance = 1; distance < ranks; distance *= 2) {
        const std::uint64_t blocks = std::min(distance, ranks - distance);
        const std::uint64_t bytes = std::max(longest, divide_up(total, ranks) * blocks);
        const Link round = link.rotated(distance, 4 * distance);
        ns += distance == 1
                  ? round.message_ns(bytes) + round.not_hidden_ns(link.copy_ns(bytes), bytes)
                  : packed_round_ns(round, link.copy_ns(bytes), bytes);
    }
    return ns;
}

constexpr Algorithm kAllgatherBruck = {
    .name = "bruck",
    .collective = graph::Collective::allgather,
    .summary = "doubling runs of blocks in ceil(log2 P) rounds (Bruck et al. 1997)",
    .cost_ns = cost_ns,
    .build = build,
};

constexpr Algorithm kAllgathervBruck =
    for_collective(kAllgatherBruck, graph::Collective::allgatherv);

} // namespace ucg::plan
