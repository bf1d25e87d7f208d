// The long form of the proofs for block vectors: every group size up to 64 with many random
// lengths, and samples up to 1024 ranks (256 where each rank exchanges messages with all others).
// Run by `plan_test "[exhaustive]"`.
#include <array>

#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;

constexpr Collective kWithVectors[] = {Collective::allgatherv, Collective::alltoallv,
                                       Collective::gatherv, Collective::scatterv,
                                       Collective::reduce_scatter};
constexpr Collective kWithEqualBlocks[] = {Collective::allgather, Collective::alltoall,
                                           Collective::gather, Collective::scatter,
                                           Collective::reduce_scatter_block};

bool talks_to_all(Collective collective) {
    return collective == Collective::alltoall || collective == Collective::alltoallv ||
           collective == Collective::reduce_scatter ||
           collective == Collective::reduce_scatter_block;
}

/// Proves the rows in place and not, commutative and not where that matters, at `root_count` roots.
void require_vectors(Collective collective, Rank count, std::uint64_t longest, std::uint32_t seed,
                     int root_count) {
    const std::array roots = {count / 2, count - 1, 0};
    const unsigned variants = graph::reduces(collective) ? 4 : 2;
    for (unsigned variant = 0; variant < variants; ++variant) {
        BlockCase sample;
        sample.collective = collective;
        sample.rank_count = count;
        sample.element_bytes = 3;
        sample.longest = longest;
        sample.in_place = variant % 2 == 1;
        sample.commutative = variant / 2 == 0;
        for (int i = 0; i < (graph::rooted(collective) ? root_count : 1); ++i) {
            sample.root = roots[static_cast<std::size_t>(i)];
            sample.seed = seed++;
            require_proofs(sample);
        }
    }
}

} // namespace

TEST_CASE("plan: every size to 64 is proved with any blocks", "[.exhaustive]") {
    std::uint32_t seed = 1;
    for (const Collective collective : kWithVectors) {
        for (Rank count = 1; count <= 64; ++count) {
            for (const std::uint64_t longest : {0U, 1U, 3U, 1400U}) {
                require_vectors(collective, count, longest, seed += 100, 3);
            }
        }
    }
}

TEST_CASE("plan: every size to 64 is proved with equal blocks", "[.exhaustive]") {
    for (const Collective collective : kWithEqualBlocks) {
        for (Rank count = 1; count <= 64; ++count) {
            for (const std::uint64_t bytes : {0U, 1U, 7U, 8U, 4096U}) {
                require_equal_blocks(collective, count, bytes);
            }
        }
    }
}

TEST_CASE("plan: large groups are proved with any blocks", "[.exhaustive]") {
    std::uint32_t seed = 7;
    for (const Rank count : {127, 128, 200, 256, 511, 1000, 1024}) {
        for (const Collective collective : kWithVectors) {
            if (count <= 256 || !talks_to_all(collective)) {
                require_vectors(collective, count, 5, seed += 100, 1);
            }
        }
    }
}

} // namespace ucg::plan::test
