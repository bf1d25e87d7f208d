#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/plan/messages/block_best.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::OpKind;

constexpr std::uint64_t kBytes[] = {0, 1, 7, 8, 4096};
constexpr Rank kLarger[] = {48, 64};

/// The price of the row that is chosen, for several calls in a row.
double chosen_ns(const Facts& facts, Case sample, Collective collective, std::uint64_t bytes) {
    sample.collective = collective;
    sample.bytes = bytes;
    const graph::Request request = request_of(sample, 0);
    return choose(facts, request).cost_ns(facts, request);
}

} // namespace

TEST_CASE("plan: reduce_scatter_block is proved", "[plan][proof]") {
    for (Rank count = 1; count <= 33; ++count) {
        require_equal_blocks(Collective::reduce_scatter_block, count, 8 * (count % 4), 8);
    }
    for (const std::uint64_t bytes : kBytes) {
        for (const Rank count : {2, 5, 8, 11}) {
            require_equal_blocks(Collective::reduce_scatter_block, count, bytes, 1);
        }
    }
    for (const Rank count : kLarger) {
        require_equal_blocks(Collective::reduce_scatter_block, count, 8, 8);
    }
}

TEST_CASE("plan: reduce_scatter of any blocks is proved", "[plan][proof]") {
    for (Rank count = 1; count <= 33; ++count) {
        for (const bool in_place : {false, true}) {
            for (const bool commutative : {false, true}) {
                BlockCase sample;
                sample.collective = Collective::reduce_scatter;
                sample.rank_count = count;
                sample.element_bytes = 3;
                sample.longest = 5;
                sample.in_place = in_place;
                sample.commutative = commutative;
                for (std::uint32_t variant = 0; variant < 3; ++variant) {
                    sample.seed = static_cast<std::uint32_t>(count) + 1000 * variant;
                    require_proofs(sample);
                }
            }
        }
    }
}

TEST_CASE("plan: reduce_scatter by any rounds is proved", "[plan][proof]") {
    struct Sample {
        Rank count;
        std::string_view rounds;
    };
    constexpr Sample kSamples[] = {{2, "a2"},     {7, "a7"},        {7, "a2,a2,a2"}, {7, "a3,a3"},
                                   {8, "a4,a2"},  {8, "a2,a4"},     {12, "a3,a4"},   {12, "a5,a3"},
                                   {13, "a2,a7"}, {17, "a3,a2,a3"}, {25, "a5,a5"},   {30, "a7,a5"}};
    for (const Sample& sample : kSamples) {
        const auto algorithm = fmt::format("n_way_dissemination:{}", sample.rounds);
        const topo::Placement placement = place(kLayouts[0], sample.count);
        // The seed determines the block lengths, some of which are 0.
        for (const std::uint32_t seed : {0, 1, 2}) {
            for (const bool in_place : {false, true}) {
                BlockCase blocks;
                blocks.collective = Collective::reduce_scatter;
                blocks.rank_count = sample.count;
                blocks.element_bytes = 3;
                blocks.longest = 5;
                blocks.in_place = in_place;
                blocks.seed = seed;
                const Status status =
                    prove({placement, cost::default_profile()}, algorithm, random_requests(blocks));
                INFO(algorithm << " " << status.message());
                REQUIRE(status.ok());
            }
        }
    }
}

TEST_CASE("plan: a reduction in rank order and a scatter cost no less than reduce_scatter",
          "[plan]") {
    std::vector<topo::Place> dealt;
    for (std::uint32_t rank = 0; rank < 1024; ++rank) {
        dealt.push_back({rank % 64, 0, 0, 0, rank / 64});
    }
    const topo::Placement placements[] = {topo::Placement::regular(1000, 1),
                                          topo::Placement::regular(1000, 2), topo::Placement(dealt),
                                          place(RankLayout::one_host, 64)};
    for (const topo::Placement& placement : placements) {
        const Facts facts{placement, cost::default_profile()};
        const Rank count = placement.rank_count();
        for (const std::uint64_t bytes : {8ULL, 64ULL, 1024ULL, 16384ULL}) {
            const Case sample{Collective::reduce_scatter_block, count, 0, bytes, 8, false, false};
            INFO(count << " ranks on " << placement.host_count() << " hosts, " << bytes
                       << " bytes");
            CHECK(chosen_ns(facts, sample, Collective::reduce_scatter_block, bytes) <=
                  chosen_ns(facts, sample, Collective::reduce,
                            bytes * static_cast<std::uint64_t>(count)) +
                      chosen_ns(facts, sample, Collective::scatter, bytes));
        }
    }
}

TEST_CASE("plan: leaders of many hosts keep rank order by a reduction and a scatter",
          "[plan][proof]") {
    constexpr Rank kHosts = 96;
    const topo::Placement placement = topo::Placement::regular(kHosts, 2);
    const Facts facts{placement, cost::default_profile()};
    const ReduceScatterChoice choice =
        reduce_scatter_choice(leader_link(facts), kHosts, 16 * kHosts, 16, {8, false});
    CHECK(choice.piece == ReduceScatterChoice::Piece::reduce_then_scatter);
    for (const bool in_place : {false, true}) {
        const Case sample{Collective::reduce_scatter_block, 2 * kHosts, 0, 8, 8, in_place, false};
        const Status proved = prove(facts, "two_level", sample);
        INFO(proved.message());
        CHECK(proved.ok());
    }
}

TEST_CASE("plan: reduce_scatter takes the rounds of the literature", "[plan]") {
    const auto block = Collective::reduce_scatter_block;
    CHECK(count_ops(block, "recursive_halving", 16, 5, OpKind::send) == 4);
    CHECK(count_ops(block, "recursive_halving", 17, 5, OpKind::send) == 4);
    CHECK(count_ops(block, "recursive_halving", 17, 0, OpKind::send) == 1);
    CHECK(count_ops(block, "ring", 17, 5, OpKind::reduce) == 16);
    CHECK(count_ops(block, "n_way_dissemination:a5,a4", 17, 5, OpKind::send) == 7);
    CHECK(count_ops(block, "n_way_dissemination:a5,a4", 17, 5, OpKind::recv) == 7);
    CHECK(count_ops(block, "n_way_dissemination:a4,a4", 16, 0, OpKind::reduce) == 2);
    CHECK(count_ops(block, "n_way_dissemination:a16", 16, 3, OpKind::copy) == 0);
    // Up to 16 contributions are combined in one pass; beyond that 8 at a time.
    CHECK(count_ops(block, "pairwise", 17, 5, OpKind::reduce) == 1);
    CHECK(count_ops(block, "pairwise", 65, 0, OpKind::reduce) == 8);
}

} // namespace ucg::plan::test
