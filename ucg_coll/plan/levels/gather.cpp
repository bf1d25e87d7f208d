// Two-level gather: on each host a leader gathers its ranks' blocks, the root gathers those of
// whole hosts. The root leads its own host, whose blocks go to their places directly.
#include "ucg_coll/plan/levels/on_host.hpp"
#include "ucg_coll/plan/levels/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const std::uint64_t host_bytes = bytes_of_other_host(facts, request);
    const double order_ns =
        facts.placement.hosts_are_contiguous() ? 0 : host_link(facts).copy_ns(all_blocks(request));
    return gather_on_host_ns(facts, request.bytes) + order_ns +
           gather_best_ns(leader_link(facts), static_cast<Rank>(facts.placement.host_count()),
                          host_bytes);
}

/// Where the root receives the blocks of each other host, by host.
struct Landing {
    std::vector<Slice> by_host;
    std::vector<std::vector<Slice>> places; ///< Where blocks are copied afterwards.
};

Landing landing_of_hosts(Builder& builder, const Facts& facts, Rank own_host,
                         const BlockMap& by_rank) {
    Landing landing;
    for (std::uint32_t host = 0; host < facts.placement.host_count(); ++host) {
        const BlockMap blocks = blocks_on_host(facts, host, by_rank);
        std::vector<Slice> places;
        if (static_cast<Rank>(host) != own_host) {
            places = blocks.runs(0, blocks.count());
        }
        landing.by_host.push_back(landing_place(builder, places));
        landing.places.push_back(std::move(places));
    }
    return landing;
}

void build_root(Builder& builder, const Facts& facts, const graph::Request& request,
                const TwoLevels& levels) {
    const BlockMap by_rank = output_blocks(builder, request);
    const auto host = static_cast<std::uint32_t>(levels.root_host());
    const Landing landing = landing_of_hosts(builder, facts, levels.root_host(), by_rank);
    const BlockMap by_host = BlockMap::of(landing.by_host);
    gather_on_host(builder, facts, levels, gather_contribution(builder, request, by_rank),
                   blocks_on_host(facts, host, by_rank), request.bytes);
    gather_best(builder, levels.leaders(), leader_link(facts), levels.root_host(),
                by_host.block(levels.root_host()), by_host, bytes_of_other_host(facts, request));
    for (std::size_t i = 0; i < landing.places.size(); ++i) {
        unpack(builder, landing.by_host[i], landing.places[i]);
    }
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kGatherTwoLevel.name);
    const TwoLevels levels(facts, rank, request.root);
    if (rank == request.root) {
        build_root(builder, facts, request, levels);
        return builder.finish();
    }
    const std::uint64_t host_bytes =
        checked_multiply(static_cast<std::uint64_t>(levels.host().size()), request.bytes);
    const Slice collected = levels.leads() ? builder.scratch(host_bytes) : Slice{0, host_bytes};
    gather_on_host(builder, facts, levels, builder.input(0, request.bytes),
                   BlockMap::equal(collected, levels.host().size(), request.bytes), request.bytes);
    if (levels.leads()) {
        gather_best(builder, levels.leaders(), leader_link(facts), levels.root_host(), collected,
                    BlockMap::end_to_end({}, bytes_by_host(facts, request)),
                    bytes_of_other_host(facts, request));
    }
    return builder.finish();
}

} // namespace

const Algorithm kGatherTwoLevel = {
    .name = "two_level",
    .collective = graph::Collective::gather,
    .summary = "gather on each host, then from the leaders",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kTwoLevelNeeds,
};

} // namespace ucg::plan
