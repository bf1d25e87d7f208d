#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"

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

TEST_CASE("plan: alltoall takes the rounds of the literature", "[plan]") {
    CHECK(count_ops(Collective::alltoall, "bruck", 16, 3, OpKind::send) == 4);
    CHECK(count_ops(Collective::alltoall, "bruck", 17, 3, OpKind::send) == 5);
    CHECK(count_ops(Collective::alltoall, "pairwise", 17, 3, OpKind::send) == 16);
    CHECK(count_ops(Collective::alltoall, "linear", 17, 3, OpKind::recv) == 16);
    // Packing in all rounds together, unpacking, and the own block: linear in the ranks.
    CHECK(count_ops(Collective::alltoall, "bruck", 256, 0, OpKind::copy) <= 2 * 256 + 8);
}

} // namespace ucg::plan::test
