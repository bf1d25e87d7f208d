// Recursive multiplying with every schedule that small groups have: each one is proved, priced and
// chosen.
#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "tools/ucg_plan/multiplying_enumeration.hpp"
#include "ucg_coll/plan/multiplying/choice.hpp"
#include "ucg_coll/plan/plan.hpp"
#include "ucg_coll/plan/rows.hpp"

namespace ucg::plan::test {

using tools::enumerate_multiplying;
using tools::Orders;

namespace {

Status prove(const MultiplyingSchedule& schedule, const Case& sample) {
    const topo::Placement placement = topo::Placement::one_host(sample.rank_count);
    const Facts facts{placement, cost::default_profile()};
    const std::string name = "recursive_multiplying:" + to_text(schedule);
    return prove(facts, name, sample);
}

/// Proves one schedule for an operator that does not commute, which is the stricter proof.
void prove_one(const MultiplyingSchedule& schedule, Rank count, bool in_place) {
    const Case sample{graph::Collective::allreduce, count, 0, 16, 8, in_place, false};
    const Status status = prove(schedule, sample);
    INFO(to_text(schedule) << ": " << status.message());
    REQUIRE(status.ok());
}

void prove_all(Rank count, Orders orders) {
    bool in_place = false;
    enumerate_multiplying(count, {.orders = orders}, [&](const MultiplyingSchedule& schedule) {
        in_place = !in_place;
        prove_one(schedule, count, in_place);
        return true;
    });
}

constexpr Rank kPrimes[] = {37, 61, 127, 131, 257, 509, 521, 1021, 1031, 2053, 4093};

MultiplyingSchedule chosen(Rank count, Prices prices, std::uint64_t bytes = 8) {
    const cost::Profile profile = profile_for(prices);
    const topo::Placement hosts = topo::Placement::regular(2, 1);
    const Link link({hosts, profile}, topo::Distance::network);
    return allreduce_recursive_multiplying_schedule(link, count, bytes);
}

} // namespace

TEST_CASE("multiplying: all schedules to 20 ranks are proved", "[multiplying][proof]") {
    for (Rank count = 2; count <= 20; ++count) {
        prove_all(count, Orders::every);
    }
}

TEST_CASE("multiplying: all schedules to 64 ranks are proved", "[.exhaustive][multiplying]") {
    for (Rank count = 21; count <= 64; ++count) {
        prove_all(count, count <= 32 ? Orders::every : Orders::falling);
    }
}

TEST_CASE("multiplying: what is chosen for large primes is proved",
          "[multiplying][proof][thorough]") {
    for (const Rank count : kPrimes) {
        for (const Prices prices : kPrices) {
            if (count > 600 && prices != Prices::usual) {
                continue;
            }
            prove_one(chosen(count, prices), count, false);
        }
    }
}

TEST_CASE("multiplying: a vector of no bytes and several in place", "[multiplying][proof]") {
    for (const std::string_view text : {"a4,a3", "m5g2a3,n5g3a2", "c8m4,a2,a3,e8m4"}) {
        const MultiplyingSchedule schedule = *parse_multiplying_schedule(text);
        const Rank count = *rank_count_of(schedule);
        for (const std::uint64_t bytes : {0, 8, 1000}) {
            for (const bool in_place : {false, true}) {
                const Status status =
                    prove(schedule, {graph::Collective::allreduce, count, 0, bytes, 8, in_place});
                INFO(text << ": " << status.message());
                CHECK(status.ok());
            }
        }
    }
}

TEST_CASE("multiplying: the choice fits and costs what it says", "[multiplying]") {
    for (const Prices prices : kPrices) {
        const cost::Profile profile = profile_for(prices);
        const topo::Placement hosts = topo::Placement::regular(2, 1);
        const Link link({hosts, profile}, topo::Distance::network);
        for (Rank count = 1; count <= 600; ++count) {
            const MultiplyingSchedule schedule =
                allreduce_recursive_multiplying_schedule(link, count, 8);
            INFO(to_text(schedule));
            CHECK(fits(schedule, count).ok());
            CHECK(allreduce_recursive_multiplying_ns(link, count, 8) ==
                  Approx(allreduce_recursive_multiplying_ns(link, schedule, 8)));
        }
    }
}

TEST_CASE("multiplying: latency alone asks for few large phases", "[multiplying]") {
    CHECK(to_text(chosen(4, Prices::wide_trees)) == "a4");
    CHECK(to_text(chosen(64, Prices::wide_trees)) == "a64");
    CHECK(to_text(chosen(7, Prices::wide_trees)) == "a7");
    CHECK(to_text(chosen(31, Prices::wide_trees)) == "a31");
    CHECK(to_text(chosen(1'000'003, Prices::wide_trees)).front() == 'm');
    // The schedule for 1,000,000 ranks has as many phases.
    CHECK(chosen(1'000'003, Prices::wide_trees).phases.size() == 2);
}

TEST_CASE("multiplying: rounds of a dissemination have a base each", "[multiplying][proof]") {
    const auto planned = [](Rank count, const std::string& text) {
        const topo::Placement placement = topo::Placement::one_host(count);
        const Facts facts{placement, cost::default_profile()};
        return prove(facts, "n_way_dissemination:" + text, {graph::Collective::barrier, count});
    };
    for (Rank first = 2; first <= 5; ++first) {
        for (Rank second = 2; second <= 5; ++second) {
            for (Rank count = first + 1; count <= first * second; ++count) {
                const std::string rounds = fmt::format("a{},a{}", first, second);
                const Status status = planned(count, rounds);
                INFO(status.message());
                CHECK(status.ok());
                const topo::Placement placement = topo::Placement::one_host(count);
                const Status gathers =
                    prove({placement, cost::default_profile()}, "n_way_dissemination:" + rounds,
                          {graph::Collective::allgather, count, 0, 8, 1, second % 2 == 0});
                INFO(gathers.message());
                CHECK(gathers.ok());
            }
        }
    }
    const auto refused = [&](Rank count, const std::string& text, std::string_view reason) {
        const std::string message(planned(count, text).message());
        INFO(message);
        CHECK(message.find(reason) != std::string::npos);
    };
    refused(9, "a4,a2", "the rounds 'a4,a2' reach 8 ranks of 9");
    refused(4, "a4,a2", "a2 is too much: the rounds before it reach all 4 ranks");
    refused(7, "m1g2a3,n1g3a2", "m1g2a3 is no round of a dissemination: aB, B at least 2");
    refused(7, "a7,", "position 3: expected a phase");
}

TEST_CASE("multiplying: no dissemination of one base is cheaper", "[multiplying]") {
    for (const Prices prices : kPrices) {
        const cost::Profile profile = profile_for(prices);
        for (Rank count = 1; count <= 300; ++count) {
            const topo::Placement placement = topo::Placement::one_host(count);
            const Facts facts{placement, profile};
            const graph::Request request = request_of({graph::Collective::barrier, count}, 0);
            CHECK(kBarrierNWayDissemination.cost_ns(facts, request) <=
                  kBarrierDissemination.cost_ns(facts, request) * 1.000001);
        }
    }
}

TEST_CASE("multiplying: an algorithm may be named with its argument", "[multiplying][plan]") {
    const topo::Placement placement = topo::Placement::one_host(8);
    const Facts facts{placement, cost::default_profile()};
    const Case sample{graph::Collective::allreduce, 8, 0, 8, 8};
    const auto planned = [&](std::string_view text) {
        return plan(facts, request_of(sample, 3), 3, text);
    };
    const Result<graph::Schedule> schedule = planned("recursive_multiplying:a2,a4");
    REQUIRE(schedule.ok());
    CHECK(schedule->algorithm == "recursive_multiplying:a2,a4");
    CHECK(planned("recursive_multiplying")->algorithm.find("recursive_multiplying:") == 0);

    const auto message = [&](std::string_view text) {
        CHECK(planned(text).status().code() == Code::invalid_argument);
        return std::string(planned(text).status().message());
    };
    CHECK(message("recursive_multiplying:a2,x") ==
          "allreduce algorithm 'recursive_multiplying', argument 'a2,x' (the phases, such as a4,a2 "
          "or m1g2a3,n1g3a2): 'a2,x', position 3: expected a phase: aB, cTmB, eTmB, mRgGaB or "
          "nRgGaB, found 'x'");
    CHECK(message("recursive_multiplying:a9").find("is for 9 ranks, not for 8") !=
          std::string::npos);
    CHECK(message("recursive_multiplying:").find("is for 1 ranks, not for 8") != std::string::npos);
    CHECK(message("ring:a8") == "allreduce algorithm 'ring' takes no argument, but got 'a8'");
    CHECK(message("no_such:a8").find("no algorithm 'no_such'") != std::string::npos);
}

} // namespace ucg::plan::test
