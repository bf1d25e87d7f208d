// Prefix reductions: what the chain passes on in segments, and which ranks copy nothing.
#include <algorithm>
#include <vector>

#include "test/support/catch.hpp"
#include "test/unit/plan/blocks.hpp"
#include "test/unit/plan/proof.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;

constexpr std::uint64_t kLong = 4 << 20;

graph::Schedule schedule_of(const Facts& facts, const Case& sample, Rank rank,
                            std::string_view algorithm) {
    Result<graph::Schedule> schedule = plan(facts, request_of(sample, rank), rank, algorithm);
    REQUIRE(schedule.ok());
    return *schedule;
}

} // namespace

TEST_CASE("plan: long vectors go along the chain in segments, in rank order", "[plan][scan]") {
    for (const Rank count : {3, 5, 8}) {
        const topo::Placement placement = place(RankLayout::one_host, count);
        const cost::Profile profile = profile_for(Prices::usual);
        Facts facts{placement, profile};
        for (const double ranks_per_cpu : {1.0, 2.0}) {
            facts.ranks_per_cpu = ranks_per_cpu;
            for (const Collective collective : {Collective::scan, Collective::exscan}) {
                for (const bool in_place : {false, true}) {
                    const Case sample{collective, count, 0, kLong + 24, 8, in_place, false};
                    INFO(describe(sample));
                    const Status status = prove(facts, "chain", sample);
                    INFO(status.message());
                    CHECK(status.ok());
                    // With few ranks that share processors it may be as good to pass the whole
                    // vector on at once.
                    if (ranks_per_cpu == 1.0 || count > 3) {
                        CHECK(schedule_of(facts, sample, 1, "chain").repeats.size() == 1);
                    }
                }
            }
        }
    }
}

TEST_CASE("plan: each rank of a scan may be in place or not", "[plan][scan]") {
    const cost::Profile profile = profile_for(Prices::usual);
    for (const Rank count : {2, 3, 6, 9}) {
        for (const RankLayout layout :
             {RankLayout::one_host, RankLayout::pairs, RankLayout::single}) {
            const topo::Placement placement = place(layout, count);
            const Facts facts{placement, profile,
                              shared_memory(placement, profile, 64 << 10, false)};
            for (const Algorithm& row : algorithms()) {
                if (row.collective != Collective::scan && row.collective != Collective::exscan) {
                    continue;
                }
                for (const Rank odd : {0, 1}) {
                    std::vector<graph::Request> requests;
                    for (Rank rank = 0; rank < count; ++rank) {
                        const bool in_place = rank % 2 == odd;
                        requests.push_back(
                            request_of({row.collective, count, 0, 264, 8, in_place, false}, rank));
                    }
                    const Status status = prove(facts, row.name, requests);
                    INFO(row.name << ", " << count << " ranks: " << status.message());
                    CHECK((status.ok() || !row.eligible(facts, requests.front())));
                }
            }
        }
    }
}

TEST_CASE("plan: the last rank of an exscan receives its result", "[plan][scan]") {
    const topo::Placement placement = place(RankLayout::one_host, 2);
    const cost::Profile profile = profile_for(Prices::usual);
    const Facts facts{placement, profile};
    for (const std::string_view algorithm : {"chain", "recursive_doubling"}) {
        for (const bool in_place : {false, true}) {
            const Case sample{Collective::exscan, 2, 0, 64 << 10, 8, in_place, false};
            const graph::Schedule schedule = schedule_of(facts, sample, 1, algorithm);
            INFO(algorithm << (in_place ? " in place" : ""));
            CHECK(schedule.scratch_bytes == 0);
            REQUIRE(schedule.ops.size() == 1);
            CHECK(schedule.ops[0].kind == graph::OpKind::recv);
            CHECK(schedule.ops[0].target.buffer == graph::BufferKind::output);
        }
    }
}

TEST_CASE("plan: ranks that share processors scan long vectors along a chain", "[plan][scan]") {
    const topo::Placement placement = place(RankLayout::one_host, 8);
    const cost::Profile profile = profile_for(Prices::usual);
    Facts facts{placement, profile};
    facts.ranks_per_cpu = 4;
    for (const Collective collective : {Collective::scan, Collective::exscan}) {
        const Case brief{collective, 8, 0, 8, 8};
        const Case extensive{collective, 8, 0, kLong, 8};
        CHECK(choose(facts, request_of(brief, 0)).name == "recursive_doubling");
        CHECK(choose(facts, request_of(extensive, 0)).name == "chain");
    }
}

TEST_CASE("plan: while bytes of a scan are on their links, no processor is kept", "[plan][scan]") {
    const topo::Placement placement = topo::Placement::regular(4, 2);
    const cost::Profile profile =
        cost::with_network(cost::default_profile(), cost::NetworkKind::one_kernel);
    Facts facts{placement, profile};
    facts.ranks_per_cpu = 4;
    const double link_ns = profile.level(topo::Distance::network).gap_per_byte_ns * kLong;
    for (const Collective collective : {Collective::scan, Collective::exscan}) {
        const Case sample{collective, 8, 0, kLong, 8};
        const Candidate chosen = candidates(facts, request_of(sample, 0)).front();
        CHECK(chosen.algorithm->name == "chain");
        CHECK(chosen.cost_ns < 1.1 * link_ns);
        CHECK(schedule_of(facts, sample, 1, "chain").repeats.size() == 1);
    }
}

TEST_CASE("plan: exchanges send their RTS before they copy", "[plan]") {
    const topo::Placement placement = place(RankLayout::one_host, 4);
    const cost::Profile profile = profile_for(Prices::usual);
    const Facts facts{placement, profile};
    struct Row {
        Collective collective;
        std::string_view algorithm;
    };
    constexpr Row kRows[] = {
        {Collective::allgather, "ring"},
        {Collective::allgather, "bruck"},
        {Collective::allgather, "recursive_doubling"},
        {Collective::allgather, "n_way_dissemination"},
        {Collective::alltoall, "linear"},
        {Collective::alltoall, "pairwise"},
        {Collective::reduce_scatter_block, "ring"},
        {Collective::reduce_scatter_block, "pairwise"},
        {Collective::reduce_scatter_block, "recursive_halving"},
    };
    for (const Row& row : kRows) {
        const Case sample{row.collective, 4, 0, 64 << 10, 8};
        INFO(describe(sample) << " " << row.algorithm);
        const graph::Schedule schedule = schedule_of(facts, sample, 2, row.algorithm);
        CHECK(schedule.ops.front().kind == graph::OpKind::send);
    }
}

} // namespace ucg::plan::test
