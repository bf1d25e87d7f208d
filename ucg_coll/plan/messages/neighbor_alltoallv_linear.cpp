// Direct neighbourhood exchange: each rank sends to its neighbours, all at once. A rank knows its
// own edges alone, and messages of two ranks are matched in the order in which both write them, so
// the k-th edge of a pair is the k-th at both ends.
#include <algorithm>
#include <vector>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/edges.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

/// Returns a price that all ranks agree on, although none knows how many edges others have or how
/// long their blocks are: that of the latency, and of the messages between hosts where ranks have
/// agreed on these (Request::crossing).
double cost_ns(const Facts& facts, const graph::Request& request) {
    if (request.rank_count == 1) {
        return 0;
    }
    const graph::Crossing& crossing = request.crossing;
    if (crossing.rank_pairs == 0) {
        return flat_link(facts, Traffic::dense).message_ns(0);
    }
    const std::uint64_t from_host =
        divide_up(crossing.rank_pairs, static_cast<std::uint64_t>(facts.placement.host_count()));
    const auto ranks = static_cast<std::uint64_t>(facts.placement.ranks_per_host_max());
    const Link link(facts, topo::Distance::network, static_cast<Rank>(std::min(from_host, ranks)));
    const std::uint64_t peers = divide_up(from_host, ranks);
    const std::uint64_t message = divide_up(crossing.bytes, crossing.rank_pairs);
    return host_link(facts).message_ns(0) +
           oversubscribed_exchange_ns(facts, link, 2 * peers * message, [&](const Link& shared) {
               return alltoall_rotated_ns(shared, static_cast<Rank>(peers) + 1, message, kWindow);
           });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, "linear");
    const std::vector<PeerBlocks> sent =
        by_peer(request.send.peers, sent_blocks(builder, request.send));
    const std::vector<PeerBlocks> received =
        by_peer(request.receive.peers, received_blocks(builder, request.receive));
    EdgeMessages messages(builder, facts);
    messages.send_all(sent);
    messages.receive_all(received);
    copy_own_edges(builder, sent, received); // While messages travel.
    messages.unpack_received();
    return builder.finish();
}

} // namespace

const Algorithm kNeighborAlltoallvLinear = {
    .name = "linear",
    .collective = graph::Collective::neighbor_alltoallv,
    .summary = "messages between neighbours, all at once",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
