// Direct neighbourhood exchange: a message for each edge, all at once. A rank knows its own edges
// alone, and messages of two ranks are matched in the order in which both write them, so the k-th
// edge of a pair is the k-th at both ends.
#include <vector>

#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {
namespace {

using graph::Blocks;
using graph::Builder;

/// What is there for certain: the latency. Ranks have to agree on the price, and none knows how
/// many edges others have, or how long their blocks are.
double cost_ns(const Facts& facts, const graph::Request& request) {
    return request.rank_count > 1 ? flat_link(facts, Traffic::dense).message_ns(0) : 0;
}

/// Blocks that stay on this rank, in order.
std::vector<std::size_t> own_edges(const Blocks& blocks, Rank rank) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < blocks.peers.size(); ++i) {
        if (blocks.peers[i] == rank) {
            places.push_back(i);
        }
    }
    return places;
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, "linear");
    const Blocks& sent = request.send;
    const Blocks& received = request.receive;
    for (std::size_t i = 0; i < sent.peers.size(); ++i) {
        if (sent.peers[i] != rank) {
            builder.send(sent.peers[i], builder.input(sent.offsets[i], sent.bytes[i]));
        }
    }
    for (std::size_t i = 0; i < received.peers.size(); ++i) {
        if (received.peers[i] != rank) {
            builder.recv(received.peers[i], builder.output(received.offsets[i], received.bytes[i]));
        }
    }
    const std::vector<std::size_t> sources = own_edges(sent, rank);
    const std::vector<std::size_t> targets = own_edges(received, rank);
    for (std::size_t k = 0; k < sources.size(); ++k) { // While messages travel.
        builder.copy(builder.input(sent.offsets[sources[k]], sent.bytes[sources[k]]),
                     builder.output(received.offsets[targets[k]], received.bytes[targets[k]]));
    }
    return builder.finish();
}

} // namespace

const Algorithm kNeighborAlltoallvLinear = {
    .name = "linear",
    .collective = graph::Collective::neighbor_alltoallv,
    .summary = "a message for each edge, all at once",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
