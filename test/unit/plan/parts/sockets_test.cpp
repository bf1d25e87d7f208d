// Prices on one host whose sockets have unequal numbers of ranks.
#include <algorithm>
#include <string_view>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;

/// Returns two sockets: `first` ranks, and then `second` ranks.
topo::Placement in_sockets(std::uint32_t first, std::uint32_t second) {
    std::vector<topo::Place> places;
    for (std::uint32_t core = 0; core < first + second; ++core) {
        const std::uint32_t socket = core < first ? 0 : 1;
        places.push_back(
            {.host = 0, .package = socket, .numa = socket, .cache = socket, .core = core});
    }
    return topo::Placement(places);
}

struct Row {
    Collective collective;
    std::string_view name;
};

double price_ns(const topo::Placement& placement, const Row& row, std::uint64_t bytes,
                Rank root = 0) {
    const cost::Profile& profile = cost::default_profile();
    const Facts facts{placement, profile,
                      shared_memory(placement, profile, 1 << 20, false, 8 << 10, true)};
    const graph::Request request =
        request_of({row.collective, placement.rank_count(), root, bytes, 8}, 0);
    return find_algorithm(row.collective, row.name)->cost_ns(facts_for(facts, request), request);
}

} // namespace

TEST_CASE("plan: a rank alone in its socket reads all flag slots from afar", "[plan][cost]") {
    const topo::Placement all_far = topo::Placement::one_host(9);
    const Row allgather{Collective::allgather, "flag_slots"};
    const Row allreduce{Collective::allreduce, "flag_slots"};
    for (const topo::Placement& placement : {in_sockets(8, 1), in_sockets(1, 8)}) {
        CHECK(price_ns(placement, allgather, 800) == Approx(price_ns(all_far, allgather, 800)));
        CHECK(price_ns(placement, allreduce, 800) == Approx(price_ns(all_far, allreduce, 800)));
    }
    // Only the last rank of a scan reads all, and only the root of a reduction.
    const Row scan{Collective::scan, "flag_slots"};
    CHECK(price_ns(in_sockets(8, 1), scan, 800) == Approx(price_ns(all_far, scan, 800)));
    CHECK(price_ns(in_sockets(1, 8), scan, 800) < 0.7 * price_ns(all_far, scan, 800));
    const Row reduce{Collective::reduce, "flag_slots"};
    CHECK(price_ns(in_sockets(8, 1), reduce, 800, 8) == Approx(price_ns(all_far, reduce, 800)));
    CHECK(price_ns(in_sockets(8, 1), reduce, 800) < 0.7 * price_ns(all_far, reduce, 800));
}

TEST_CASE("plan: few ranks in a socket load its link little", "[plan][cost]") {
    constexpr std::uint64_t kBytes = 64 << 10;
    const topo::Placement unequal = in_sockets(8, 1);
    const topo::Placement equal = in_sockets(8, 8);
    for (const Row& row :
         {Row{Collective::allgather, "peer_read"}, Row{Collective::alltoall, "peer_read"},
          Row{Collective::reduce_scatter_block, "peer_read"}, Row{Collective::bcast, "one_stage"},
          Row{Collective::scatter, "peer_read"}, Row{Collective::reduce, "tiled"},
          Row{Collective::allreduce, "tiled_naive"}}) {
        CAPTURE(graph::name(row.collective), row.name);
        CHECK(price_ns(unequal, row, kBytes) < 0.6 * price_ns(equal, row, kBytes));
    }
}

TEST_CASE("plan: a root alone in its socket is read over the link by all others", "[plan][cost]") {
    constexpr std::uint64_t kBytes = 64 << 10;
    const topo::Placement unequal = in_sockets(8, 1);
    for (const Row& row :
         {Row{Collective::bcast, "one_stage"}, Row{Collective::scatter, "peer_read"},
          Row{Collective::gather, "peer_read"}}) {
        CAPTURE(graph::name(row.collective), row.name);
        CHECK(price_ns(unequal, row, kBytes, 8) > 1.5 * price_ns(unequal, row, kBytes, 0));
        CHECK(price_ns(in_sockets(1, 8), row, kBytes, 0) ==
              Approx(price_ns(unequal, row, kBytes, 8)));
    }
}

TEST_CASE("plan: as many tiles as the smallest socket has ranks", "[plan][cost]") {
    constexpr std::uint64_t kBytes = 256 << 10;
    const Row row{Collective::allreduce, "tiled_hierarchical"};
    // One rank combines all that the eight of its socket have.
    CHECK(price_ns(in_sockets(8, 1), row, kBytes) > 1.5 * price_ns(in_sockets(8, 8), row, kBytes));
}

} // namespace ucg::plan::test
