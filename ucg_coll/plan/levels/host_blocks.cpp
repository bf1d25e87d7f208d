#include "ucg_coll/plan/levels/host_blocks.hpp"

#include <algorithm>

namespace ucg::plan {

using graph::Slice;

BlockMap blocks_on_host(const Facts& facts, std::uint32_t host, const BlockMap& blocks) {
    std::vector<Slice> slices;
    for (const Rank rank : facts.placement.ranks_on(host)) {
        slices.push_back(blocks.block(rank));
    }
    return BlockMap::of(std::move(slices));
}

std::vector<std::uint64_t> bytes_on_host(const Facts& facts, std::uint32_t host,
                                         const graph::Request& request) {
    std::vector<std::uint64_t> bytes;
    for (const Rank rank : facts.placement.ranks_on(host)) {
        bytes.push_back(graph::has_block_vectors(request.collective)
                            ? request.receive.bytes[static_cast<std::size_t>(rank)]
                            : request.bytes);
    }
    return bytes;
}

std::vector<std::uint64_t> bytes_by_host(const Facts& facts, const graph::Request& request) {
    std::vector<std::uint64_t> bytes;
    for (std::uint32_t host = 0; host < facts.placement.host_count(); ++host) {
        std::uint64_t sum = 0;
        for (const std::uint64_t block : bytes_on_host(facts, host, request)) {
            sum = checked_add(sum, block);
        }
        bytes.push_back(sum);
    }
    return bytes;
}

std::uint64_t bytes_by_host_max(const Facts& facts, const graph::Request& request) {
    if (graph::has_block_vectors(request.collective)) {
        const std::vector<std::uint64_t> bytes = bytes_by_host(facts, request);
        return *std::max_element(bytes.begin(), bytes.end());
    }
    return checked_multiply(static_cast<std::uint64_t>(facts.placement.ranks_per_host_max()),
                            request.bytes);
}

std::uint64_t bytes_of_other_host(const Facts& facts, const graph::Request& request) {
    const topo::Placement& placement = facts.placement;
    const std::size_t with_root = placement.ranks_on(placement.host(request.root)).size();
    const std::uint64_t far_ranks = static_cast<std::uint64_t>(request.rank_count) - with_root;
    return divide_up(checked_multiply(far_ranks, request.bytes),
                     std::uint64_t{placement.host_count()} - 1);
}

} // namespace ucg::plan
