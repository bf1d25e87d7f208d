#include "ucg_coll/plan/parts/blocks.hpp"

#include <algorithm>

#include "ucg_coll/plan/parts/steps.hpp"

namespace ucg::plan {

using graph::Builder;
using graph::Slice;

static std::vector<Rank> ranks_by_host(const topo::Placement& placement) {
    std::vector<Rank> ranks;
    if (placement.hosts_are_contiguous()) {
        return ranks;
    }
    ranks.reserve(static_cast<std::size_t>(placement.rank_count()));
    for (std::uint32_t host = 0; host < placement.host_count(); ++host) {
        const auto members = placement.ranks_on(host);
        ranks.insert(ranks.end(), members.begin(), members.end());
    }
    return ranks;
}

HostOrder::HostOrder(const Facts& facts, Rank rank)
    : members_(ranks_by_host(facts.placement)),
      team_(members_.empty()
                ? Team::whole(facts.placement.rank_count(), rank)
                : Team::of(members_,
                           static_cast<Rank>(std::find(members_.begin(), members_.end(), rank) -
                                             members_.begin()))) {}

BlockMap HostOrder::of(const BlockMap& blocks) const {
    if (members_.empty()) {
        return blocks;
    }
    std::vector<Slice> slices;
    slices.reserve(members_.size());
    for (const Rank rank : members_) {
        slices.push_back(blocks.block(rank));
    }
    return BlockMap::of(std::move(slices));
}

Link unshared_link(const Facts& facts) {
    return facts.placement.host_count() > 1 ? leader_link(facts).with_levels(facts)
                                            : host_link(facts);
}

BlockMap output_blocks(const Builder& builder, const graph::Request& request) {
    if (graph::has_block_vectors(request.collective)) {
        return BlockMap::vectors(builder.output(0, 0), request.receive);
    }
    const std::uint64_t total =
        checked_multiply(static_cast<std::uint64_t>(request.rank_count), request.bytes);
    return BlockMap::equal(builder.output(0, total), request.rank_count, request.bytes);
}

BlockMap input_blocks(const Builder& builder, const graph::Request& request) {
    if (graph::has_block_vectors(request.collective)) {
        return BlockMap::vectors(builder.input(0, 0), request.send);
    }
    const std::uint64_t total =
        checked_multiply(static_cast<std::uint64_t>(request.rank_count), request.bytes);
    return BlockMap::equal(builder.input(0, total), request.rank_count, request.bytes);
}

Slice own_contribution(const Builder& builder, const graph::Request& request) {
    const Slice place = output_blocks(builder, request).block(builder.rank());
    return request.in_place ? place : builder.input(0, place.length);
}

Slice gather_contribution(const Builder& builder, const graph::Request& request,
                          const BlockMap& target) {
    const bool in_place = request.in_place && builder.rank() == request.root;
    return in_place ? target.block(request.root) : builder.input(0, request.bytes);
}

Slice scatter_result(const Builder& builder, const graph::Request& request) {
    const bool in_place = request.in_place && builder.rank() == request.root;
    return in_place ? Slice{} : builder.output(0, request.bytes);
}

BlockMap set_aside(Builder& builder, const Team& team, const BlockMap& blocks) {
    // From the block above the rank's own around to the one below it: messages leave in this order.
    const Rank others = team.size() - 1;
    const std::vector<Slice> runs = blocks.runs(neighbour_index(team, 1), others);
    const Slice aside = builder.scratch(total_bytes(runs));
    pack(builder, runs, aside);
    std::vector<Slice> slices(static_cast<std::size_t>(team.size()));
    slices[static_cast<std::size_t>(team.index())] = blocks.block(team.index());
    std::uint64_t offset = 0;
    for (Rank distance = 1; distance <= others; ++distance) {
        const Rank index = neighbour_index(team, distance);
        const std::uint64_t length = blocks.bytes(index);
        slices[static_cast<std::size_t>(index)] = part(aside, offset, length);
        offset += length;
    }
    return BlockMap::of(std::move(slices));
}

BlockMap reduce_scatter_source(const Builder& builder, const graph::Request& request) {
    const std::uint64_t total = all_blocks(request);
    const Slice vector = request.in_place ? builder.output(0, total) : builder.input(0, total);
    if (request.collective == graph::Collective::reduce_scatter) {
        return BlockMap::end_to_end(vector, request.receive.bytes);
    }
    return BlockMap::equal(vector, request.rank_count, request.bytes);
}

Slice reduce_scatter_target(const Builder& builder, const graph::Request& request) {
    if (request.collective == graph::Collective::reduce_scatter) {
        return builder.output(0, request.receive.bytes[static_cast<std::size_t>(builder.rank())]);
    }
    return builder.output(0, request.bytes);
}

std::uint64_t longest_block(const graph::Request& request) {
    if (graph::has_block_vectors(request.collective)) {
        return *std::max_element(request.receive.bytes.begin(), request.receive.bytes.end());
    }
    return request.bytes;
}

std::uint64_t all_blocks(const graph::Request& request) {
    if (graph::has_block_vectors(request.collective)) {
        return uniform_bytes(request);
    }
    return checked_multiply(static_cast<std::uint64_t>(request.rank_count), request.bytes);
}

void reduce_to_result(Builder& builder, std::span<const Slice> operands, Slice target) {
    const bool overlaps = std::any_of(operands.begin(), operands.end(),
                                      [&](const Slice& slice) { return overlap(slice, target); });
    if (!overlaps || operands.size() == 1) {
        builder.reduce(operands, target);
        return;
    }
    const Slice result = builder.scratch(target.length);
    builder.reduce(operands, result);
    builder.copy(result, target);
}

} // namespace ucg::plan
