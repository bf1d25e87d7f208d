// Two-level scatter: the root sends each host's leader the blocks of its host, which scatters them.
// The root leads its own host.
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
    return order_ns +
           scatter_best_ns(leader_link(facts), static_cast<Rank>(facts.placement.host_count()),
                           host_bytes) +
           scatter_on_host_ns(facts, request.bytes);
}

/// Returns a slice with the blocks of each other host, and an empty one for the root's own host.
BlockMap blocks_by_host(Builder& builder, const Facts& facts, Rank own_host,
                        const BlockMap& by_rank) {
    std::vector<Slice> slices;
    for (std::uint32_t host = 0; host < facts.placement.host_count(); ++host) {
        if (static_cast<Rank>(host) == own_host) {
            slices.push_back(builder.input(0, 0));
            continue;
        }
        const BlockMap blocks = blocks_on_host(facts, host, by_rank);
        slices.push_back(packed(builder, blocks.runs(0, blocks.count())));
    }
    return BlockMap::of(std::move(slices));
}

void build_root(Builder& builder, const Facts& facts, const graph::Request& request,
                const TwoLevels& levels) {
    const BlockMap by_rank = input_blocks(builder, request);
    const auto host = static_cast<std::uint32_t>(levels.root_host());
    scatter_best(builder, levels.leaders(), leader_link(facts), levels.root_host(),
                 blocks_by_host(builder, facts, levels.root_host(), by_rank), Slice{},
                 bytes_of_other_host(facts, request));
    scatter_on_host(builder, facts, levels, blocks_on_host(facts, host, by_rank),
                    scatter_result(builder, request), request.bytes);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kScatterTwoLevel.name);
    const TwoLevels levels(facts, rank, request.root);
    if (rank == request.root) {
        build_root(builder, facts, request, levels);
        return builder.finish();
    }
    const std::uint64_t host_bytes =
        checked_multiply(static_cast<std::uint64_t>(levels.host().size()), request.bytes);
    const Slice received = levels.leads() ? builder.scratch(host_bytes) : Slice{0, host_bytes};
    if (levels.leads()) {
        scatter_best(builder, levels.leaders(), leader_link(facts), levels.root_host(),
                     BlockMap::end_to_end({}, bytes_by_host(facts, request)), received,
                     bytes_of_other_host(facts, request));
    }
    scatter_on_host(builder, facts, levels,
                    BlockMap::equal(received, levels.host().size(), request.bytes),
                    builder.output(0, request.bytes), request.bytes);
    return builder.finish();
}

} // namespace

const Algorithm kScatterTwoLevel = {
    .name = "two_level",
    .collective = graph::Collective::scatter,
    .summary = "from the root to the leaders, then on each host",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kTwoLevelNeeds,
};

} // namespace ucg::plan
