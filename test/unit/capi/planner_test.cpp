// Groups that would plan alike share a planner and the plans that it has made.
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"
#include "test/unit/topo/clusters.hpp"
#include "ucg_coll/capi/planners.hpp"

namespace ucg::capi {
namespace {

Config config_with(std::vector<std::pair<std::string_view, std::string_view>> settings) {
    Result<Config> config = Config::from_environment();
    REQUIRE(config.ok());
    for (const auto& [name, value] : settings) {
        REQUIRE(config->set(name, value).ok());
    }
    return std::move(*config);
}

/// The planners of a process with these settings.
struct Process {
    Config config;
    LoadedPhases phases = {};
    Remarks remarks{"ucg", false};
    Planners planners{config, phases, remarks, false};
};

PlanningFacts facts_of(Rank rank_count) {
    PlanningFacts facts;
    facts.placement = topo::Placement::one_host(rank_count);
    facts.profile = cost::default_profile();
    return facts;
}

graph::Request allreduce_of(Rank rank_count, std::uint64_t bytes) {
    graph::Request request;
    request.collective = graph::Collective::allreduce;
    request.rank_count = rank_count;
    request.bytes = bytes;
    request.element_bytes = 8;
    return request;
}

TEST_CASE("capi: equal facts have one planner, others another", "[capi]") {
    Process process{config_with({})};
    const std::shared_ptr<Planner> first = process.planners.of(facts_of(4));
    CHECK(process.planners.of(facts_of(4)) == first);
    std::vector<PlanningFacts> others(8, facts_of(4));
    others[0].rank = 1;
    others[1].placement = topo::Placement::regular(2, 2);
    others[2].flag_slot_bytes = 64;
    others[3].staging_bytes = 4096;
    others[4].ranks_per_cpu = 2;
    others[5].profile.copy_per_byte_ns *= 2;
    others[6].buffers_in_heap = true;
    others[7].flag_slot_bytes = 128;
    for (const PlanningFacts& facts : others) {
        CHECK(process.planners.of(facts) != first);
    }
    CHECK(process.planners.of(facts_of(4)) == first);
}

TEST_CASE("capi: of planners that nobody asks for any more the latest are kept", "[capi]") {
    Process process{config_with({})};
    const std::weak_ptr<Planner> first = process.planners.of(facts_of(1));
    const std::weak_ptr<Planner> second = process.planners.of(facts_of(2));
    for (Rank ranks = 3; ranks < 9; ++ranks) {
        process.planners.of(facts_of(ranks));
    }
    REQUIRE_FALSE(first.expired());
    CHECK(process.planners.of(facts_of(1)) == first.lock());
    process.planners.of(facts_of(9));
    CHECK(second.expired());
    CHECK_FALSE(first.expired());
}

TEST_CASE("capi: a planner that a group holds is found, however many others there are", "[capi]") {
    Process process{config_with({})};
    const std::shared_ptr<Planner> held = process.planners.of(facts_of(1));
    for (Rank ranks = 2; ranks < 20; ++ranks) {
        process.planners.of(facts_of(ranks));
    }
    CHECK(process.planners.of(facts_of(1)) == held);
}

TEST_CASE("capi: what was planned once is not planned again", "[capi]") {
    const char* verify = GENERATE("n", "y");
    Process process{config_with({{"VERIFY", verify}})};
    const std::shared_ptr<Planner> planner = process.planners.of(facts_of(4));
    const auto first = planner->plan(allreduce_of(4, 64), 1, "group");
    REQUIRE(first.ok());
    CHECK((*first)->schedule == *plan::plan(planner->facts(), allreduce_of(4, 64), 0));
    CHECK(*planner->plan(allreduce_of(4, 64), 1, "another") == *first);
    // Two different requests may have the same hash.
    const auto longer = planner->plan(allreduce_of(4, 1 << 20), 1, "group");
    REQUIRE(longer.ok());
    CHECK((*longer)->request.bytes == 1 << 20);
    CHECK(*planner->plan(allreduce_of(4, 64), 1, "group") == *first);
}

TEST_CASE("capi: a planner forgets half of many, what somebody holds stays", "[capi]") {
    constexpr std::uint64_t kPlans = 8000; // These are more plans than the planner keeps.
    Process process{config_with({})};
    const std::shared_ptr<Planner> planner = process.planners.of(facts_of(2));
    std::vector<std::shared_ptr<const Planned>> held;
    for (std::uint64_t i = 0; i < kPlans; ++i) {
        const auto planned = planner->plan(allreduce_of(2, 8 + 8 * i), i, "group");
        REQUIRE(planned.ok());
        held.push_back(*planned);
    }
    std::uint64_t known = 0;
    for (std::uint64_t i = kPlans; i-- > 0;) {
        const auto again = planner->plan(allreduce_of(2, 8 + 8 * i), i, "group");
        REQUIRE(again.ok());
        CHECK((*again)->schedule == held[i]->schedule);
        known += *again == held[i] ? 1 : 0;
    }
    CHECK(known > kPlans / 8);
    CHECK(known < kPlans);
}

TEST_CASE("capi: UCG_VERIFY proves on the links between hosts, too", "[capi][aapc]") {
    constexpr Rank kRanks = 6;
    std::vector<std::uint32_t> machines(kRanks);
    std::iota(machines.begin(), machines.end(), 0U);
    PlanningFacts facts;
    facts.placement = topo::Placement::regular(kRanks, 1);
    facts.profile = cost::default_profile();
    facts.cluster = topo::map_hosts(topo::test::figure1(12'500'000), machines);
    Process process{config_with({{"VERIFY", "y"}})};
    const std::shared_ptr<Planner> planner = process.planners.of(facts);
    graph::Request request;
    request.collective = graph::Collective::alltoall;
    request.rank_count = kRanks;
    request.bytes = 64 << 10;
    const auto planned = planner->plan(request, 1, "group");
    REQUIRE(planned.ok());
    CHECK((*planned)->schedule.algorithm == "aapc");
    CHECK(plan::links_to_prove(planner->facts(), "aapc")->at_once == 1);
    CHECK(plan::links_to_prove(planner->facts(), "aapc:window3")->at_once == 3);
    CHECK_FALSE(plan::links_to_prove(planner->facts(), "pairwise"));
}

TEST_CASE("capi: a forced algorithm counts in a planner, too", "[capi]") {
    Process process{config_with({{"ALLREDUCE", "ring"}})};
    const auto planned = process.planners.of(facts_of(4))->plan(allreduce_of(4, 64), 1, "group");
    REQUIRE(planned.ok());
    CHECK((*planned)->schedule.algorithm == "ring");
}

} // namespace
} // namespace ucg::capi
