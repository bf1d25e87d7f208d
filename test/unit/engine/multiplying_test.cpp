// Runs recursive multiplying and eliminations on values whose sum depends on the order of addition.
// All ranks must get the same bits, and these must be those of the schedule's order.
#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "test/support/catch.hpp"
#include "test/support/run_ranks.hpp"
#include "ucg_coll/engine/operators.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg {
namespace {

using graph::Request;
using transport::Delivery;

constexpr std::size_t kCount = 5;

Request allreduce(Rank ranks, bool in_place) {
    Request request;
    request.collective = graph::Collective::allreduce;
    request.rank_count = ranks;
    request.bytes = kCount * sizeof(double);
    request.element_bytes = sizeof(double);
    request.in_place = in_place;
    return request;
}

std::vector<graph::Schedule> planned(const Request& request, std::string_view algorithm) {
    const topo::Placement placement = topo::Placement::one_host(request.rank_count);
    const plan::Facts facts{placement, cost::default_profile()};
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < request.rank_count; ++rank) {
        schedules.push_back(plan::plan(facts, request, rank, algorithm).value());
    }
    return schedules;
}

/// The exponents are far apart, so nearly every order of addition rounds to other bits.
std::vector<std::array<double, kCount>> values(Rank ranks) {
    std::mt19937_64 random(static_cast<std::uint64_t>(ranks));
    std::vector<std::array<double, kCount>> list(static_cast<std::size_t>(ranks));
    for (auto& vector : list) {
        for (double& value : vector) {
            const auto mantissa = static_cast<double>(random() >> 11);
            value = std::ldexp(mantissa, static_cast<int>(random() % 40)) *
                    (random() % 2 == 0 ? 1 : -1);
        }
    }
    return list;
}

/// The result, which must be the same on all ranks.
std::array<double, kCount> run(std::string_view algorithm, Rank count, bool in_place,
                               Delivery delivery) {
    test::RankSet ranks(planned(allreduce(count, in_place), algorithm), delivery, 7);
    const auto contributions = values(count);
    for (Rank rank = 0; rank < count; ++rank) {
        auto& buffer = in_place ? ranks.output(rank) : ranks.input(rank);
        std::memcpy(buffer.data(), contributions[static_cast<std::size_t>(rank)].data(),
                    buffer.size());
    }
    REQUIRE(ranks.run(
        {engine::find_operator(engine::OperatorKind::sum, engine::ElementType::float64), nullptr}));
    CHECK(ranks.fabric().quiet());
    std::array<double, kCount> first{};
    std::memcpy(first.data(), ranks.output(0).data(), sizeof(first));
    for (Rank rank = 1; rank < count; ++rank) {
        INFO(algorithm << " rank " << rank);
        CHECK(std::memcmp(ranks.output(rank).data(), first.data(), sizeof(first)) == 0);
    }
    return first;
}

struct Sample {
    std::string_view algorithm;
    Rank count;
};

constexpr Sample kSamples[] = {
    {"recursive_multiplying:a4,a4", 16},
    {"recursive_multiplying:a3,a2", 6},
    {"recursive_multiplying:c6m2,a2,a2,e6m2", 7},
    {"recursive_multiplying:c3m3,e3m3", 3},
    {"recursive_multiplying:m1g2a3,n1g3a2", 7},
    {"recursive_multiplying:m3g2a2,n3g2a2", 7},
    {"recursive_multiplying:c4m2,m5g2a3,n5g3a2,e4m2", 13},
    {"recursive_multiplying:a13", 13},
    {"recursive_multiplying", 61},
    {"elimination", 3},
    {"elimination", 7},
    {"elimination", 21},
};

} // namespace

TEST_CASE("multiplying: all ranks compute the same bits", "[engine][multiplying]") {
    const Delivery delivery =
        GENERATE(Delivery::immediate, Delivery::reordered, Delivery::synchronous);
    const bool in_place = GENERATE(false, true);
    for (const Sample& sample : kSamples) {
        run(sample.algorithm, sample.count, in_place, delivery);
    }
}

TEST_CASE("multiplying: bits are those of the schedule's order", "[engine][multiplying]") {
    const auto all = values(4);
    const auto one = run("recursive_multiplying:a4", 4, false, Delivery::reordered);
    const auto two = run("recursive_multiplying:a2,a2", 4, false, Delivery::reordered);
    bool differ = false;
    for (std::size_t i = 0; i < kCount; ++i) {
        CHECK(one[i] == ((all[0][i] + all[1][i]) + all[2][i]) + all[3][i]);
        CHECK(two[i] == (all[0][i] + all[1][i]) + (all[2][i] + all[3][i]));
        differ = differ || one[i] != two[i];
    }
    CHECK(differ); // Otherwise the values would prove nothing.
}

} // namespace ucg
