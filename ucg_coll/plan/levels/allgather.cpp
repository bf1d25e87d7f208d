// Two-level allgather: on each host the leader gathers its ranks' blocks, the leaders exchange the
// blocks of whole hosts, and each host's ranks get the result by a broadcast. Blocks travel in the
// order of hosts; where that is not the order of ranks, each rank copies them to their places.
#include "ucg_coll/plan/levels/on_host.hpp"
#include "ucg_coll/plan/levels/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const std::uint64_t total = all_blocks(request);
    const double order_ns =
        facts.placement.hosts_are_contiguous() ? 0 : host_link(facts).copy_ns(total);
    return gather_on_host_ns(facts, longest_block(request)) +
           allgather_best_ns(leader_link(facts), static_cast<Rank>(facts.placement.host_count()),
                             total, bytes_by_host_max(facts, request)) +
           order_ns +
           bcast_on_host_ns(facts, total, 0, used_to_gather(facts, longest_block(request)));
}

/// Returns the places of all blocks in this rank's output, in the order of hosts.
std::vector<Slice> places_by_host(const Facts& facts, const BlockMap& by_rank) {
    std::vector<Slice> places;
    for (std::uint32_t host = 0; host < facts.placement.host_count(); ++host) {
        const BlockMap blocks = blocks_on_host(facts, host, by_rank);
        for (const Slice& run : blocks.runs(0, blocks.count())) {
            append_slice(places, run);
        }
    }
    return places;
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllgatherTwoLevel.name);
    const TwoLevels levels(facts, rank);
    const std::vector<Slice> places = places_by_host(facts, output_blocks(builder, request));
    const Slice result = landing_place(builder, places);
    const BlockMap by_host = BlockMap::end_to_end(result, bytes_by_host(facts, request));
    const std::uint32_t host = facts.placement.host(rank);
    const Slice ours = by_host.block(static_cast<Rank>(host));
    gather_on_host(builder, facts, levels, own_contribution(builder, request),
                   BlockMap::end_to_end(ours, bytes_on_host(facts, host, request)),
                   longest_block(request));
    if (levels.leads()) {
        allgather_best(builder, levels.leaders(), leader_link(facts), ours, by_host);
    }
    bcast_on_host(builder, facts, levels, result, {},
                  used_to_gather(facts, longest_block(request)));
    unpack(builder, result, places);
    return builder.finish();
}

template <graph::Collective collective>
constexpr Algorithm row() {
    return {
        .name = "two_level",
        .collective = collective,
        .summary = "gather on each host, allgather among leaders, broadcast on each host",
        .cost_ns = cost_ns,
        .build = build,
        .needs = kTwoLevelNeeds,
    };
}

} // namespace

const Algorithm kAllgatherTwoLevel = row<graph::Collective::allgather>();
const Algorithm kAllgathervTwoLevel = row<graph::Collective::allgatherv>();

} // namespace ucg::plan
