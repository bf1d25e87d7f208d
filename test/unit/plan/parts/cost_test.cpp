#include "test/support/catch.hpp"
#include "ucg_coll/plan/parts/cost.hpp"
#include "ucg_coll/plan/peer_memory/pieces.hpp"

namespace ucg::plan {

TEST_CASE("plan: a tree is as deep as its count has digits", "[plan][cost]") {
    CHECK(tree_depth(1, 2) == 0);
    CHECK(tree_depth(2, 2) == 1);
    CHECK(tree_depth(8, 2) == 3);
    CHECK(tree_depth(9, 2) == 4);
    CHECK(tree_depth(9, 3) == 2);
    CHECK(tree_depth(2147483647, 2) == 31);
}

TEST_CASE("plan: segments are multiples of elements, from a cache line to the vector",
          "[plan][cost]") {
    // The fixed parts of 64 segments of 1000 bytes cost as much as filling the pipeline does.
    CHECK(pipeline_segment(64000, 65, 1000, 64, 1) == 128);
    CHECK(pipeline_segment(64000, 65, 0, 1, 8) == 64);
    CHECK(pipeline_segment(64000, 2, 1e12, 1, 8) == 64000);
    CHECK(pipeline_segment(64000, 2, 1, 0, 8) == 64000);
    CHECK(pipeline_segment(10000, 100, 0, 1, 24) % 24 == 0);
    CHECK(pipeline_segment(30, 100, 0, 1, 10) == 30);
    CHECK(pipeline_segment(0, 2, 1, 1, 8) > 0);
}

TEST_CASE("plan: the cheapest radix wins, the smaller one of equals", "[plan][cost]") {
    constexpr Rank kMany = 1000;
    CHECK(cheapest_radix(kMany, [](unsigned) { return 1.0; }) == kRadixMin);
    CHECK(cheapest_radix(kMany, [](unsigned radix) { return -1.0 * radix; }) == kRadixMax);
    CHECK(cheapest_radix(kMany, [](unsigned radix) { return radix == 5 ? 0.0 : 1.0; }) == 5);
}

TEST_CASE("plan: no radix is tried above that of a tree of one level", "[plan][cost]") {
    const auto falling_ns = [](unsigned radix) { return -1.0 * radix; };
    CHECK(cheapest_radix(5, falling_ns) == 5);
    CHECK(cheapest_radix(2, falling_ns) == kRadixMin);
    CHECK(cheapest_radix(1, falling_ns) == kRadixMin);
}

TEST_CASE("plan: prices by level are those of the links at each level", "[plan][cost]") {
    std::vector<topo::Core> cores;
    for (std::uint32_t core = 0; core < 16; ++core) {
        cores.push_back({.package = core / 8, .numa = core / 8, .l3 = core / 4, .l2 = core});
    }
    const topo::Placement placement = topo::Placement::packed(topo::Machine(cores), 2, 16);
    const cost::Profile& profile = cost::default_profile();
    const Facts facts{placement, profile, shared_memory(placement, profile, 1 << 20, false)};
    const Link link = flat_link(facts, Traffic::sparse);
    REQUIRE(link.levels().count() > 1);
    const LevelPrices<double> prices(link, [](const Link& way) { return way.message_ns(4096); });
    for (const std::uint64_t ranks : {1, 2, 3, 4, 8, 9, 16, 32}) {
        CAPTURE(ranks);
        CHECK(prices.in_tree(ranks, ranks) == link.within(ranks).message_ns(4096));
    }
    CHECK(prices.between(0, 15) == prices.in_tree(16, 2));
    CHECK(prices.between(15, 16) == link.message_ns(4096));
    CHECK(prices.between(3, 4) == prices.in_tree(8, 2));
}

TEST_CASE("plan: siblings in turn cost more where ranks share processors", "[plan][cost]") {
    const topo::Placement placement = topo::Placement::regular(1, 4);
    Facts facts{placement, cost::default_profile()};
    constexpr std::uint64_t kCopiedOnce = 1 << 20;
    const double rts_fin_ns = flat_link(facts, Traffic::sparse).gap_ns(0);
    CHECK(flat_link(facts, Traffic::sparse).gap_of_sender_ns(kCopiedOnce) == rts_fin_ns);
    facts.ranks_per_cpu = 2;
    const Link shared = flat_link(facts, Traffic::sparse);
    CHECK(shared.gap_of_sender_ns(kCopiedOnce) == shared.gap_ns(kCopiedOnce));
    CHECK(shared.relay_gap_ns(kCopiedOnce, Source::settled) ==
          shared.relay_gap_ns(kCopiedOnce, Source::fresh));
}

TEST_CASE("plan: ranks that leave a host together share its way out", "[plan][cost]") {
    const topo::Placement placement = topo::Placement::regular(2, 10);
    const Facts facts{placement, cost::default_profile()};
    const Link sparse = flat_link(facts, Traffic::sparse);
    const Link dense = flat_link(facts, Traffic::dense);
    CHECK(dense.gap_per_byte_ns() == Approx(10 * sparse.gap_per_byte_ns()));
    CHECK(leader_link(facts).gap_per_byte_ns() == Approx(sparse.gap_per_byte_ns()));
    CHECK(host_link(facts).message_ns(8) < sparse.message_ns(8));
}

TEST_CASE("plan: long messages on a host cost one copy, and more if they were just written",
          "[plan][cost]") {
    const topo::Placement placement = topo::Placement::regular(1, 2);
    cost::Profile profile = cost::default_profile();
    profile.memory.cma = {.permitted = true,
                          .fixed_ns = 1000,
                          .per_byte_ns = 0.01,
                          .written_per_byte_ns = 0.02,
                          .bytes_min = 1 << 20};
    for (cost::CacheRates& rates : profile.memory.caches) {
        rates.copy_per_byte_ns = 0.015; // This is the fastest copy, also for the kernel.
        rates.overwrite_per_byte_ns = 0.018;
    }
    const Link link = host_link({placement, profile});
    const double both_ways_ns = 2 * link.message_ns(0);
    CHECK(link.message_ns(1 << 20) == Approx(both_ways_ns + 1000 + 0.015 * (1 << 20)));
    // A message that is passed on was received before, so it lies where its reader last had it.
    CHECK(link.message_ns(1 << 20, Source::fresh) ==
          Approx(both_ways_ns + 1000 + 0.023 * (1 << 20)));
    CHECK(link.message_ns(1 << 19, Source::fresh) == link.message_ns(1 << 19));
    profile.memory.cma.permitted = false;
    CHECK(host_link({placement, profile}).message_ns(1 << 20) > both_ways_ns + 1000);
    const topo::Placement hosts = topo::Placement::regular(2, 1);
    profile.memory.cma.permitted = true;
    const Link network = flat_link({hosts, profile}, Traffic::sparse);
    CHECK(network.message_ns(1 << 20, Source::fresh) == network.message_ns(1 << 20));
}

TEST_CASE("plan: vectors that do not fit the caches cost more to combine", "[plan][cost]") {
    const topo::Placement placement = topo::Placement::regular(1, 2);
    const Link link = host_link({placement, cost::default_profile()});
    const double in_cache_ns = link.reduce_ns(2, 1 << 16);
    CHECK(link.reduce_ns(2, 1 << 16, 1 << 16) == in_cache_ns);
    CHECK(link.reduce_ns(2, 1 << 16, 1 << 24) > 2 * in_cache_ns);
}

TEST_CASE("plan: publishing costs what reading the vector from where it lies does",
          "[plan][cost]") {
    const topo::Placement placement = topo::Placement::regular(1, 2);
    const cost::Profile& profile = cost::default_profile();
    Facts facts{placement, profile};
    CHECK(publish_ns(facts, 1 << 18) ==
          Approx(profile.memory.cache(cost::Cache::l2).overwrite_per_byte_ns * (1 << 18)));
    CHECK(publish_ns(facts, 1 << 24) ==
          Approx(profile.memory.cache(cost::Cache::l3).copy_per_byte_ns * (1 << 24)));
    facts.shared.buffers_mapped = true;
    CHECK(publish_ns(facts, 1 << 24) == 0);
}

TEST_CASE("plan: across hosts a root that sends much is as dear as a long path", "[plan][cost]") {
    const cost::Profile profile =
        cost::with_network(cost::default_profile(), cost::NetworkKind::one_kernel);
    const topo::Placement hosts = topo::Placement::regular(4, 1);
    const Link network = leader_link({hosts, profile});
    CHECK(network.sends_before_ns(3, 8) == Approx(3 * network.gap_ns(8)));
    // Towards a root the price is that of the third collective in a row, from a root that of the
    // second.
    CHECK(network.receives_before_ns(3, 8) == Approx(2 * 3 * network.gap_ns(8)));
    CHECK(network.relays_before_ns(3, 8) == Approx(2 * network.sends_before_ns(3, 8)));
    const topo::Placement one_host = topo::Placement::regular(1, 4);
    CHECK(host_link({one_host, profile}).sends_before_ns(3, 8) == 0);
    CHECK(host_link({one_host, profile}).receives_before_ns(3, 8) == 0);
    CHECK(host_link({one_host, profile}).relays_before_ns(3, 8) == 0);
}

TEST_CASE("plan: the children of a root", "[plan][cost]") {
    CHECK(root_children(1, 2) == 0);
    CHECK(root_children(2, 8) == 1);
    CHECK(root_children(4, 2) == 2);
    CHECK(root_children(4, 4) == 3);
    CHECK(root_children(5, 4) == 4);
    CHECK(root_children(1000, 2) == 10);
}

} // namespace ucg::plan
