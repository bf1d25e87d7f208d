// The bytes that go over the links of hosts, counted in the schedules of all ranks by the two-level
// rows, against the least number: each host receives once what its ranks lack, or sends once,
// combined on the host, what other hosts need of it.
#include <algorithm>
#include <vector>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/plan/levels/rows.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;

/// Bytes that a host's ranks send to those of others, and receive from them.
struct LinkBytes {
    std::uint64_t out = 0;
    std::uint64_t in = 0;

    bool operator==(const LinkBytes&) const = default;
};

LinkBytes all_links(const std::vector<LinkBytes>& links) {
    LinkBytes sum;
    for (const LinkBytes& link : links) {
        sum.out += link.out;
        sum.in += link.in;
    }
    return sum;
}

/// The bytes over each host's link; if `algorithm` is empty the planner chooses.
std::vector<LinkBytes> links_of(const Facts& facts, const Case& sample,
                                std::string_view algorithm = "two_level") {
    const topo::Placement& placement = facts.placement;
    std::vector<LinkBytes> links(placement.host_count());
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        const auto schedule = plan(facts, request_of(sample, rank), rank, algorithm);
        REQUIRE(schedule.ok());
        for (const graph::Op& op : graph::unroll(*schedule).ops) {
            if (op.kind == graph::OpKind::send && !placement.same_host(rank, op.peer)) {
                links[placement.host(rank)].out += op.source.length;
                links[placement.host(op.peer)].in += op.source.length;
            }
        }
    }
    return links;
}

/// The bytes of all blocks that belong to ranks on other hosts than this one.
std::uint64_t blocks_elsewhere(const topo::Placement& placement, const Case& sample,
                               std::uint32_t host) {
    const graph::Request request = request_of(sample, 0);
    std::uint64_t bytes = 0;
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        const std::uint64_t block = request.receive.bytes.empty()
                                        ? sample.bytes
                                        : request.receive.bytes[static_cast<std::size_t>(rank)];
        bytes += placement.host(rank) == host ? 0 : block;
    }
    return bytes;
}

constexpr std::uint64_t kLong = 1 << 20;

/// The bytes that a host must send and receive at least, as far as they do not depend on the way
/// that the other hosts take. Towards a root, and between all hosts, only one of the two figures is
/// independent of it.
LinkBytes least(const topo::Placement& placement, const Case& sample, std::uint32_t host) {
    const bool of_root = placement.host(sample.root) == host;
    const std::uint64_t own = placement.ranks_on(host).size() * sample.bytes;
    switch (sample.collective) {
    case Collective::bcast: return {0, of_root ? 0 : sample.bytes};
    case Collective::reduce: return {of_root ? 0 : sample.bytes, 0};
    case Collective::gather: return {of_root ? 0 : own, 0};
    case Collective::scatter: return {0, of_root ? 0 : own};
    case Collective::allgather:
    case Collective::allgatherv: return {0, blocks_elsewhere(placement, sample, host)};
    case Collective::alltoall: {
        const std::uint64_t all =
            placement.ranks_on(host).size() * blocks_elsewhere(placement, sample, host);
        return {all, all};
    }
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block: return {blocks_elsewhere(placement, sample, host), 0};
    default: return {}; // These have no such bound, or check_allreduce() and check_scan() have it.
    }
}

/// How many messages go from each host to each other host.
std::vector<std::uint64_t> messages_between_hosts(const Facts& facts, const Case& sample) {
    const topo::Placement& placement = facts.placement;
    const std::size_t hosts = placement.host_count();
    std::vector<std::uint64_t> messages(hosts * hosts);
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        const auto schedule = plan(facts, request_of(sample, rank), rank, "two_level");
        REQUIRE(schedule.ok());
        for (const graph::Op& op : graph::unroll(*schedule).ops) {
            if (op.kind == graph::OpKind::send && !placement.same_host(rank, op.peer)) {
                ++messages[placement.host(rank) * hosts + placement.host(op.peer)];
            }
        }
    }
    return messages;
}

/// Everything that is sent is also received. So where each host sends, or receives, no more than it
/// must, all links together carry the least.
void check_links(const Facts& facts, const Case& sample) {
    const std::vector<LinkBytes> links = links_of(facts, sample);
    std::vector<LinkBytes> must;
    for (std::uint32_t host = 0; host < facts.placement.host_count(); ++host) {
        must.push_back(least(facts.placement, sample, host));
        CHECK(links[host].out >= must.back().out);
        CHECK(links[host].in >= must.back().in);
    }
    const std::uint64_t least = std::max(all_links(must).out, all_links(must).in);
    if (sample.collective == Collective::gather && sample.bytes < kLong) {
        // Short blocks may go up a tree of the leaders.
        const auto hosts = static_cast<unsigned>(facts.placement.host_count());
        CHECK(all_links(links).out <= least * cost::ceil_log(2, hosts));
    } else {
        CHECK(all_links(links).out == least);
    }
}

/// On h hosts, (h - 1) / h of the vector must leave each host and enter it, twice; parts that are
/// cut at elements differ by one element at most. Few bytes may go in fewer steps, with at most one
/// vector to each other host.
void check_allreduce(const Facts& facts, const Case& sample, bool long_vector) {
    const std::uint64_t hosts = facts.placement.host_count();
    const std::uint64_t least = 2 * (hosts - 1) * sample.bytes;
    const std::uint64_t sum = all_links(links_of(facts, sample)).out;
    CHECK(sum >= least);
    CHECK(sum <= (long_vector ? least : hosts * (hosts - 1) * sample.bytes));
}

/// One vector must go from each host to the next. In doubling steps each host receives one vector
/// for each step; long vectors go by another row, along the chain.
void check_scan(const Facts& facts, const Case& sample, bool long_vector) {
    const std::uint64_t hosts = facts.placement.host_count();
    const std::uint64_t least = (hosts - 1) * sample.bytes;
    const std::uint64_t sum = all_links(links_of(facts, sample)).out;
    CHECK(sum >= least);
    CHECK(sum <= least * cost::ceil_log(2, static_cast<unsigned>(hosts)));
    if (long_vector) {
        CHECK(all_links(links_of(facts, sample, "")).out == least);
    }
}

constexpr std::uint64_t kStaging = 1 << 20;
constexpr std::uint64_t kFlagSlots = 8 << 10;

void check_row(const Facts& facts, Collective collective, std::uint64_t bytes, Rank root) {
    const Case sample{collective, facts.placement.rank_count(), root, bytes, 8};
    INFO(facts.placement.host_count() << " hosts: " << describe(sample));
    if (!find_algorithm(collective, "two_level")->eligible(facts, request_of(sample, 0))) {
        return;
    }
    if (collective == Collective::allreduce) {
        check_allreduce(facts, sample, bytes == kLong);
    } else if (collective == Collective::scan || collective == Collective::exscan) {
        check_scan(facts, sample, bytes == kLong);
    } else {
        check_links(facts, sample);
    }
}

} // namespace

TEST_CASE("plan: rows of two levels move between hosts what they must", "[plan][traffic]") {
    const cost::Profile profile = cost::default_profile();
    for (const RankLayout layout : {RankLayout::pairs, RankLayout::uneven, RankLayout::cyclic}) {
        for (const Rank count : {5, 8, 13, 24}) {
            const topo::Placement placement = place(layout, count);
            const Facts facts{placement, profile,
                              shared_memory(placement, profile, kStaging, false, kFlagSlots)};
            for (const Algorithm& row : algorithms()) {
                if (row.name == "two_level" &&
                    // neighbors_test.cpp has this one.
                    row.collective != Collective::neighbor_alltoallv) {
                    check_row(facts, row.collective, 64, 0);
                    check_row(facts, row.collective, kLong, 0);
                    check_row(facts, row.collective, kLong,
                              graph::rooted(row.collective) ? count - 1 : 0);
                }
            }
        }
    }
}

TEST_CASE("plan: a two-level alltoall has one message for each pair of hosts", "[plan][traffic]") {
    const cost::Profile profile = cost::default_profile();
    for (const RankLayout layout : {RankLayout::pairs, RankLayout::uneven, RankLayout::cyclic}) {
        for (const Rank count : {5, 8, 13, 24}) {
            const topo::Placement placement = place(layout, count);
            const Facts facts{placement, profile,
                              shared_memory(placement, profile, kStaging, false, kFlagSlots)};
            const Case sample{Collective::alltoall, count, 0, 64, 8};
            if (!kAlltoallTwoLevel.eligible(facts, request_of(sample, 0))) {
                continue;
            }
            const std::vector<std::uint64_t> messages = messages_between_hosts(facts, sample);
            for (std::size_t i = 0; i < messages.size(); ++i) {
                INFO(placement.host_count() << " hosts, " << count << " ranks, pair " << i);
                CHECK(messages[i] == (i % (placement.host_count() + 1) == 0 ? 0 : 1));
            }
        }
    }
}

} // namespace ucg::plan::test
