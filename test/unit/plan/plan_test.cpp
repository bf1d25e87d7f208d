#include <set>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;

graph::Request allreduce(Rank rank_count, std::uint64_t bytes) {
    return request_of({Collective::allreduce, rank_count, 0, bytes, 8}, 0);
}

} // namespace

TEST_CASE("plan: names are unique within a collective", "[plan]") {
    std::set<std::pair<Collective, std::string_view>> names;
    for (const Algorithm& row : algorithms()) {
        INFO(graph::name(row.collective) << " " << row.name);
        CHECK(names.emplace(row.collective, row.name).second);
        CHECK(find_algorithm(row.collective, row.name) == &row);
        CHECK_FALSE(row.summary.empty());
    }
    CHECK(find_algorithm(Collective::allreduce, "no_such") == nullptr);
}

TEST_CASE("plan: a row that does not serve all says what it needs", "[plan]") {
    const topo::Placement placement = topo::Placement::one_host(6);
    const Facts facts{placement, cost::default_profile()};
    for (const Algorithm& row : algorithms()) {
        const Case sample{row.collective, 6, 0, 24, 8, false, false};
        INFO(graph::name(row.collective) << " " << row.name);
        if (!row.eligible(facts, request_of(sample, 0))) {
            CHECK_FALSE(row.needs.empty());
        }
    }
}

TEST_CASE("plan: of a row's needs those are named that are not met", "[plan]") {
    const topo::Placement placement = topo::Placement::one_host(6);
    Facts facts{placement, cost::default_profile()};
    facts.shared.staging_bytes = 1 << 20;
    const Algorithm& row = *find_algorithm(Collective::allreduce, "tiled_cyclic");
    CHECK(row.needs_text() ==
          "one host, several ranks, data, staging memory that ranks share, segments that fit the "
          "staging memory, and a commutative operator");
    Case sample{Collective::allreduce, 6, 0, 800, 8, false, true};
    CHECK(row.eligible(facts, request_of(sample, 0)));
    CHECK(row.unmet_text(facts, request_of(sample, 0)).empty());
    sample.commutative = false;
    CHECK(row.unmet_text(facts, request_of(sample, 0)) == "a commutative operator");
    facts.shared.staging_bytes = 0;
    CHECK(row.unmet_text(facts, request_of(sample, 0)) ==
          "staging memory that ranks share and a commutative operator");
    const Result<graph::Schedule> refused = plan(facts, request_of(sample, 0), 0, "two_level");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.status().message().ends_with("it needs several hosts"));
}

TEST_CASE("plan: every collective has a row for every request", "[plan]") {
    for (const Collective collective : graph::kCollectives) {
        for (const Rank count : {1, 2, 7}) {
            for (const bool commutative : {true, false}) {
                const topo::Placement placement = place(RankLayout::cyclic, count);
                const Facts facts{placement, cost::default_profile()};
                const Case sample{collective, count, 0, 8, 8, false, commutative};
                INFO(describe(sample));
                CHECK_FALSE(candidates(facts, request_of(sample, 0)).empty());
            }
        }
    }
}

TEST_CASE("plan: equal inputs give equal schedules", "[plan]") {
    for (const Algorithm& row : algorithms()) {
        const topo::Placement placement = place(RankLayout::pairs, 10);
        const topo::Placement same = place(RankLayout::pairs, 10);
        const cost::Profile profile = profile_for(Prices::usual);
        const graph::Request request = request_of({row.collective, 10, 3, 800, 8}, 4);
        if (!row.eligible({placement, profile}, request)) {
            continue;
        }
        const Result<graph::Schedule> first = plan({placement, profile}, request, 4, row.name);
        const Result<graph::Schedule> second = plan({same, profile}, request, 4, row.name);
        INFO(graph::name(row.collective) << " " << row.name);
        REQUIRE(first.ok());
        REQUIRE(second.ok());
        CHECK(*first == *second);
    }
}

TEST_CASE("plan: all ranks choose the same row whatever their local facts", "[plan]") {
    constexpr Rank kCount = 9;
    const topo::Placement placement = place(RankLayout::uneven, kCount);
    const Facts facts{placement, cost::default_profile()};
    for (const Collective collective : graph::kCollectives) {
        for (const std::uint64_t bytes : {0ULL, 8ULL, 4096ULL, 1ULL << 20}) {
            const bool may = graph::has_in_place(collective);
            const Case sample{collective, kCount, 4, bytes, 8, may};
            const Algorithm& first = choose(facts, request_of(sample, 0));
            for (Rank rank = 1; rank < kCount; ++rank) {
                INFO(describe(sample));
                CHECK(&choose(facts, request_of(sample, rank)) == &first);
            }
        }
    }
}

TEST_CASE("plan: candidates come cheapest first and choose takes the first", "[plan]") {
    const topo::Placement placement = topo::Placement::regular(4, 8);
    const Facts facts{placement, cost::default_profile()};
    for (std::uint64_t bytes = 8; bytes <= 1U << 24; bytes *= 8) {
        const graph::Request request = allreduce(32, bytes);
        const std::vector<Candidate> list = candidates(facts, request);
        REQUIRE_FALSE(list.empty());
        CHECK(list.front().algorithm == &choose(facts, request));
        for (std::size_t i = 1; i < list.size(); ++i) {
            CHECK(list[i - 1].cost_ns <= list[i].cost_ns);
        }
    }
}

TEST_CASE("plan: short vectors go in few rounds and long ones in blocks", "[plan]") {
    const topo::Placement placement = topo::Placement::one_host(16);
    const Facts facts{placement, cost::default_profile()};
    CHECK(choose(facts, allreduce(16, 8)).name == "recursive_multiplying");
    CHECK(choose(facts, allreduce(16, 64 << 20)).name != "recursive_multiplying");
    CHECK(choose(facts, request_of({Collective::bcast, 16, 0, 8, 1}, 0)).name == "knomial");
    CHECK(choose(facts, request_of({Collective::bcast, 16, 0, 64 << 20, 1}, 0)).name != "knomial");
}

TEST_CASE("plan: oversubscribed hosts send through one rank each", "[plan]") {
    const topo::Placement placement = topo::Placement::regular(4, 32);
    const Facts facts{placement, cost::default_profile()};
    CHECK(choose(facts, allreduce(128, 8)).name == "two_level");
    CHECK(choose(facts, request_of({Collective::barrier, 128}, 0)).name == "two_level");
}

TEST_CASE("plan: where messages cost processors much, few leave one rank", "[plan]") {
    const cost::Profile profile =
        cost::with_network(cost::default_profile(), cost::NetworkKind::one_kernel);
    const topo::Placement placement = topo::Placement::regular(4, 1);
    const Facts facts{placement, profile, {}, 2};
    const graph::Request bcast = request_of({Collective::bcast, 4, 0, 8, 1}, 0);
    CHECK(choose(facts, bcast).name == "knomial");
    // The tree is binomial: the root sends to two ranks.
    CHECK(plan(facts, bcast, 0)->ops.size() == 2);
    CHECK(choose(facts, request_of({Collective::scatter, 4, 0, 8, 1}, 0)).name == "binomial");
    CHECK(choose(facts, request_of({Collective::gather, 4, 0, 8, 1}, 0)).name == "binomial");
    CHECK(choose(facts, request_of({Collective::scan, 4, 0, 8, 8}, 0)).name == "chain");
    // Whole vectors go over a link of each rank's own: a second segment would cost the ranks in
    // between more.
    const graph::Request reduce = request_of({Collective::reduce, 4, 0, 4096, 8}, 0);
    CHECK(choose(facts, reduce).name == "chain");
    CHECK(plan(facts, reduce, 1)->repeats.empty());
    CHECK(choose(facts, request_of({Collective::reduce, 4, 0, 8, 8}, 0)).name == "knomial");
}

TEST_CASE("plan: long messages of a host do not share its link where others wait for them",
          "[plan]") {
    const cost::Profile profile =
        cost::with_network(cost::default_profile(), cost::NetworkKind::one_kernel);
    for (const std::uint32_t ranks_per_host : {1U, 2U}) {
        const topo::Placement placement = topo::Placement::regular(4, ranks_per_host);
        const Rank count = placement.rank_count();
        const Facts facts{placement, profile, {}, 2};
        const auto chosen = [&](Collective collective) {
            return choose(facts, request_of({collective, count, 0, 1 << 20, 1}, 0)).name;
        };
        CHECK(chosen(Collective::alltoall) == "pairwise");
        CHECK(chosen(Collective::scatter) != "binomial");
    }
}

TEST_CASE("plan: refusals name the reason", "[plan]") {
    const topo::Placement placement = topo::Placement::one_host(4);
    const Facts facts{placement, cost::default_profile()};

    const Status unknown = plan(facts, allreduce(4, 8), 0, "butterfly").status();
    CHECK(unknown.code() == Code::invalid_argument);
    CHECK(std::string(unknown.message()).find("recursive_doubling") != std::string::npos);

    const Status unsuited = plan(facts, allreduce(4, 8), 0, "two_level").status();
    CHECK(unsuited.code() == Code::unsupported);
    CHECK(std::string(unsuited.message()).find("several hosts") != std::string::npos);

    CHECK(plan(facts, allreduce(5, 8), 0).status().code() == Code::invalid_argument);
    CHECK(plan(facts, allreduce(4, 9), 0).status().code() == Code::invalid_argument);
    CHECK(plan(facts, allreduce(4, 8), 4).status().code() == Code::invalid_argument);
}

} // namespace ucg::plan::test
