// Alltoall without contention: it is proved on random clusters, in both variants, with blocks of
// any length, and it is chosen where the links are the limit.
#include <random>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "test/unit/topo/clusters.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;

/// A random cluster with 1 to `ranks_max` ranks on each machine, in any order.
struct Site {
    Site(std::mt19937_64& random, std::uint32_t switches, std::uint32_t machine_count,
         std::uint32_t ranks_max)
        : cluster(topo::test::random_cluster(random, switches, machine_count)) {
        for (std::uint32_t machine = 0; machine < cluster.machine_count(); ++machine) {
            machines.insert(machines.end(), 1 + random() % ranks_max, machine);
        }
        std::shuffle(machines.begin(), machines.end(), random);
        network.emplace(cluster, machines);
        std::vector<topo::Place> places;
        for (const std::uint32_t machine : machines) {
            topo::Place place;
            place.host = machine;
            places.push_back(topo::forget_inside(place, topo::Distance::host));
        }
        placement.emplace(std::move(places));
    }

    Facts facts() const { return {*placement, cost::default_profile(), {}, 1, nullptr, &*network}; }
    Rank ranks() const { return static_cast<Rank>(machines.size()); }

    topo::Cluster cluster;
    std::vector<std::uint32_t> machines;
    std::optional<Network> network;
    std::optional<topo::Placement> placement;
};

void require_proved(const Site& site, std::string_view algorithm, const Case& sample) {
    const Status status = prove(site.facts(), algorithm, sample);
    INFO(status.message());
    REQUIRE(status.ok());
}

} // namespace

TEST_CASE("plan: aapc is proved on random clusters, and that no messages meet",
          "[plan][proof][aapc]") {
    std::mt19937_64 random(14);
    for (int i = 0; i < 60; ++i) {
        const auto switches = static_cast<std::uint32_t>(1 + random() % 6);
        const auto machines = static_cast<std::uint32_t>(2 + random() % 9);
        const Site site(random, switches, machines, i % 2 == 0 ? 1 : 3);
        const bool in_place = i % 3 == 0;
        for (const char* algorithm : {"aapc", "aapc:destination"}) {
            require_proved(site, algorithm,
                           {Collective::alltoall, site.ranks(), 0, 24, 8, in_place, true});
        }
        for (const char* algorithm : {"aapc", "aapc:window2", "aapc:window3", "aapc:window7"}) {
            require_proved(site, algorithm,
                           {Collective::alltoallv, site.ranks(), 0, 24, 8, in_place, true});
        }
        require_proved(site, "aapc:window2",
                       {Collective::alltoall, site.ranks(), 0, 24, 8, in_place, true});
    }
}

TEST_CASE("plan: what keeps more messages apart than a schedule does is not proved of it",
          "[plan][proof][aapc]") {
    std::mt19937_64 random(18);
    const Site site(random, 2, 8, 1);
    const graph::Request request = request_of({Collective::alltoall, 8, 0, 8, 1, false, true}, 0);
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < 8; ++rank) {
        schedules.push_back(*plan(site.facts(), request, rank, "aapc:window3"));
    }
    CHECK(messages_at_once(schedules.front().algorithm) == 3U);
    graph::SwitchTree links = site.network->links();
    links.at_once = 3;
    CHECK(graph::verify(schedules, std::span(&request, 1), nullptr, nullptr, &links).ok());
    links.at_once = 2;
    const Status status =
        graph::verify(schedules, std::span(&request, 1), nullptr, nullptr, &links);
    CHECK(std::string(status.message()).find("contention: may meet 2 other messages") !=
          std::string::npos);
}

TEST_CASE("plan: messages of other algorithms may meet", "[plan][aapc]") {
    std::mt19937_64 random(15);
    const Site site(random, 3, 7, 1);
    std::vector<graph::Schedule> schedules;
    const graph::Request request = request_of({Collective::alltoall, 7, 0, 8, 1, false, true}, 0);
    for (Rank rank = 0; rank < 7; ++rank) {
        schedules.push_back(*plan(site.facts(), request, rank, "linear"));
    }
    const Status status =
        graph::verify(schedules, std::span(&request, 1), nullptr, nullptr, &site.network->links());
    CHECK(std::string(status.message()).find("contention") != std::string::npos);
}

TEST_CASE("plan: aapc is chosen for long blocks where a network is known", "[plan][aapc]") {
    const topo::Cluster cluster = topo::test::figure1(12'500'000); // 100 Mbit/s.
    std::vector<std::uint32_t> machines(6);
    std::iota(machines.begin(), machines.end(), 0U);
    const Network network(cluster, machines);
    CHECK(network.alltoall_ns_per_byte() == 9 * 80);
    CHECK(network.phases_ns_per_byte() == 9 * 80);
    const topo::Placement placement = topo::Placement::regular(6, 1);
    Facts facts{placement, cost::default_profile(), {}, 1, nullptr, &network};
    graph::Request request = request_of({Collective::alltoall, 6, 0, 64 << 10, 1, false, true}, 0);
    CHECK(choose(facts, request).name == "aapc");
    request.bytes = 8;
    CHECK(choose(facts, request).name != "aapc");
    facts.network = nullptr;
    request.bytes = 64 << 10;
    CHECK(choose(facts, request).name != "aapc");
    CHECK(plan(facts, request, 0, "aapc").status().code() == Code::unsupported);
}

TEST_CASE("plan: without contention on the links, phases win nothing", "[plan][aapc]") {
    const topo::Cluster cluster = topo::test::figure1(12'500'000);
    std::vector<std::uint32_t> machines(6);
    std::iota(machines.begin(), machines.end(), 0U);
    const Network network(cluster, machines);
    const topo::Placement placement = topo::Placement::regular(6, 1);
    cost::Profile profile = cost::default_profile();
    const Facts facts{placement, profile, {}, 1, nullptr, &network};
    const graph::Request request =
        request_of({Collective::alltoall, 6, 0, 64 << 10, 1, false, true}, 0);
    CHECK(choose(facts, request).name == "aapc");
    profile.links.contention = 1;
    CHECK(choose(facts, request).name != "aapc");
    profile.links.contention = 2;
    CHECK(choose(facts, request).name == "aapc");
}

TEST_CASE("plan: alltoallv is chosen by what ranks have agreed that blocks have", "[plan][aapc]") {
    const topo::Cluster cluster = topo::test::figure1(12'500'000);
    std::vector<std::uint32_t> machines(6);
    std::iota(machines.begin(), machines.end(), 0U);
    const Network network(cluster, machines);
    const topo::Placement placement = topo::Placement::regular(6, 1);
    const Facts facts{placement, cost::default_profile(), {}, 1, nullptr, &network};
    graph::Request request = request_of({Collective::alltoallv, 6, 0, 64 << 10, 1, false, true}, 0);
    CHECK(request.bytes == 0);
    CHECK(choose(facts, request).name != "aapc");
    request.bytes = 8;
    CHECK(choose(facts, request).name != "aapc");
    request.bytes = 64 << 10;
    CHECK(choose(facts, request).name == "aapc");
    const Result<graph::Schedule> long_one = plan(facts, request, 0);
    REQUIRE(long_one.ok());
    request.bytes = 128 << 10;
    // Whatever the ranks agree on, the lengths in the schedule are the rank's own.
    CHECK(*plan(facts, request, 0) == *long_one);
}

TEST_CASE("plan: on one switch, and there alone, aapc lets a link carry several messages",
          "[plan][aapc]") {
    std::mt19937_64 random(19);
    const Site star(random, 1, 9, 2);
    CHECK(star.network->is_one_switch());
    graph::Request request =
        request_of({Collective::alltoall, star.ranks(), 0, 8, 1, false, true}, 0);
    CHECK(plan(star.facts(), request, 0, "aapc")->algorithm == "aapc:window4");
    CHECK(plan(star.facts(), request, 0, "aapc:source")->algorithm == "aapc");
    request = request_of({Collective::alltoallv, star.ranks(), 0, 8, 1, false, true}, 0);
    CHECK(plan(star.facts(), request, 0, "aapc")->algorithm == "aapc:window6");

    const topo::Cluster tree = topo::test::figure1(12'500'000);
    std::vector<std::uint32_t> machines(6);
    std::iota(machines.begin(), machines.end(), 0U);
    const Network network(tree, machines);
    CHECK_FALSE(network.is_one_switch());
    const topo::Placement placement = topo::Placement::regular(6, 1);
    const Facts facts{placement, cost::default_profile(), {}, 1, nullptr, &network};
    request = request_of({Collective::alltoallv, 6, 0, 8, 1, false, true}, 0);
    CHECK(plan(facts, request, 0, "aapc")->algorithm == "aapc");
}

TEST_CASE("plan: aapc refuses arguments that it does not have", "[plan][aapc]") {
    std::mt19937_64 random(16);
    const Site site(random, 2, 5, 1);
    const graph::Request equal = request_of({Collective::alltoall, 5, 0, 8, 1, false, true}, 0);
    CHECK(plan(site.facts(), equal, 0, "aapc:source").ok());
    for (const char* wrong : {"aapc:nobody", "aapc:window", "aapc:window0", "aapc:window65",
                              "aapc:window2x", "aapc:window-1", "aapc:2"}) {
        CHECK(plan(site.facts(), equal, 0, wrong).status().code() == Code::invalid_argument);
    }
    CHECK(*plan(site.facts(), equal, 0, "aapc:window1") ==
          *plan(site.facts(), equal, 0, "aapc:source"));
    const graph::Request any = request_of({Collective::alltoallv, 5, 0, 8, 1, false, true}, 0);
    CHECK(plan(site.facts(), any, 0, "aapc:destination").status().code() == Code::unsupported);
}

TEST_CASE("plan: a rank's part of aapc grows with its own messages", "[plan][aapc]") {
    std::mt19937_64 random(17);
    const Site site(random, 20, 1000, 1);
    const graph::Request request =
        request_of({Collective::alltoall, site.ranks(), 0, 8, 1, false, true}, 0);
    const Result<graph::Schedule> schedule = plan(site.facts(), request, 5, "aapc");
    REQUIRE(schedule.ok());
    CHECK(schedule->ops.size() < 20 * static_cast<std::size_t>(site.ranks()));
}

TEST_CASE("plan: a rank's part of aapc does not grow with blocks that are empty", "[plan][aapc]") {
    std::mt19937_64 random(17);
    const Site site(random, 20, 1000, 1);
    const auto count = static_cast<std::size_t>(site.ranks());
    graph::Request request;
    request.collective = Collective::alltoallv;
    request.rank_count = site.ranks();
    for (std::size_t i = 0; i < count; ++i) {
        request.send.bytes.push_back(i == 700 ? 8 : 0);
        request.send.offsets.push_back(0);
    }
    request.receive = request.send;
    const Result<graph::Schedule> schedule = plan(site.facts(), request, 5, "aapc");
    REQUIRE(schedule.ok());
    CHECK(schedule->dependencies.size() < 20 * count);
}

} // namespace ucg::plan::test
