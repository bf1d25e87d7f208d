#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::OpKind;

} // namespace

TEST_CASE("plan: gather of equal blocks is proved", "[plan][proof]") {
    require_equal_blocks_everywhere(Collective::gather);
}

TEST_CASE("plan: gatherv of any blocks is proved", "[plan][proof]") {
    require_any_blocks(Collective::gatherv);
}

TEST_CASE("plan: a binomial gather has logarithmic fan-in and single messages", "[plan]") {
    CHECK(count_ops(Collective::gather, "binomial", 1000000, 0, OpKind::recv) == 20);
    CHECK(count_ops(Collective::gather, "binomial", 1000000, 524288, OpKind::send) == 1);
    CHECK(count_ops(Collective::gather, "binomial", 1000000, 999999, OpKind::recv) == 0);
}

} // namespace ucg::plan::test
