// Prices where hosts have unequal numbers of ranks, and where ranks go round over hosts.
#include <algorithm>
#include <string_view>
#include <vector>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;

/// Returns hosts of which each has the next ranks, as many as its entry says.
topo::Placement on_hosts(const std::vector<Rank>& ranks_by_host) {
    std::vector<topo::Place> places;
    for (std::uint32_t host = 0; host < ranks_by_host.size(); ++host) {
        places.insert(places.end(), static_cast<std::size_t>(ranks_by_host[host]),
                      topo::Place{.host = host, .known = topo::Distance::host});
    }
    return topo::Placement(places);
}

/// Returns `alone` hosts of one rank, then one host of `together` ranks.
topo::Placement alone_and_together(std::size_t alone, Rank together) {
    std::vector<Rank> ranks(alone, 1);
    ranks.push_back(together);
    return on_hosts(ranks);
}

topo::Placement round_robin(Rank hosts, Rank ranks_per_host) {
    return topo::map_ranks(topo::Machine(), hosts, ranks_per_host, topo::MapBy::host);
}

Facts facts_of(const topo::Placement& placement) {
    const cost::Profile& profile = cost::default_profile();
    return {placement, profile, shared_memory(placement, profile, 1 << 20, false, 8 << 10, true)};
}

Case case_of(const topo::Placement& placement, Collective collective, std::uint64_t bytes,
             Rank root = 0) {
    return {collective, placement.rank_count(), root, bytes, 8};
}

/// Returns the price of one row.
double price_ns(const topo::Placement& placement, const Case& sample, std::string_view row) {
    const Facts facts = facts_of(placement);
    const std::vector<Candidate> rows = candidates(facts, request_of(sample, 0));
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Candidate& candidate) {
        return candidate.algorithm->name == row;
    });
    REQUIRE(found != rows.end());
    return found->cost_ns;
}

std::string_view chosen(const topo::Placement& placement, const Case& sample) {
    return choose(facts_of(placement), request_of(sample, 0)).name;
}

} // namespace

TEST_CASE("plan: a tree over unequal hosts is no cheaper than one over fewer, equal hosts",
          "[plan][cost][hosts]") {
    const topo::Placement unequal = alone_and_together(32, 32);
    const topo::Placement equal = topo::Placement::regular(2, 32);
    for (const Collective collective : {Collective::barrier, Collective::bcast, Collective::reduce,
                                        Collective::allreduce, Collective::scan}) {
        const std::uint64_t bytes = collective == Collective::barrier ? 0 : 8;
        const Facts facts = facts_of(unequal);
        for (const Candidate& row :
             candidates(facts, request_of({collective, 64, 0, bytes, 8}, 0))) {
            CAPTURE(graph::name(collective), row.algorithm->name);
            CHECK(row.cost_ns >=
                  price_ns(equal, case_of(equal, collective, bytes), row.algorithm->name));
        }
    }
    CHECK(price_ns(unequal, case_of(unequal, Collective::bcast, 8), "knomial") >
          2 * price_ns(equal, case_of(equal, Collective::bcast, 8), "knomial"));
}

TEST_CASE("plan: where hosts are unequal, vectors cross the network once for each host",
          "[plan][cost][hosts]") {
    const topo::Placement many = alone_and_together(128, 128);
    for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{64} << 10}) {
        CAPTURE(bytes);
        CHECK(chosen(many, case_of(many, Collective::bcast, bytes)) == "two_level");
    }
    CHECK(chosen(many, case_of(many, Collective::reduce, 64 << 10)) == "two_level");
    CHECK(chosen(many, case_of(many, Collective::barrier, 0)) == "two_level");
    const topo::Placement head = on_hosts({1, 64, 64, 64});
    CHECK(chosen(head, case_of(head, Collective::bcast, 8)) == "two_level");
}

TEST_CASE("plan: the last host may have fewer ranks than the others", "[plan][cost][hosts]") {
    const topo::Placement fewer = on_hosts({16, 16, 5});
    const Facts facts = facts_of(fewer);
    const Link link = flat_link(facts, Traffic::sparse);
    CHECK(link.levels().are_in_order());
    CHECK(link.within(16).message_ns(8) == host_link(facts).message_ns(8));
    const topo::Placement first = on_hosts({5, 16, 16});
    CHECK_FALSE(flat_link(facts_of(first), Traffic::sparse).levels().are_in_order());
}

TEST_CASE("plan: a chain crosses the network once for each further host", "[plan][cost][hosts]") {
    const auto mean_of = [](const topo::Placement& placement) {
        const Facts facts = facts_of(placement);
        const auto crossed = [](const Link& link) { return link.is_across_hosts() ? 1.0 : 0.0; };
        return flat_link(facts, Traffic::sparse).along_ns(1, placement.rank_count(), crossed);
    };
    CHECK(mean_of(on_hosts({1, 16, 16, 16})) == Approx(3.0 / 48));
    CHECK(mean_of(on_hosts({16, 1, 32})) == Approx(2.0 / 48));
    CHECK(mean_of(on_hosts({31, 1})) == Approx(1.0 / 31));
    CHECK(mean_of(on_hosts({16, 16, 5})) == Approx(2.0 / 36));
    CHECK(mean_of(round_robin(7, 7)) == 1.0);
}

TEST_CASE("plan: messages to all cost as much in whichever order ranks are on hosts",
          "[plan][cost][hosts]") {
    const topo::Placement blocks = topo::Placement::regular(2, 64);
    const topo::Placement in_turn = round_robin(2, 64);
    const std::uint64_t bytes = 64 << 10;
    const auto same = [&](Collective collective, std::string_view row) {
        CAPTURE(graph::name(collective), row);
        CHECK(price_ns(in_turn, case_of(in_turn, collective, bytes), row) ==
              Approx(price_ns(blocks, case_of(blocks, collective, bytes), row)).epsilon(0.02));
    };
    same(Collective::alltoall, "pairwise");
    same(Collective::alltoall, "linear");
    same(Collective::reduce_scatter_block, "pairwise");
    same(Collective::gather, "linear");
    same(Collective::scatter, "linear");
    CHECK(chosen(in_turn, case_of(in_turn, Collective::alltoall, bytes)) == "pairwise");
    CHECK(chosen(in_turn, case_of(in_turn, Collective::gather, 1 << 20)) == "linear");
    CHECK(chosen(in_turn, case_of(in_turn, Collective::scatter, 1 << 20)) == "linear");
}

TEST_CASE("plan: a root pays for the ranks that are not on its host", "[plan][cost][hosts]") {
    const topo::Placement head = on_hosts({1, 64});
    for (const Collective collective : {Collective::gather, Collective::scatter}) {
        CAPTURE(graph::name(collective));
        const double far_ns = price_ns(head, case_of(head, collective, 1 << 18, 0), "linear");
        CHECK(far_ns > 2 * price_ns(head, case_of(head, collective, 1 << 18, 1), "linear"));
        const topo::Placement tail = on_hosts({64, 1});
        CHECK(price_ns(tail, case_of(tail, collective, 1 << 18, 64), "linear") ==
              Approx(far_ns).epsilon(0.02));
    }
}

TEST_CASE("plan: what ranks pay that have fewest others near does not depend on their order",
          "[plan][cost][hosts]") {
    const topo::Placement last = on_hosts({31, 1});
    const topo::Placement first = on_hosts({1, 31});
    const auto check = [&](Collective collective, std::string_view row, std::uint64_t bytes) {
        CAPTURE(graph::name(collective), row, bytes);
        const double ns = price_ns(first, case_of(first, collective, bytes), row);
        CHECK(price_ns(last, case_of(last, collective, bytes), row) == Approx(ns));
        // The rank that is alone sends 31 messages.
        const Link link(facts_of(first), topo::Distance::network);
        CHECK(ns > 31 * link.gap_ns(bytes));
        CHECK(ns < 2 * 31 * link.message_ns(bytes));
    };
    for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{16} << 10}) {
        check(Collective::alltoall, "pairwise", bytes);
        check(Collective::alltoall, "linear", bytes);
        check(Collective::reduce_scatter_block, "pairwise", bytes);
    }
}

TEST_CASE("plan: no more messages of a round leave a host than there are ranks elsewhere",
          "[plan][cost][hosts]") {
    constexpr std::uint64_t kBytes = 1 << 20;
    for (const std::vector<Rank>& hosts : {std::vector<Rank>{31, 1}, std::vector<Rank>{1, 31}}) {
        const topo::Placement placement = on_hosts(hosts);
        CAPTURE(hosts.front());
        // No round takes longer than a message by itself.
        const double message_ns =
            Link(facts_of(placement), topo::Distance::network).in_exchanges().message_ns(kBytes);
        const Case sample = case_of(placement, Collective::allreduce, kBytes);
        CHECK(price_ns(placement, sample, "recursive_doubling") < 2 * 5 * message_ns);
        CHECK(price_ns(placement, sample, "rabenseifner") < 2 * 2 * message_ns);
    }
}

TEST_CASE("plan: exchanges of a number of ranks that is folded cross hosts where it does",
          "[plan][cost][hosts]") {
    // Of 24 ranks, 1, 3, ... 15 act, which are on two hosts, and 16, 17, ... 23.
    const topo::Placement three = topo::Placement::regular(3, 8);
    const Facts facts = facts_of(three);
    const Link link = flat_link(facts, Traffic::dense);
    CHECK_FALSE(link.of_pairs().is_across_hosts());
    CHECK_FALSE(link.exchanged(2).is_across_hosts());
    CHECK(link.exchanged(4).at_a_time() == 4);
    CHECK(link.exchanged(8).at_a_time() == 8);
}

TEST_CASE("plan: exchanges know sockets, in whichever order ranks are", "[plan][cost][hosts]") {
    std::vector<topo::Place> dealt;
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
        dealt.push_back(
            {.host = 0, .package = rank % 2, .numa = rank % 2, .cache = rank % 2, .core = rank});
    }
    const topo::Placement placement(dealt);
    const Facts facts = facts_of(placement);
    const Link link = host_link(facts);
    CHECK(link.exchanged(1).message_ns(8) == link.message_ns(8));
    CHECK(link.exchanged(2).message_ns(8) < link.message_ns(8));
    CHECK(link.exchanged(8).message_ns(8) < link.message_ns(8));
}

TEST_CASE("plan: two-level blocks are priced by what each host has", "[plan][cost][hosts]") {
    const topo::Placement many = alone_and_together(32, 32);
    const std::uint64_t block = 1 << 10;
    // The fullest host sends its ranks' blocks for 32 others, which is most of the time.
    const double link_ns = 32.0 * 32 * static_cast<double>(block) *
                           cost::default_profile().level(topo::Distance::network).gap_per_byte_ns;
    const double alltoall_ns =
        price_ns(many, case_of(many, Collective::alltoall, block), "two_level");
    CHECK(alltoall_ns > link_ns);
    CHECK(alltoall_ns < 2 * link_ns);
    CHECK(chosen(many, case_of(many, Collective::alltoall, block)) == "two_level");
    const topo::Placement three = on_hosts({1, 2, 61});
    CHECK(chosen(three, case_of(three, Collective::alltoall, 8)) == "two_level");
    // The root is alone on its host, and all other blocks come to it over its link.
    const double gather_ns =
        price_ns(many, case_of(many, Collective::gather, 32 << 10), "two_level");
    CHECK(gather_ns < 2 * price_ns(many, case_of(many, Collective::gather, 32 << 10), "linear"));
}

TEST_CASE("plan: partners that share a host are near, also where ranks go round the hosts",
          "[plan][cost][hosts]") {
    const topo::Placement blocks = topo::Placement::regular(4, 8);
    const topo::Placement in_turn = round_robin(4, 8);
    for (const std::uint64_t bytes : {8, 64 << 10}) {
        CAPTURE(bytes);
        const Case allreduce = case_of(blocks, Collective::allreduce, bytes);
        CHECK(price_ns(in_turn, allreduce, "recursive_doubling") ==
              Approx(price_ns(blocks, allreduce, "recursive_doubling")).epsilon(0.1));
        // A ring goes from host to host in any case.
        CHECK(price_ns(in_turn, allreduce, "ring") ==
              Approx(price_ns(blocks, allreduce, "ring")).epsilon(0.1));
    }
}

TEST_CASE("plan: only the rounds in which the ranks of a full host leave it share its link",
          "[plan][cost][hosts]") {
    constexpr std::uint64_t kBytes = 64 << 10;
    const topo::Placement placement = alone_and_together(16, 16);
    const double dense_ns =
        Link(facts_of(placement), topo::Distance::network, 16).message_ns(kBytes);
    const double ns = price_ns(placement, case_of(placement, Collective::allreduce, kBytes),
                               "recursive_doubling");
    CHECK(ns > dense_ns);
    CHECK(ns < 2 * dense_ns); // Of five rounds.
}

TEST_CASE("plan: a root that gathers has work at each message", "[plan][cost][hosts]") {
    const topo::Placement placement = topo::Placement::regular(16, 1);
    const cost::LogGp& network = facts_of(placement).profile.level(topo::Distance::network);
    CHECK(price_ns(placement, case_of(placement, Collective::gather, 8), "linear") >=
          15 * std::max(network.overhead_ns, network.gap_ns));
}

} // namespace ucg::plan::test
