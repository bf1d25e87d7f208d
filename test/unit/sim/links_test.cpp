// Messages that share the links of a tree of switches.
#include <numeric>

#include "test/support/catch.hpp"
#include "test/unit/topo/clusters.hpp"
#include "ucg_coll/plan/network/network.hpp"
#include "ucg_coll/plan/plan.hpp"
#include "ucg_coll/sim/sim.hpp"

namespace ucg::sim {
namespace {

constexpr std::uint64_t kBlock = 1000;
constexpr double kBlockNs = 80 * 1000; ///< The time of a block on a link of 100 Mbit/s.

/// Options under which only the links take time.
Options free_but_for(const graph::SwitchTree& links) {
    Options options;
    options.network = cost::LogGp{};
    options.links = links;
    return options;
}

plan::Network figure1() {
    std::vector<std::uint32_t> machines(6);
    std::iota(machines.begin(), machines.end(), 0U);
    return {topo::test::figure1(12'500'000), machines};
}

/// Three switches in a row with four machines each; ranks are dealt to the switches in turn.
plan::Network row_of_switches() {
    using topo::test::machine;
    using topo::test::network_switch;
    constexpr std::uint64_t kRate = 12'500'000;
    std::vector<topo::ClusterNode> nodes = {network_switch("s0", topo::kNoNode),
                                            network_switch("s1", 0, kRate),
                                            network_switch("s2", 1, kRate)};
    for (std::uint32_t i = 0; i < 12; ++i) {
        nodes.push_back(machine("n" + std::to_string(i), i % 3, kRate));
    }
    const topo::Cluster cluster(std::move(nodes));
    std::vector<std::uint32_t> machines;
    for (std::uint32_t i = 0; i < 12; ++i) {
        machines.push_back(*cluster.find_machine("n" + std::to_string(i)));
    }
    return {cluster, machines};
}

/// The simulated time of an alltoall in nanoseconds.
double alltoall_ns(const plan::Network& network, std::string_view algorithm) {
    const Rank ranks = network.rank_count();
    const topo::Placement placement = topo::Placement::regular(ranks, 1);
    const plan::Facts facts{placement, cost::default_profile(), {}, 1, nullptr, &network};
    graph::Request request;
    request.collective = graph::Collective::alltoall;
    request.rank_count = ranks;
    request.bytes = kBlock;
    const Options options = free_but_for(network.links());
    Simulator simulator(placement, options);
    for (Rank rank = 0; rank < ranks; ++rank) {
        simulator.add(*plan::plan(facts, request, rank, algorithm));
    }
    const Result<Outcome> outcome = simulator.run(1);
    INFO(outcome.status().message());
    REQUIRE(outcome.ok());
    return to_ns(outcome->completion());
}

} // namespace

TEST_CASE("sim: phases without contention take the time of the bottleneck", "[sim][links]") {
    const plan::Network network = figure1();
    CHECK(network.alltoall_ns_per_byte() * kBlock == 9 * kBlockNs);
    CHECK(alltoall_ns(network, "aapc") == 9 * kBlockNs);
    CHECK(alltoall_ns(network, "aapc:destination") == 9 * kBlockNs);
}

TEST_CASE("sim: messages that meet on links wait for one another", "[sim][links]") {
    const plan::Network network = row_of_switches();
    CHECK(alltoall_ns(network, "aapc") == 32 * kBlockNs);
    CHECK(alltoall_ns(network, "pairwise") > 32 * kBlockNs);
}

TEST_CASE("sim: a tree of switches is one for its ranks, and instead of host links",
          "[sim][links]") {
    const plan::Network network = figure1();
    Options options = free_but_for(network.links());
    CHECK(check(options, 6).ok());
    CHECK_FALSE(check(options, 5).ok());
    options.host_link = HostLink{};
    CHECK_FALSE(check(options, 6).ok());
}

} // namespace ucg::sim
