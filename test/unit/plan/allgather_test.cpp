#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::OpKind;

} // namespace

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
