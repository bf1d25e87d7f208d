// Direct neighbourhood exchange: each rank sends to its neighbours, all at once. A rank knows its
// own edges alone, and messages of two ranks are matched in the order in which both write them, so
// the k-th edge of a pair is the k-th at both ends.
#include <vector>

#include "ucg_coll/plan/messages/edges.hpp"
#include "ucg_coll/plan/messages/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

/// What is there for certain: the latency. Ranks have to agree on the price, and none knows how
/// many edges others have, or how long their blocks are.
double cost_ns(const Facts& facts, const graph::Request& request) {
    return request.rank_count > 1 ? flat_link(facts, Traffic::dense).message_ns(0) : 0;
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
