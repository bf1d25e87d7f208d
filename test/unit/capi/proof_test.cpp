// UCG_VERIFY: what a rank assumes about the other ranks fits its own request, so that the plans
// that follow from it are proved, and a wrong plan of its own is found.
#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/capi/proof.hpp"

namespace ucg::capi {
namespace {

using graph::Collective;
using graph::Request;
using graph::Schedule;
using plan::test::Case;

constexpr Rank kRanks = 5;

/// Plans for all ranks as one rank has them: requests[r] is what it asks for or assumes of rank r.
std::vector<Schedule> plans(const plan::Facts& facts, const std::vector<Request>& requests,
                            std::string_view algorithm) {
    std::vector<Schedule> schedules;
    for (Rank rank = 0; rank < kRanks; ++rank) {
        schedules.push_back(
            plan::plan(facts, requests[static_cast<std::size_t>(rank)], rank, algorithm).value());
    }
    return schedules;
}

bool together(Rank, Rank, const void*) {
    return true;
}

} // namespace

TEST_CASE("capi: a rank proves its plan with what it knows of the others", "[capi][verify]") {
    const topo::Placement placement = topo::Placement::one_host(kRanks);
    const plan::Facts facts{placement, cost::default_profile()};
    for (const plan::Algorithm& row : plan::algorithms()) {
        for (const bool in_place : {false, true}) {
            const std::uint64_t bytes = row.collective == Collective::barrier ? 0 : 24;
            const Case sample{row.collective, kRanks, 3, bytes, 8, in_place};
            if ((in_place && !graph::has_in_place(row.collective)) ||
                !row.eligible(facts, plan::test::request_of(sample, 0))) {
                continue;
            }
            for (Rank self = 0; self < kRanks; ++self) {
                INFO(describe(sample) << " by " << row.name << " at rank " << self);
                const Request own = plan::test::request_of(sample, self);
                const std::vector<Request> requests = requests_of_all(own, self);
                REQUIRE(requests.size() == static_cast<std::size_t>(kRanks));
                CHECK(requests[static_cast<std::size_t>(self)] == own);
                std::vector<Schedule> schedules = plans(facts, requests, row.name);
                CHECK(graph::verify(schedules, requests, together).message() == "");
                Schedule& mine = schedules[static_cast<std::size_t>(self)];
                if (mine.ops.empty()) {
                    continue;
                }
                mine.dependencies.clear();
                // Now other ranks wait for this one in vain, or it lacks its result.
                mine.ops.clear();
                CHECK_FALSE(graph::verify(schedules, requests, together).ok());
            }
        }
    }
}

TEST_CASE("capi: the root of gatherv and scatterv knows all blocks", "[capi][verify]") {
    for (const Collective collective : {Collective::gatherv, Collective::scatterv}) {
        for (const bool in_place : {false, true}) {
            const Case sample{collective, kRanks, 2, 24, 1, in_place};
            const std::vector<Request> requests =
                requests_of_all(plan::test::request_of(sample, 2), 2);
            for (Rank rank = 0; rank < kRanks; ++rank) {
                CHECK(requests[static_cast<std::size_t>(rank)] ==
                      plan::test::request_of(sample, rank));
            }
        }
    }
}

TEST_CASE("capi: what is assumed is said for collectives whose ranks do not know all blocks",
          "[capi][verify]") {
    for (const Collective collective : graph::kCollectives) {
        const bool known =
            !graph::has_block_vectors(collective) || collective == Collective::reduce_scatter;
        CHECK(what_is_assumed(collective).empty() == known);
    }
}

} // namespace ucg::capi
