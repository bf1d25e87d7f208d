#include "perf/perftest/collectives/collective_shape.hpp"

#include <algorithm>

#include "ucg_coll/base/assert.hpp"

namespace ucg::perftest {

const std::array<CollectiveShape, UCG_COLL_LAST>& collective_shapes() {
    using enum BlocksPerRank;
    static constexpr std::array<CollectiveShape, UCG_COLL_LAST> kShapes = {{
        // type, name, send, receive, reduces, rooted, vectors
        {UCG_COLL_BARRIER, "barrier", none, none, false, false, false},
        {UCG_COLL_BCAST, "bcast", none, one, false, true, false},
        {UCG_COLL_REDUCE, "reduce", one, root_one, true, true, false},
        {UCG_COLL_ALLREDUCE, "allreduce", one, one, true, false, false},
        {UCG_COLL_ALLGATHER, "allgather", one, each, false, false, false},
        {UCG_COLL_ALLGATHERV, "allgatherv", one, each, false, false, true},
        {UCG_COLL_ALLTOALL, "alltoall", each, each, false, false, false},
        {UCG_COLL_ALLTOALLV, "alltoallv", each, each, false, false, true},
        {UCG_COLL_GATHER, "gather", one, root_each, false, true, false},
        {UCG_COLL_GATHERV, "gatherv", one, root_each, false, true, true},
        {UCG_COLL_SCATTER, "scatter", root_each, one, false, true, false},
        {UCG_COLL_SCATTERV, "scatterv", root_each, one, false, true, true},
        {UCG_COLL_REDUCE_SCATTER, "reduce_scatter", each, one, true, false, true},
        {UCG_COLL_REDUCE_SCATTER_BLOCK, "reduce_scatter_block", each, one, true, false, false},
        {UCG_COLL_SCAN, "scan", one, one, true, false, false},
        {UCG_COLL_EXSCAN, "exscan", one, one, true, false, false},
        {UCG_COLL_NEIGHBOR_ALLTOALLV, "neighbor_alltoallv", two, two, false, false, true},
    }};
    return kShapes;
}

std::uint64_t block_count(BlocksPerRank blocks, Rank rank, Rank root, Rank size) {
    const bool has_some = rank == root;
    switch (blocks) {
    case BlocksPerRank::none: return 0;
    case BlocksPerRank::one: return 1;
    case BlocksPerRank::two: return 2;
    case BlocksPerRank::each: return static_cast<std::uint64_t>(size);
    case BlocksPerRank::root_one: return has_some ? 1 : 0;
    case BlocksPerRank::root_each: return has_some ? static_cast<std::uint64_t>(size) : 0;
    }
    return 0;
}

double algorithm_bytes(const CollectiveShape& shape, Rank size, std::uint64_t bytes) {
    const auto has_each = [](BlocksPerRank blocks) {
        return blocks == BlocksPerRank::each || blocks == BlocksPerRank::root_each;
    };
    if (shape.send == BlocksPerRank::two) {
        return 2 * static_cast<double>(bytes);
    }
    const bool of_blocks = has_each(shape.send) || has_each(shape.receive);
    return static_cast<double>(bytes) * (of_blocks ? size : 1);
}

double bus_factor(const CollectiveShape& shape, Rank size) {
    const double others = static_cast<double>(size - 1) / size;
    switch (shape.type) {
    case UCG_COLL_ALLREDUCE: return 2 * others;
    case UCG_COLL_BARRIER:
    case UCG_COLL_BCAST:
    case UCG_COLL_REDUCE:
    case UCG_COLL_SCAN:
    case UCG_COLL_EXSCAN:
    case UCG_COLL_NEIGHBOR_ALLTOALLV: return 1;
    default: return others;
    }
}

double least_bytes(const CollectiveShape& shape, Rank size, std::uint64_t bytes) {
    const auto block = static_cast<double>(bytes);
    const auto ranks = static_cast<double>(size);
    switch (shape.type) {
    case UCG_COLL_BARRIER: return 0;
    // Each rank but the root gets the vector.
    case UCG_COLL_BCAST: return (ranks - 1) * block;
    // One sum for each operand after the first; a single rank copies.
    case UCG_COLL_REDUCE: return (size > 1 ? ranks - 1 : 1) * block;
    // The sums, the last of which writes one result; each of the other ranks gets a copy of it.
    case UCG_COLL_ALLREDUCE: return (size > 1 ? 2 * (ranks - 1) : 1) * block;
    // `size` blocks of results, each of size - 1 sums.
    case UCG_COLL_REDUCE_SCATTER:
    case UCG_COLL_REDUCE_SCATTER_BLOCK: return (size > 1 ? ranks - 1 : 1) * ranks * block;
    // Rank 0 copies; each further rank sums once.
    case UCG_COLL_SCAN: return ranks * block;
    case UCG_COLL_EXSCAN: return (ranks - 1) * block;
    case UCG_COLL_GATHER:
    case UCG_COLL_GATHERV:
    case UCG_COLL_SCATTER:
    case UCG_COLL_SCATTERV: return ranks * block;
    case UCG_COLL_ALLGATHER:
    case UCG_COLL_ALLGATHERV:
    case UCG_COLL_ALLTOALL:
    case UCG_COLL_ALLTOALLV: return ranks * ranks * block;
    case UCG_COLL_NEIGHBOR_ALLTOALLV: return 2 * ranks * block;
    case UCG_COLL_LAST: break;
    }
    return 0;
}

namespace {

/// Returns the blocks of a host that has `own` of all ranks, while `others` are elsewhere.
double link_blocks(const CollectiveShape& shape, double own, double others, double hosts,
                   bool has_root) {
    switch (shape.type) {
    case UCG_COLL_BARRIER: return 0;
    // The vector enters or leaves once.
    case UCG_COLL_BCAST:
    case UCG_COLL_REDUCE:
    case UCG_COLL_SCAN:
    case UCG_COLL_EXSCAN: return 1;
    // Partial sums of all parts but the host's own, then the results of those parts.
    case UCG_COLL_ALLREDUCE: return 2 * (hosts - 1) / hosts;
    // Sums for others leave, those of others for the host's own ranks enter.
    case UCG_COLL_REDUCE_SCATTER:
    case UCG_COLL_REDUCE_SCATTER_BLOCK:
    case UCG_COLL_ALLGATHER:
    case UCG_COLL_ALLGATHERV: return std::max(own, others);
    case UCG_COLL_GATHER:
    case UCG_COLL_GATHERV:
    case UCG_COLL_SCATTER:
    case UCG_COLL_SCATTERV: return has_root ? others : own;
    case UCG_COLL_ALLTOALL:
    case UCG_COLL_ALLTOALLV: return own * others;
    // A section of a ring has two ends.
    case UCG_COLL_NEIGHBOR_ALLTOALLV: return 2;
    case UCG_COLL_LAST: break;
    }
    return 0;
}

} // namespace

double least_link_bytes(const CollectiveShape& shape, std::span<const std::size_t> hosts, Rank root,
                        std::uint64_t bytes) {
    const std::size_t count = *std::ranges::max_element(hosts) + 1;
    double most = 0;
    for (std::size_t host = 0; host < count; ++host) {
        const auto own = static_cast<double>(std::ranges::count(hosts, host));
        const double others = static_cast<double>(hosts.size()) - own;
        most = std::max(most, link_blocks(shape, own, others, static_cast<double>(count),
                                          hosts[static_cast<std::size_t>(root)] == host));
    }
    return most * static_cast<double>(bytes);
}

} // namespace ucg::perftest
