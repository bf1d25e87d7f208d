#include "ucg_coll/plan/levels/block_best.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace ucg::plan {

using graph::Builder;
using graph::Slice;

static bool is_power_of_two(Rank count) {
    return std::has_single_bit(static_cast<std::uint32_t>(count));
}

void allgather_best(Builder& builder, const Team& team, const Link& link, Slice own,
                    const BlockMap& target) {
    const Rank count = team.size();
    const std::uint64_t total = target.run_bytes(0, count);
    const std::uint64_t longest = target.bytes_max();
    if (allgather_ring_ns(link, count, longest) < allgather_bruck_ns(link, count, total, longest)) {
        allgather_ring(builder, team, own, target);
    } else if (is_power_of_two(count)) { // The same rounds, and nothing wraps around.
        allgather_recursive_doubling(builder, team, own, target);
    } else {
        allgather_bruck(builder, team, own, target);
    }
}

double allgather_best_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest) {
    return std::min(allgather_ring_ns(link, count, longest),
                    allgather_bruck_ns(link, count, total, longest));
}

void gather_best(Builder& builder, const Team& team, const Link& link, Rank root, Slice own,
                 const BlockMap& target, std::uint64_t block_bytes) {
    if (link.root_blocks_ns(team.size(), block_bytes, Root::receives) <=
        binomial_blocks_ns(link, team.size(), block_bytes, Root::receives)) {
        gather_linear(builder, team, root, own, target);
    } else {
        gather_binomial(builder, team, root, own, target);
    }
}

double gather_best_ns(const Link& link, Rank count, std::uint64_t block_bytes) {
    return std::min(link.root_blocks_ns(count, block_bytes, Root::receives),
                    binomial_blocks_ns(link, count, block_bytes, Root::receives));
}

void scatter_best(Builder& builder, const Team& team, const Link& link, Rank root,
                  const BlockMap& source, Slice own, std::uint64_t block_bytes) {
    if (link.root_blocks_ns(team.size(), block_bytes, Root::sends) <=
        binomial_blocks_ns(link, team.size(), block_bytes, Root::sends)) {
        scatter_linear(builder, team, root, source, own);
    } else {
        scatter_binomial(builder, team, root, source, own);
    }
}

double scatter_best_ns(const Link& link, Rank count, std::uint64_t block_bytes) {
    return std::min(link.root_blocks_ns(count, block_bytes, Root::sends),
                    binomial_blocks_ns(link, count, block_bytes, Root::sends));
}

namespace {

/// What a reduce-scatter among a team would cost by each piece.
struct ReduceScatterPrices {
    ReduceScatterPrices(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest,
                        Operator op)
        : pairwise(reduce_scatter_pairwise_ns(link, count, longest)) {
        if (op.commutative) {
            halving = reduce_scatter_recursive_halving_ns(link, count, total, longest);
            dissemination = reduce_scatter_n_way_dissemination_ns(link, count, total, longest);
            ring = reduce_scatter_ring_ns(link, count, longest);
        }
    }
    double least() const { return std::min({halving, dissemination, ring, pairwise}); }

    double halving = std::numeric_limits<double>::infinity();
    double dissemination = halving;
    double ring = halving;
    double pairwise;
};

} // namespace

void reduce_scatter_best(Builder& builder, const Team& team, const Link& link,
                         const BlockMap& source, Slice target, Operator op) {
    const Rank count = team.size();
    const std::uint64_t total = source.run_bytes(0, count);
    const std::uint64_t longest = source.bytes_max();
    const ReduceScatterPrices prices(link, count, total, longest, op);
    const double least = prices.least();
    if (prices.halving == least) {
        reduce_scatter_recursive_halving(builder, team, source, target, total);
    } else if (prices.dissemination == least) {
        reduce_scatter_n_way_dissemination(
            builder, team,
            reduce_scatter_dissemination_rounds(link, count, total, longest).schedule(), source,
            target);
    } else if (prices.ring == least) {
        reduce_scatter_ring(builder, team, source, target);
    } else {
        reduce_scatter_pairwise(builder, team, source, target);
    }
}

double reduce_scatter_best_ns(const Link& link, Rank count, std::uint64_t total,
                              std::uint64_t longest, Operator op) {
    return ReduceScatterPrices(link, count, total, longest, op).least();
}

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

} // namespace ucg::plan
