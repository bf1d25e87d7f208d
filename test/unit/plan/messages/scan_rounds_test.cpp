#include "test/support/catch.hpp"
#include "ucg_coll/plan/messages/scan_rounds.hpp"

namespace ucg::plan {
namespace {

constexpr std::uint64_t kBytes = 4096;

const cost::Profile& profile() {
    static const cost::Profile profile =
        cost::with_network(cost::default_profile(), cost::NetworkKind::one_kernel);
    return profile;
}

} // namespace

TEST_CASE("plan: rounds of a scan take a host's link as soon as ranks reach beyond the host",
          "[plan][cost]") {
    constexpr Rank kRanksOnHost = 4;
    const topo::Placement hosts = topo::Placement::regular(4, kRanksOnHost);
    const Facts facts{hosts, profile(), shared_memory(hosts, profile(), 1 << 20, false)};
    const Link link = flat_link(facts, Traffic::dense);
    REQUIRE(link.levels().inner_ranks() == kRanksOnHost);
    const auto shared_ns = [&](Rank ranks) {
        return Link(facts, topo::Distance::network, ranks).sends_before_ns(1, kBytes);
    };
    REQUIRE(shared_ns(1) < shared_ns(4));

    CHECK(rounds_before_ns(link, 0, kBytes) == 0);
    // In the first round one rank of four sends to another host, then two do, then all.
    CHECK(rounds_before_ns(link, 1, kBytes) == Approx(shared_ns(1)));
    CHECK(rounds_before_ns(link, 2, kBytes) == Approx(shared_ns(1) + shared_ns(2)));
    CHECK(rounds_before_ns(link, 3, kBytes) == Approx(shared_ns(1) + shared_ns(2) + shared_ns(4)));
    CHECK(rounds_before_ns(link, 4, kBytes) ==
          Approx(shared_ns(1) + shared_ns(2) + 2 * shared_ns(4)));
}

TEST_CASE("plan: rounds of a scan of hosts with a rank each are as many sends", "[plan][cost]") {
    const topo::Placement hosts = topo::Placement::regular(8, 1);
    const Link link = leader_link({hosts, profile()});
    CHECK(rounds_before_ns(link, 3, kBytes) == Approx(link.sends_before_ns(3, kBytes)));
}

TEST_CASE("plan: rounds of a scan on one host leave no bytes on their way", "[plan][cost]") {
    const topo::Placement one_host = topo::Placement::regular(1, 8);
    CHECK(rounds_before_ns(host_link({one_host, profile()}), 3, kBytes) == 0);
}

} // namespace ucg::plan
