#include <algorithm>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/plan/messages/block_best.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::OpKind;

/// The bytes that one rank sends and receives.
struct Bytes {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
};

Bytes bytes_of(const Facts& facts, const Case& sample, Rank rank, std::string_view algorithm) {
    const auto schedule = plan(facts, request_of(sample, rank), rank, algorithm);
    REQUIRE(schedule.ok());
    Bytes bytes;
    const graph::Schedule all = graph::unroll(*schedule);
    for (const graph::Op& op : all.ops) {
        bytes.sent += op.kind == OpKind::send ? op.source.length : 0;
        bytes.received += op.kind == OpKind::recv ? op.target.length : 0;
    }
    return bytes;
}

double price_ns(Rank hosts, Collective collective, std::uint64_t bytes) {
    const topo::Placement placement = topo::Placement::regular(hosts, 1);
    const Facts facts{placement, cost::default_profile()};
    const Case sample{collective, hosts, 0, bytes, 8, false, true};
    return choose(facts, request_of(sample, 0)).cost_ns(facts, request_of(sample, 0));
}

} // namespace

TEST_CASE("plan: an allreduce by blocks sends less than two vectors, whatever the number of ranks",
          "[plan][blocks]") {
    constexpr std::uint64_t kBytes = 64 << 10;
    for (Rank count = 2; count <= 33; ++count) {
        const topo::Placement placement = place(RankLayout::single, count);
        const Facts facts{placement, cost::default_profile()};
        const Case sample{Collective::allreduce, count, 0, kBytes, 8, false, true};
        for (Rank rank = 0; rank < count; ++rank) {
            INFO(count << " ranks, rank " << rank);
            const Bytes bytes = bytes_of(facts, sample, rank, "reduce_scatter_allgather");
            CHECK(bytes.sent < 2 * kBytes);
            CHECK(bytes.received < 2 * kBytes);
        }
    }
}

TEST_CASE("plan: a broadcast by blocks brings each byte once to each rank", "[plan][blocks]") {
    // These prices lead to rounds of pairs, to rounds of eight, and to a ring.
    for (const Prices prices : kPrices) {
        const cost::Profile profile = profile_for(prices);
        for (Rank count = 2; count <= 33; ++count) {
            for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{64} << 10}) {
                const topo::Placement placement = place(RankLayout::single, count);
                const Facts facts{placement, profile};
                const Case sample{Collective::bcast, count, count / 2, bytes, 8, false, true};
                for (Rank rank = 0; rank < count; ++rank) {
                    INFO(count << " ranks, rank " << rank << ", " << bytes << " bytes");
                    CHECK(bytes_of(facts, sample, rank, "scatter_allgather").received ==
                          (rank == sample.root ? 0 : bytes));
                }
            }
        }
    }
}

TEST_CASE("plan: one host less than a power of two costs hardly more", "[plan][blocks]") {
    for (const Rank hosts : {16, 32, 64}) {
        for (std::uint64_t bytes = 16 << 10; bytes <= 1 << 20; bytes *= 4) {
            INFO(hosts << " hosts, " << bytes << " bytes");
            CHECK(price_ns(hosts - 1, Collective::allreduce, bytes) <=
                  1.1 * price_ns(hosts, Collective::allreduce, bytes));
            CHECK(price_ns(hosts - 1, Collective::bcast, bytes) <=
                  1.1 * price_ns(hosts, Collective::bcast, bytes));
        }
    }
}

TEST_CASE("plan: an allreduce costs no more than a reduce-scatter and an allgather",
          "[plan][blocks]") {
    const topo::Placement placement = topo::Placement::regular(31, 1);
    const Facts facts{placement, cost::default_profile()};
    const Link link = leader_link(facts);
    const Operator op = {8, true};
    for (std::uint64_t bytes = 8; bytes <= 16 << 20; bytes *= 8) {
        const std::uint64_t block = BlockMap::cut_bytes(bytes, 31, 8);
        INFO(bytes << " bytes");
        CHECK(price_ns(31, Collective::allreduce, bytes) <=
              reduce_scatter_best_ns(link, 31, bytes, block, op) +
                  allgather_best_ns(link, 31, bytes, block));
    }
}

} // namespace ucg::plan::test
