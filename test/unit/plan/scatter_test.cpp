#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::OpKind;

} // namespace

TEST_CASE("plan: scatter of equal blocks is proved", "[plan][proof]") {
    require_equal_blocks_everywhere(Collective::scatter);
}

TEST_CASE("plan: scatterv of any blocks is proved", "[plan][proof]") {
    require_any_blocks(Collective::scatterv);
}

TEST_CASE("plan: a binomial scatter has logarithmic fan-out and single messages", "[plan]") {
    CHECK(count_ops(Collective::scatter, "binomial", 1000000, 0, OpKind::send) == 20);
    CHECK(count_ops(Collective::scatter, "binomial", 1000000, 524288, OpKind::recv) == 1);
    CHECK(count_ops(Collective::scatter, "binomial", 1000000, 999999, OpKind::send) == 0);
}

} // namespace ucg::plan::test
