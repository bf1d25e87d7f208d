// Two-level reduce-scatter: on each host to its leader, among the leaders by the blocks of whole
// hosts, then from each leader to its host's ranks.
#include "ucg_coll/plan/levels/on_host.hpp"
#include "ucg_coll/plan/levels/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Returns the length of an element if ranks may publish their vectors, else 0. In a reduce_scatter
/// some ranks may be in place and others not, so that nobody knows where others' vectors are.
std::uint64_t published_elements(const graph::Request& request) {
    return graph::has_block_vectors(request.collective) ? 0 : request.element_bytes;
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const std::uint64_t total = all_blocks(request);
    const Operator op = operator_of(request);
    const double order_ns =
        facts.placement.hosts_are_contiguous() ? 0 : host_link(facts).copy_ns(total);
    return reduce_on_host_ns(facts, 0, total, op, published_elements(request)) + order_ns +
           reduce_scatter_best_ns(leader_link(facts),
                                  static_cast<Rank>(facts.placement.host_count()), total,
                                  bytes_by_host_max(facts, request), op) +
           scatter_on_host_ns(facts, longest_block(request));
}

/// Returns the vector with its blocks in the order of hosts.
Slice ordered_by_host(Builder& builder, const Facts& facts, const BlockMap& by_rank) {
    std::vector<Slice> blocks;
    for (std::uint32_t host = 0; host < facts.placement.host_count(); ++host) {
        const BlockMap own = blocks_on_host(facts, host, by_rank);
        for (const Slice& run : own.runs(0, own.count())) {
            append_slice(blocks, run);
        }
    }
    return packed(builder, blocks);
}

/// Combines all blocks on this rank's host. Returns the result at the leader.
BlockMap combined_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels,
                          const graph::Request& request, Operator op) {
    const BlockMap source = reduce_scatter_source(builder, request);
    const std::uint64_t total = source.run_bytes(0, source.count());
    Slice vector = source.block(0);
    vector.length = total;
    const Slice combined =
        reduce_on_host(builder, facts, levels, vector, op, {vector, published_elements(request)});
    std::vector<std::uint64_t> bytes;
    bytes.reserve(static_cast<std::size_t>(source.count()));
    for (Rank rank = 0; rank < source.count(); ++rank) {
        bytes.push_back(source.bytes(rank));
    }
    return BlockMap::end_to_end(combined, bytes);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceScatterTwoLevel.name);
    const TwoLevels levels(facts, rank);
    const Operator op = operator_of(request);
    const BlockMap combined = combined_on_host(builder, facts, levels, request, op);
    const Slice target = reduce_scatter_target(builder, request);
    const std::uint32_t host = facts.placement.host(rank);
    const std::vector<std::uint64_t> bytes = bytes_by_host(facts, request);
    Slice ours{0, bytes[host]};
    if (levels.leads()) {
        ours = levels.host().size() > 1 ? builder.scratch(ours.length) : target;
        const Slice vector = ordered_by_host(builder, facts, combined);
        reduce_scatter_best(builder, levels.leaders(), leader_link(facts),
                            BlockMap::end_to_end(vector, bytes), ours, op);
    }
    scatter_on_host(builder, facts, levels,
                    BlockMap::end_to_end(ours, bytes_on_host(facts, host, request)),
                    levels.host().size() > 1 ? target : Slice{}, longest_block(request));
    return builder.finish();
}

template <graph::Collective collective>
constexpr Algorithm row() {
    return {
        .name = "two_level",
        .collective = collective,
        .summary = "reduce on each host, reduce-scatter among leaders, scatter on each host",
        .cost_ns = cost_ns,
        .build = build,
        .needs = kTwoLevelReductionNeeds,
    };
}

} // namespace

const Algorithm kReduceScatterTwoLevel = row<graph::Collective::reduce_scatter>();
const Algorithm kReduceScatterBlockTwoLevel = row<graph::Collective::reduce_scatter_block>();

} // namespace ucg::plan
