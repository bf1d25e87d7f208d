#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"
#include "test/unit/plan/proof.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::OpKind;

} // namespace

TEST_CASE("plan: alltoall of equal blocks is proved", "[plan][proof]") {
    require_equal_blocks_everywhere(Collective::alltoall);
}

TEST_CASE("plan: alltoallv of any blocks is proved", "[plan][proof]") {
    require_any_blocks(Collective::alltoallv);
}

TEST_CASE("plan: ranks whose messages are long exchange one at a time, others do not wait for it",
          "[plan][proof]") {
    constexpr Rank kCount = 9;
    const topo::Placement placement = place(RankLayout::single, kCount);
    cost::Profile profile = cost::default_profile();
    cost::LogGp& network = profile.levels[static_cast<std::size_t>(topo::Distance::network)];
    network = {.latency_ns = 1, .overhead_ns = 1, .gap_ns = 1, .gap_per_byte_ns = 1};
    const Facts facts{placement, profile};
    const Facts usual{placement, cost::default_profile()};
    Rank one_at_a_time = 0;
    Rank all = 0;
    for (std::uint32_t seed = 0; seed < 8; ++seed) {
        for (const bool in_place : {false, true}) {
            const std::vector<graph::Request> requests =
                random_requests({Collective::alltoallv, kCount, 0, 1, 48, in_place, true, seed});
            const Status proved = prove(facts, "linear", requests);
            INFO(proved.message());
            REQUIRE(proved.ok());
            for (Rank rank = 0; rank < kCount; ++rank) {
                const graph::Request& request = requests[static_cast<std::size_t>(rank)];
                one_at_a_time +=
                    *plan(facts, request, rank, "linear") != *plan(usual, request, rank, "linear");
                ++all;
            }
        }
    }
    CHECK(one_at_a_time > 0);
    CHECK(one_at_a_time < all);
}

TEST_CASE("plan: alltoall takes the rounds of the literature", "[plan]") {
    CHECK(count_ops(Collective::alltoall, "bruck", 16, 3, OpKind::send) == 4);
    CHECK(count_ops(Collective::alltoall, "bruck", 17, 3, OpKind::send) == 5);
    CHECK(count_ops(Collective::alltoall, "pairwise", 17, 3, OpKind::send) == 16);
    CHECK(count_ops(Collective::alltoall, "linear", 17, 3, OpKind::recv) == 16);
    // Packing in all rounds together, unpacking, and the rank's own block take copies in proportion
    // to the number of ranks.
    CHECK(count_ops(Collective::alltoall, "bruck", 256, 0, OpKind::copy) <= 2 * 256 + 8);
}

} // namespace ucg::plan::test
