// When ranks add up the lengths of an alltoallv's blocks, and which mean length they derive from
// the sum.
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/mean_block.hpp"

namespace ucg::capi {
namespace {

TEST_CASE("capi: ranks add up at the first alltoallv, and ever more seldom after", "[capi]") {
    MeanBlock mean;
    std::vector<int> sums;
    for (int call = 1; call <= 130; ++call) {
        if (mean.begins(8)) {
            sums.push_back(call);
            mean.added_up(8, 2);
        }
    }
    CHECK(sums == std::vector<int>{1, 3, 7, 15, 31, 63, 95, 127});
}

TEST_CASE("capi: the mean is that of all blocks since the last sum, with those that are empty",
          "[capi]") {
    constexpr Rank kRanks = 3; // Each rank sends two blocks in a call.
    MeanBlock mean;
    REQUIRE(mean.begins(100));
    CHECK(mean.received() == 100);
    CHECK(mean.added_up(100 + 500 + 0, kRanks) == 100);
    CHECK(mean.received() == 0);
    REQUIRE_FALSE(mean.begins(40));
    REQUIRE(mean.begins(20));
    CHECK(mean.received() == 60);
    CHECK(mean.added_up(60 + 0 + 0, kRanks) == 5);
    for (int call = 0; call < 3; ++call) {
        REQUIRE_FALSE(mean.begins(0));
    }
    REQUIRE(mean.begins(1));
    CHECK(mean.added_up(1, kRanks) == 1); // The mean is rounded up to 1, not down to 0.
}

} // namespace
} // namespace ucg::capi
