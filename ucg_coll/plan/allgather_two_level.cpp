// Two-level allgather: on each host the leader gathers its ranks' blocks, the leaders exchange the
// blocks of whole hosts, and each host's ranks get the result by a broadcast. Where the ranks of a
// host do not follow one another, leaders work in a buffer ordered by host.
#include "ucg_coll/plan/block_best.hpp"
#include "ucg_coll/plan/rows.hpp"
#include "ucg_coll/plan/two_level.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

bool eligible(const Facts& facts, const graph::Request& request) {
    static_cast<void>(request);
    return has_two_levels(facts);
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link host = host_link(facts);
    const Rank host_ranks = facts.placement.ranks_per_host_max();
    const std::uint64_t total = all_blocks(request);
    const double order_ns = facts.placement.hosts_are_contiguous() ? 0 : host.copy_ns(total);
    return gather_best_ns(host, host_ranks, request.bytes) +
           allgather_best_ns(leader_link(facts), static_cast<Rank>(facts.placement.host_count()),
                             total, bytes_by_host_max(facts, request.bytes)) +
           order_ns + bcast_best_ns(host, host_ranks, total);
}

/// Where the leader of `host` collects its ranks' blocks: in its place among all hosts' blocks.
BlockMap blocks_within(Slice host_blocks, std::uint64_t block_bytes, const Team& host) {
    return BlockMap::equal(host_blocks, host.size(), block_bytes);
}

/// From the order of hosts to that of ranks.
void put_in_rank_order(Builder& builder, const Facts& facts, const BlockMap& by_host,
                       const BlockMap& by_rank) {
    for (std::uint32_t host = 0; host < facts.placement.host_count(); ++host) {
        const BlockMap places = blocks_on_host(facts, host, by_rank);
        unpack(builder, by_host.block(static_cast<Rank>(host)), places.runs(0, places.count()));
    }
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllgatherTwoLevel.name);
    const TwoLevels levels(facts, rank);
    const Slice result = builder.output(0, all_blocks(request));
    const BlockMap by_rank = output_blocks(builder, request);
    const Slice own = own_contribution(builder, request);
    const Link link = host_link(facts);
    if (!levels.leads()) {
        const std::vector<std::uint64_t> lengths(static_cast<std::size_t>(levels.host().size()),
                                                 request.bytes);
        gather_best(builder, levels.host(), link, levels.host_leader(), own,
                    BlockMap::end_to_end({}, lengths), request.bytes);
    } else {
        const bool in_order = facts.placement.hosts_are_contiguous();
        const BlockMap by_host =
            BlockMap::end_to_end(in_order ? result : builder.scratch(result.length),
                                 bytes_by_host(facts, request.bytes));
        const Slice ours = by_host.block(levels.leaders().index());
        gather_best(builder, levels.host(), link, levels.host_leader(), own,
                    blocks_within(ours, request.bytes, levels.host()), request.bytes);
        allgather_best(builder, levels.leaders(), leader_link(facts), ours, by_host);
        if (!in_order) {
            put_in_rank_order(builder, facts, by_host, by_rank);
        }
    }
    bcast_best(builder, levels.host(), link, levels.host_leader(), result);
    return builder.finish();
}

} // namespace

const Algorithm kAllgatherTwoLevel = {
    .name = "two_level",
    .collective = graph::Collective::allgather,
    .summary = "gather on each host, allgather among leaders, broadcast on each host",
    .eligible = eligible,
    .cost_ns = cost_ns,
    .build = build,
    .needs = kTwoLevelNeeds,
};

} // namespace ucg::plan
