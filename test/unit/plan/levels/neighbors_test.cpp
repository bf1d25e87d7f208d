// The two-level neighbourhood exchange: which messages go between hosts. It is proved for a stencil
// of 27 points from the edges of all ranks, with blocks that fit the rooms that ranks have agreed
// on and with blocks that do not.
#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/plan/levels/rows.hpp"

namespace ucg::plan::test {
namespace {

using graph::Blocks;
using graph::Request;

constexpr std::array<Rank, 3> kGrid = {4, 2, 2};
constexpr Rank kRanks = 16;
constexpr std::array<Rank, 3> kPowers = {9, 3, 1};
constexpr Rank kDirections = 27;
constexpr Rank kNoDirection = 13;

/// The step of a direction along one axis: -1, 0 or 1.
Rank step(Rank direction, std::size_t axis) {
    return direction / kPowers[axis] % 3 - 1;
}

/// The rank that is so many steps away from `rank` in that direction; the grid is periodic.
Rank rank_at(Rank rank, Rank direction, Rank steps) {
    const std::array<Rank, 3> place = {rank / 4, rank / 2 % 2, rank % 2};
    Rank other = 0;
    for (std::size_t axis = 0; axis < kGrid.size(); ++axis) {
        const Rank moved = place[axis] + steps * step(direction, axis) + kGrid[axis];
        other = other * kGrid[axis] + moved % kGrid[axis];
    }
    return other;
}

/// The size in bytes of a face, an edge or a corner of a cube with 16 points along each axis.
std::uint64_t points(Rank direction) {
    std::uint64_t bytes = 8;
    for (std::size_t axis = 0; axis < kGrid.size(); ++axis) {
        bytes *= step(direction, axis) == 0 ? 16 : 1;
    }
    return bytes;
}

void append(Blocks& blocks, Rank peer, std::uint64_t bytes) {
    blocks.offsets.push_back(blocks.empty() ? 0 : blocks.offsets.back() + blocks.bytes.back());
    blocks.bytes.push_back(bytes);
    blocks.peers.push_back(peer);
}

/// The requests of all ranks, without rooms.
std::vector<Request> stencil(const std::function<std::uint64_t(Rank from, Rank direction)>& bytes) {
    std::vector<Request> requests;
    for (Rank rank = 0; rank < kRanks; ++rank) {
        Request request;
        request.collective = graph::Collective::neighbor_alltoallv;
        request.rank_count = kRanks;
        for (Rank direction = 0; direction < kDirections; ++direction) {
            if (direction != kNoDirection) {
                const Rank from = rank_at(rank, direction, -1);
                append(request.send, rank_at(rank, direction, 1), bytes(rank, direction));
                append(request.receive, from, bytes(from, direction));
            }
        }
        requests.push_back(std::move(request));
    }
    return requests;
}

/// Gives each rank the rooms of its host, which are as long as the blocks of `agreed`.
void add_rooms(std::vector<Request>& requests, const std::vector<Request>& agreed,
               const topo::Placement& placement) {
    for (Rank rank = 0; rank < kRanks; ++rank) {
        std::vector<graph::EdgeRoom>& rooms = requests[static_cast<std::size_t>(rank)].rooms;
        for (Rank from = 0; from < kRanks; ++from) {
            const Blocks& sent = agreed[static_cast<std::size_t>(from)].send;
            for (std::size_t i = 0; i < sent.peers.size(); ++i) {
                const Rank to = sent.peers[i];
                if (!placement.same_host(from, to) &&
                    (placement.same_host(rank, from) || placement.same_host(rank, to))) {
                    rooms.push_back({from, to, sent.bytes[i]});
                }
            }
        }
        std::stable_sort(rooms.begin(), rooms.end(),
                         [](const auto& a, const auto& b) { return ends_of(a) < ends_of(b); });
        requests[static_cast<std::size_t>(rank)].crossing = {8, 128, 9 << 10};
    }
}

/// Proves the plans of all ranks, and counts the messages between hosts.
std::size_t messages_between_hosts(const Facts& facts, const std::vector<Request>& requests,
                                   const Algorithm& row) {
    std::vector<graph::Schedule> schedules;
    std::size_t messages = 0;
    for (Rank rank = 0; rank < kRanks; ++rank) {
        const Request& request = requests[static_cast<std::size_t>(rank)];
        REQUIRE(row.eligible(facts, request));
        schedules.push_back(row.build(facts, request, rank));
        for (const graph::Op& op : schedules.back().ops) {
            messages +=
                op.kind == graph::OpKind::send && !facts.placement.same_host(rank, op.peer) ? 1 : 0;
        }
    }
    CHECK(graph::verify(schedules, requests).message() == "");
    return messages;
}

std::uint64_t usual(Rank, Rank direction) {
    return points(direction);
}

} // namespace

TEST_CASE("plan: a stencil on four hosts has one message for each pair of neighbouring hosts",
          "[plan][neighbors]") {
    const topo::Placement placement = topo::Placement::regular(4, 4);
    const cost::Profile profile = cost::default_profile();
    const Facts facts{placement, profile};
    std::vector<Request> requests = stencil(usual);
    add_rooms(requests, requests, placement);
    std::size_t edges = 0;
    for (Rank rank = 0; rank < kRanks; ++rank) {
        const std::vector<Rank>& to = requests[static_cast<std::size_t>(rank)].send.peers;
        edges += static_cast<std::size_t>(std::count_if(
            to.begin(), to.end(), [&](Rank peer) { return !placement.same_host(rank, peer); }));
    }
    CHECK(edges == 16 * 18);
    CHECK(messages_between_hosts(facts, requests, kNeighborAlltoallvTwoLevel) == 4 * 2);
}

TEST_CASE("plan: blocks that do not fit their rooms go between their two ranks",
          "[plan][neighbors]") {
    const topo::Placement placement = topo::Placement::regular(4, 4);
    const cost::Profile profile = cost::default_profile();
    const Facts facts{placement, profile};
    const auto count = [&](const std::function<std::uint64_t(Rank, Rank)>& bytes) {
        std::vector<Request> requests = stencil(bytes);
        add_rooms(requests, stencil(usual), placement);
        return messages_between_hosts(facts, requests, kNeighborAlltoallvTwoLevel);
    };
    // Shorter blocks leave gaps, even where a block is empty.
    CHECK(count([](Rank, Rank direction) { return points(direction) / 2; }) == 8);
    CHECK(count([](Rank from, Rank direction) { return from % 3 == 0 ? points(direction) : 0; }) ==
          8);
    // In the first case one block is longer than its room; in the second all blocks of one rank
    // are, some of which lead to the same few ranks.
    CHECK(count([](Rank from, Rank direction) {
              return points(direction) + (from == 5 && direction == 0 ? 1 : 0);
          }) == 9);
    CHECK(count([](Rank from, Rank direction) {
              return from == 5 ? 2 * points(direction) : points(direction);
          }) > 8);
    CHECK(count([](Rank, Rank) { return 4096; }) > 128); // All blocks are longer than their rooms.
}

TEST_CASE("plan: many short messages between hosts are combined, a few long ones are not",
          "[plan][neighbors]") {
    const topo::Placement placement = topo::Placement::regular(4, 4);
    const cost::Profile profile = cost::default_profile();
    const Facts facts{placement, profile};
    Request request = stencil(usual).front();
    CHECK(choose(facts, request).name == "linear"); // The ranks have agreed on no rooms.
    request.crossing = {8, 128, 8 * 9 << 10};
    CHECK(choose(facts, request).name == "two_level");
    request.crossing = {8, 8, 8 << 20};
    CHECK(choose(facts, request).name == "linear");
    CHECK_FALSE(
        kNeighborAlltoallvTwoLevel.eligible({topo::Placement::one_host(kRanks), profile}, request));
    CHECK_FALSE(kNeighborAlltoallvTwoLevel.eligible({topo::Placement::regular(kRanks, 1), profile},
                                                    request));
}

} // namespace ucg::plan::test
