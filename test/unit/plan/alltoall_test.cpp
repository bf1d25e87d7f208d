#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::OpKind;

constexpr std::uint64_t kBytes[] = {0, 1, 7, 8, 4096};
constexpr Rank kLarger[] = {48, 64};

} // namespace

TEST_CASE("plan: alltoall of equal blocks is proved", "[plan][proof]") {
    for (Rank count = 1; count <= 33; ++count) {
        require_equal_blocks(Collective::alltoall, count, kBytes[count % 5]);
    }
    for (const std::uint64_t bytes : kBytes) {
        for (const Rank count : {2, 5, 8, 11}) {
            require_equal_blocks(Collective::alltoall, count, bytes);
        }
    }
    for (const Rank count : kLarger) {
        require_equal_blocks(Collective::alltoall, count, 8);
    }
}

TEST_CASE("plan: alltoallv of any blocks is proved", "[plan][proof]") {
    for (Rank count = 1; count <= 33; ++count) {
        for (const bool in_place : {false, true}) {
            BlockCase sample;
            sample.collective = Collective::alltoallv;
            sample.rank_count = count;
            sample.longest = 9;
            sample.in_place = in_place;
            sample.seed = static_cast<std::uint32_t>(count);
            for (int variant = 0; variant < 3; ++variant) {
                require_proofs(sample);
                sample.seed += 1000;
            }
        }
    }
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
