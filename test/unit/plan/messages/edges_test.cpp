// Blocks between two ranks: those that cost less to copy than a message costs are sent together.
#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/plan/messages/rows.hpp"

namespace ucg::plan::test {
namespace {

using graph::OpKind;

/// A request for edges from rank 0 to rank 1, in this order, with a gap behind each block.
graph::Request edges_of(Rank rank, std::span<const std::uint64_t> lengths) {
    graph::Request request;
    request.collective = graph::Collective::neighbor_alltoallv;
    request.rank_count = 2;
    graph::Blocks& blocks = rank == 0 ? request.send : request.receive;
    std::uint64_t offset = 0;
    for (const std::uint64_t bytes : lengths) {
        blocks.bytes.push_back(bytes);
        blocks.offsets.push_back(offset);
        blocks.peers.push_back(1 - rank);
        offset += bytes + 8;
    }
    return request;
}

/// The lengths of the messages between the two ranks, which both must have in the same order.
std::vector<std::uint64_t> messages_of(const Facts& facts,
                                       const std::vector<std::uint64_t>& lengths) {
    std::vector<std::uint64_t> sent;
    std::vector<std::uint64_t> received;
    std::vector<graph::Request> requests;
    std::vector<graph::Schedule> schedules;
    for (const Rank rank : {0, 1}) {
        requests.push_back(edges_of(rank, lengths));
        schedules.push_back(kNeighborAlltoallvLinear.build(facts, requests.back(), rank));
        for (const graph::Op& op : schedules.back().ops) {
            if (op.kind == OpKind::send) {
                sent.push_back(op.source.length);
            } else if (op.kind == OpKind::recv) {
                received.push_back(op.target.length);
            }
        }
    }
    CHECK(sent == received);
    CHECK(graph::verify(schedules, requests).message() == "");
    return sent;
}

} // namespace

TEST_CASE("plan: short blocks of two neighbours go in one message", "[plan][edges]") {
    const cost::Profile profile = cost::default_profile();
    const std::uint64_t far_too_long = 1 << 20;
    for (const RankLayout layout : {RankLayout::one_host, RankLayout::single}) {
        const topo::Placement placement = place(layout, 2);
        const Facts facts{placement, profile};
        using Lengths = std::vector<std::uint64_t>;
        CHECK(messages_of(facts, {8, 16, 32}) == Lengths{56});
        CHECK(messages_of(facts, {8, far_too_long, 16, 0, far_too_long + 1}) ==
              Lengths{24, far_too_long, far_too_long + 1});
        CHECK(messages_of(facts, {far_too_long, 8}) == Lengths{8, far_too_long});
        CHECK(messages_of(facts, {0, 0}).empty());
    }
}

TEST_CASE("plan: a message between hosts is worth longer copies", "[plan][edges]") {
    cost::Profile profile = cost::default_profile();
    profile.levels[static_cast<std::size_t>(topo::Distance::network)].overhead_ns = 1e6;
    const topo::Placement one_host = place(RankLayout::one_host, 2);
    const topo::Placement two_hosts = place(RankLayout::single, 2);
    const std::vector<std::uint64_t> lengths = {64 << 10, 64 << 10};
    CHECK(messages_of({one_host, profile}, lengths).size() == 2);
    CHECK(messages_of({two_hosts, profile}, lengths).size() == 1);
}

} // namespace ucg::plan::test
