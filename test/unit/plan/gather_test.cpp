#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::OpKind;

constexpr std::uint64_t kBytes[] = {0, 1, 7, 8, 4096};
constexpr Rank kLarger[] = {48, 64};

} // namespace

TEST_CASE("plan: gather of equal blocks is proved", "[plan][proof]") {
    for (Rank count = 1; count <= 33; ++count) {
        require_equal_blocks(Collective::gather, count, kBytes[count % 5]);
    }
    for (const std::uint64_t bytes : kBytes) {
        for (const Rank count : {2, 5, 8, 11}) {
            require_equal_blocks(Collective::gather, count, bytes);
        }
    }
    for (const Rank count : kLarger) {
        require_equal_blocks(Collective::gather, count, 8);
    }
}

TEST_CASE("plan: gatherv of any blocks is proved", "[plan][proof]") {
    for (Rank count = 1; count <= 33; ++count) {
        for (const bool in_place : {false, true}) {
            BlockCase sample;
            sample.collective = Collective::gatherv;
            sample.rank_count = count;
            sample.longest = 9;
            sample.in_place = in_place;
            sample.seed = static_cast<std::uint32_t>(count);
            for (const Rank root : {0, count / 2, count - 1}) {
                sample.root = root;
                require_proofs(sample);
                ++sample.seed;
            }
        }
    }
}

TEST_CASE("plan: a binomial gather has logarithmic fan-in and single messages", "[plan]") {
    CHECK(count_ops(Collective::gather, "binomial", 1000000, 0, OpKind::recv) == 20);
    CHECK(count_ops(Collective::gather, "binomial", 1000000, 524288, OpKind::send) == 1);
    CHECK(count_ops(Collective::gather, "binomial", 1000000, 999999, OpKind::recv) == 0);
}

} // namespace ucg::plan::test
