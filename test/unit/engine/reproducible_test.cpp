// Runs reductions that are asked to be reproducible: the bits of the result are the same wherever
// the ranks are placed.
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "test/support/catch.hpp"
#include "test/support/run_ranks.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/engine/operators.hpp"

namespace ucg {
namespace {

using graph::Collective;
using plan::Facts;
using plan::test::kLayouts;
using transport::Delivery;

constexpr std::uint64_t kElements = 1000;

/// A request for `elements` elements; where each rank has a block of its own, every block has as
/// many.
graph::Request request_of(Collective collective, Rank ranks, std::uint64_t elements) {
    graph::Request request;
    request.collective = collective;
    request.rank_count = ranks;
    request.root = graph::rooted(collective) ? ranks / 2 : 0;
    request.bytes = elements * sizeof(double);
    request.element_bytes = sizeof(double);
    if (collective == Collective::reduce_scatter) {
        request.receive.bytes.assign(static_cast<std::size_t>(ranks), request.bytes);
        request.bytes = 0;
    }
    return request;
}

/// The exponents are far apart, so nearly every order of addition rounds to other bits.
void fill(std::vector<std::byte>& buffer, Rank rank) {
    std::mt19937_64 random(static_cast<std::uint64_t>(rank));
    for (std::size_t at = 0; at < buffer.size(); at += sizeof(double)) {
        const double value =
            std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 40)) *
            (random() % 2 == 0 ? 1 : -1);
        std::memcpy(buffer.data() + at, &value, sizeof(value));
    }
}

using Bits = std::vector<std::vector<std::byte>>;

/// What all ranks have at the end.
Bits run(const Facts& facts, const graph::Request& request, Delivery delivery,
         std::string_view algorithm = {}) {
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < request.rank_count; ++rank) {
        schedules.push_back(plan::plan(facts, request, rank, algorithm).value());
    }
    test::RankSet ranks(std::move(schedules), delivery, 3);
    for (Rank rank = 0; rank < request.rank_count; ++rank) {
        fill(ranks.input(rank), rank);
    }
    REQUIRE(ranks.run(
        {engine::find_operator(engine::OperatorKind::sum, engine::ElementType::float64), nullptr}));
    Bits bits;
    for (Rank rank = 0; rank < request.rank_count; ++rank) {
        bits.push_back(ranks.output(rank));
    }
    return bits;
}

constexpr Collective kReductions[] = {
    Collective::reduce,         Collective::allreduce,
    Collective::reduce_scatter, Collective::reduce_scatter_block,
    Collective::scan,           Collective::exscan,
};

/// Calls check(facts) for each placement, each size of shared memory, and each set of prices.
template <typename Check>
void everywhere(Rank ranks, const topo::Placement* reproducible, Check check) {
    for (const plan::test::RankLayout layout : kLayouts) {
        const topo::Placement placement = plan::test::place(layout, ranks);
        for (const plan::test::Prices prices : plan::test::kPrices) {
            const cost::Profile profile = plan::test::profile_for(prices);
            for (const std::uint64_t staging : plan::test::kStagings) {
                INFO("layout " << static_cast<int>(layout) << ", prices "
                               << static_cast<int>(prices) << ", staging " << staging);
                check(Facts{placement, profile,
                            plan::shared_memory(placement, profile, staging, false), 1,
                            reproducible});
            }
        }
    }
}

} // namespace

TEST_CASE("reproducible: reductions have the same bits in every placement",
          "[engine][reproducible]") {
    const Rank count = GENERATE(7, 12);
    const std::uint64_t elements = GENERATE(std::uint64_t{1}, kElements);
    const topo::Placement reproducible = plan::reproducible_placement(count);
    for (const Collective collective : kReductions) {
        const graph::Request request = request_of(collective, count, elements);
        INFO(graph::name(collective) << ", " << count << " ranks, " << elements << " elements");
        Bits first;
        everywhere(count, &reproducible, [&](const Facts& facts) {
            const Bits bits = run(facts, request, Delivery::reordered);
            if (first.empty()) {
                first = bits;
            }
            CHECK(bits == first);
        });
        const topo::Placement one_host = topo::Placement::one_host(count);
        const Facts facts{one_host, cost::default_profile(), {}, 1, &reproducible};
        CHECK(run(facts, request, Delivery::immediate) == first);
        if (collective == Collective::allreduce) {
            for (const std::vector<std::byte>& of_rank : first) {
                CHECK(of_rank == first.front());
            }
        }
    }
}

TEST_CASE("reproducible: without being asked, placements differ", "[engine][reproducible]") {
    const graph::Request request = request_of(Collective::allreduce, 12, kElements);
    std::set<Bits> results;
    for (const plan::test::RankLayout layout : kLayouts) {
        const topo::Placement placement = plan::test::place(layout, 12);
        results.insert(run({placement, cost::default_profile()}, request, Delivery::immediate));
    }
    CHECK(results.size() > 1); // Otherwise the test above would prove nothing.
}

TEST_CASE("reproducible: in place or not, the same bits", "[engine][reproducible]") {
    const topo::Placement reproducible = plan::reproducible_placement(12);
    graph::Request request = request_of(Collective::allreduce, 12, kElements);
    const Facts facts{reproducible, cost::default_profile(), {}, 1, &reproducible};
    const graph::Schedule apart = plan::plan(facts, request, 0).value();
    request.in_place = true;
    CHECK(plan::plan(facts, request, 0)->algorithm == apart.algorithm);
}

TEST_CASE("reproducible: operators that do not commute are evaluated in rank order",
          "[engine][reproducible]") {
    const Rank count = GENERATE(7, 12);
    const topo::Placement reproducible = plan::reproducible_placement(count);
    for (const Collective collective : kReductions) {
        plan::test::Case sample{collective, count, graph::rooted(collective) ? 3 : 0,
                                kElements * sizeof(double), sizeof(double)};
        sample.commutative = false;
        everywhere(count, &reproducible, [&](const Facts& facts) {
            const graph::Request request = plan::test::request_of(sample, 0);
            const std::string_view name = plan::choose(facts, request).name;
            const Status status = plan::test::prove(facts, name, sample);
            INFO(graph::name(collective) << ": " << status.message());
            CHECK(status.ok());
        });
    }
}

TEST_CASE("reproducible: what depends on the placement cannot be asked for",
          "[engine][reproducible]") {
    const topo::Placement placement = topo::Placement::regular(4, 3);
    const topo::Placement reproducible = plan::reproducible_placement(12);
    const graph::Request request = request_of(Collective::allreduce, 12, kElements);
    Facts facts{placement, cost::default_profile()};
    CHECK(plan::plan(facts, request, 0, "two_level").ok());
    facts.reproducible = &reproducible;
    const Status refused = plan::plan(facts, request, 0, "two_level").status();
    CHECK(refused.code() == Code::unsupported);
    CHECK(refused.message().find("reproducible on any hosts") != std::string_view::npos);
    CHECK(plan::plan(facts, request, 0, "ring").ok());
    for (const plan::Candidate& candidate : plan::candidates(facts, request)) {
        CHECK(candidate.algorithm->name != "two_level");
    }
}

TEST_CASE("reproducible: what moves without combining is planned as ever",
          "[engine][reproducible]") {
    const topo::Placement placement = topo::Placement::regular(4, 3);
    const topo::Placement reproducible = plan::reproducible_placement(12);
    const Facts facts{placement, cost::default_profile(), {}, 1, &reproducible};
    CHECK(plan::plan(facts, request_of(Collective::allgather, 12, 8), 0, "two_level").ok());
}

} // namespace ucg
