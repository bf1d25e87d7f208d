#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/plan/messages/halving.hpp"
#include "ucg_coll/plan/rows.hpp"

namespace ucg::plan {

TEST_CASE("plan: halving cuts at elements, the lower half has the odd one", "[plan][halving]") {
    const Halving halving(7 * 8, 8);
    CHECK(halving.kept(0, 1).length == 56);
    CHECK(halving.kept(0, 2).length == 32);
    CHECK(halving.kept(1, 2).offset == 32);
    CHECK(halving.kept(1, 2).length == 24);
    CHECK(halving.kept(3, 4).offset == 48);
    CHECK(halving.kept(3, 4).length == 8);
    CHECK(halving.kept(3, 8).length == 8);
    CHECK(halving.kept(7, 8).length == 0);
}

TEST_CASE("plan: vectors that caches do not hold go in segments that they do", "[plan][halving]") {
    cost::Profile profile = test::profile_for(test::Prices::short_segments);
    profile.memory.cma = {
        .permitted = true, .fixed_ns = 0, .per_byte_ns = 0, .bytes_min = kCacheLine};
    for (cost::CacheRates& rates : profile.memory.caches) {
        rates = {.capacity_bytes = 0, .copy_per_byte_ns = 1000};
    }
    profile.memory.caches[static_cast<std::size_t>(cost::Cache::l2)] = {.capacity_bytes = 1024};
    const auto plan_of = [&](const Facts& facts, std::uint64_t bytes) {
        const test::Case sample{graph::Collective::allreduce, 2, 0, bytes, 8};
        return kAllreduceRabenseifner.build(facts, test::request_of(sample, 0), 0);
    };
    const topo::Placement two = topo::Placement::one_host(2);
    CHECK(plan_of({two, profile}, 256).repeats.empty());
    CHECK(plan_of({two, profile}, 4096).repeats.size() == 1);
    CHECK(plan_of({two, cost::default_profile()}, 4096).repeats.empty());
    const bool in_place = GENERATE(false, true);
    for (const Rank count : {1, 2, 3, 5, 8}) {
        const topo::Placement placement = topo::Placement::one_host(count);
        for (const std::uint64_t element_bytes : {8, 24}) {
            for (const std::uint64_t bytes :
                 {std::uint64_t{0}, 16 * element_bytes, 41 * element_bytes, std::uint64_t{3072},
                  341 * element_bytes}) {
                CHECK(test::prove({placement, profile}, "rabenseifner",
                                  {graph::Collective::allreduce, count, 0, bytes, element_bytes,
                                   in_place, false})
                          .message() == "");
            }
        }
    }
}

TEST_CASE("plan: long blocks of a reduce-scatter are exchanged in segments", "[plan][halving]") {
    const auto collective =
        GENERATE(graph::Collective::reduce_scatter_block, graph::Collective::reduce_scatter);
    const std::uint64_t element_bytes = GENERATE(8U, 24U);
    const bool in_place = GENERATE(false, true);
    for (const Rank count : {2, 3, 4, 5}) {
        const topo::Placement placement = topo::Placement::one_host(count);
        const Facts facts = {placement, cost::default_profile()};
        for (const std::uint64_t elements : {40000U, 100000U}) {
            const test::Case sample{collective,    count,   0, elements * element_bytes,
                                    element_bytes, in_place};
            CHECK(test::prove(facts, "recursive_halving", sample).message() == "");
            const auto schedule = plan(facts, test::request_of(sample, 0), 0, "recursive_halving");
            REQUIRE(schedule.ok());
            const bool segments = 3 * sample.bytes > (2U << 20) && count % 2 == 0;
            if (collective == graph::Collective::reduce_scatter_block) {
                CHECK(schedule->repeats.empty() == !segments);
            }
        }
    }
}

TEST_CASE("plan: ranks of a reduce-scatter may differ about in place", "[plan][halving]") {
    const Rank count = GENERATE(2, 3, 4, 8);
    const std::uint64_t block = GENERATE(8U, 800000U);
    const topo::Placement placement = topo::Placement::one_host(count);
    std::vector<graph::Request> requests(static_cast<std::size_t>(count));
    for (std::size_t rank = 0; rank < requests.size(); ++rank) {
        graph::Request& request = requests[rank];
        request.collective = graph::Collective::reduce_scatter;
        request.rank_count = count;
        request.element_bytes = 8;
        request.in_place = rank % 2 == 0;
        for (std::size_t i = 0; i < requests.size(); ++i) {
            request.receive.offsets.push_back(block * i);
            request.receive.bytes.push_back(block);
        }
    }
    for (const char* algorithm : {"recursive_halving", "ring", "pairwise", "n_way_dissemination"}) {
        CHECK(test::prove({placement, cost::default_profile()}, algorithm, requests).message() ==
              "");
    }
}

TEST_CASE("plan: partners agree on segments where one of them acts for two", "[plan][halving]") {
    const topo::Placement seven = topo::Placement::one_host(7);
    std::vector<graph::Request> requests(7);
    for (graph::Request& request : requests) {
        request.collective = graph::Collective::reduce_scatter;
        request.rank_count = 7;
        request.element_bytes = 8;
        for (const std::uint64_t blocks : {1, 1, 1, 1, 1, 1, 2}) {
            request.receive.offsets.push_back(400000 * request.receive.bytes.size());
            request.receive.bytes.push_back(400000 * blocks);
        }
    }
    CHECK(test::prove({seven, cost::default_profile()}, "recursive_halving", requests).message() ==
          "");
}

TEST_CASE("plan: a fold leaves a power of two, in rank order", "[plan][fold]") {
    for (const Rank count : {1, 2, 3, 6, 7, 12, 31, 33}) {
        for (const Rank kept : {kNoRank, 0, count / 2, count - 1}) {
            Rank acting = 0;
            for (Rank index = 0; index < count; ++index) {
                const Fold fold(Team::whole(count, index), kept);
                CHECK((fold.acts() || fold.partner() != kNoRank));
                if (index == kept) {
                    CHECK(fold.acts());
                }
                if (fold.acts()) {
                    CHECK(fold.position() == acting++);
                    CHECK(fold.member(fold.position()) == index);
                }
            }
            CHECK(acting == Fold(Team::whole(count, 0)).size());
        }
    }
}

} // namespace ucg::plan
