#include <algorithm>
#include <random>

#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::OpKind;

constexpr std::uint64_t kSegmentBytes = 256;

/// Returns the requests of an allgatherv of blocks of `shortest` bytes and of up to two segments
/// more.
std::vector<graph::Request> similar_blocks(Rank count, std::uint64_t shortest, bool in_place,
                                           std::mt19937& random) {
    graph::Request request;
    request.collective = Collective::allgatherv;
    request.rank_count = count;
    request.in_place = in_place;
    std::uint64_t end = 0;
    for (Rank rank = 0; rank < count; ++rank) {
        const std::uint64_t more = rank == 0 ? 0 : random() % (2 * kSegmentBytes + 1);
        request.receive.bytes.push_back(shortest + more);
        request.receive.offsets.push_back(end);
        end += shortest + more;
    }
    return std::vector<graph::Request>(static_cast<std::size_t>(count), request);
}

} // namespace

TEST_CASE("plan: blocks that are read in shared memory end in different segments",
          "[plan][proof]") {
    std::mt19937 random(7);
    const cost::Profile& profile = cost::default_profile();
    for (const Rank count : {2, 3, 4, 7}) {
        const topo::Placement placement = topo::Placement::one_host(count);
        const Facts facts{placement, profile,
                          shared_memory(placement, profile, 2 * kSegmentBytes, false)};
        for (const std::uint64_t shortest : {0, 1, 255, 256, 511, 1700}) {
            for (const bool in_place : {false, true}) {
                INFO(count << " ranks, from " << shortest << " bytes on, in place " << in_place);
                const auto requests = similar_blocks(count, shortest, in_place, random);
                const Status status = prove(facts, "peer_read", requests);
                INFO(status.message());
                const auto& bytes = requests.front().receive.bytes;
                CHECK(status.ok() == (*std::max_element(bytes.begin(), bytes.end()) > 0));
            }
        }
    }
}

TEST_CASE("plan: allgather of equal blocks is proved", "[plan][proof]") {
    require_equal_blocks_everywhere(Collective::allgather);
}

TEST_CASE("plan: allgatherv of any blocks is proved", "[plan][proof]") {
    require_any_blocks(Collective::allgatherv);
}

TEST_CASE("plan: allgather takes the rounds of the literature", "[plan]") {
    for (const Rank rank : {0, 7, 15}) {
        CHECK(count_ops(Collective::allgather, "recursive_doubling", 16, rank, OpKind::send) == 4);
        CHECK(count_ops(Collective::allgather, "ring", 16, rank, OpKind::send) == 15);
        CHECK(count_ops(Collective::allgather, "bruck", 16, rank, OpKind::recv) == 4);
    }
    CHECK(count_ops(Collective::allgather, "bruck", 17, 16, OpKind::send) == 5);
    // The first rank's blocks do not wrap around.
    CHECK(count_ops(Collective::allgather, "bruck", 17, 0, OpKind::copy) == 1);
}

} // namespace ucg::plan::test
