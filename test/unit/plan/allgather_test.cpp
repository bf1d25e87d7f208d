#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::OpKind;

constexpr std::uint64_t kBytes[] = {0, 1, 7, 8, 4096};
constexpr Rank kLarger[] = {48, 64};

} // namespace

TEST_CASE("plan: allgather of equal blocks is proved", "[plan][proof]") {
    for (Rank count = 1; count <= 33; ++count) {
        require_equal_blocks(Collective::allgather, count, kBytes[count % 5]);
    }
    for (const std::uint64_t bytes : kBytes) {
        for (const Rank count : {2, 5, 8, 11}) {
            require_equal_blocks(Collective::allgather, count, bytes);
        }
    }
    for (const Rank count : kLarger) {
        require_equal_blocks(Collective::allgather, count, 8);
    }
}

TEST_CASE("plan: allgatherv of any blocks is proved", "[plan][proof]") {
    for (Rank count = 1; count <= 33; ++count) {
        for (const bool in_place : {false, true}) {
            BlockCase sample;
            sample.collective = Collective::allgatherv;
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

TEST_CASE("plan: allgather takes the rounds of the literature", "[plan]") {
    for (const Rank rank : {0, 7, 15}) {
        CHECK(count_ops(Collective::allgather, "recursive_doubling", 16, rank, OpKind::send) == 4);
        CHECK(count_ops(Collective::allgather, "ring", 16, rank, OpKind::send) == 15);
        CHECK(count_ops(Collective::allgather, "bruck", 16, rank, OpKind::recv) == 4);
    }
    CHECK(count_ops(Collective::allgather, "bruck", 17, 16, OpKind::send) == 5);
    // The first rank's blocks wrap around nowhere.
    CHECK(count_ops(Collective::allgather, "bruck", 17, 0, OpKind::copy) == 1);
}

} // namespace ucg::plan::test
