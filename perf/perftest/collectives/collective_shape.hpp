// The lengths of each collective's buffers, and how many bytes it must move.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ucg/ucg.h"
#include "ucg_coll/base/types.hpp"

namespace ucg::perftest {

/// The number of blocks of `count` elements in a buffer.
enum class BlocksPerRank {
    none,
    one,       ///< One block on every rank.
    two,       ///< Two blocks on every rank, one for each neighbour in a ring.
    each,      ///< One block for each rank, on every rank.
    root_one,  ///< One block on the root alone.
    root_each, ///< One block for each rank, on the root alone.
};

struct CollectiveShape {
    ucg_coll_type_t type;
    std::string_view name; ///< ucg_coll_type_string()
    BlocksPerRank send;
    BlocksPerRank receive;
    bool reduces;
    bool rooted;
    bool vectors; ///< Whether it has vectors: v-variants and reduce_scatter.
};

/// Returns the shape of every ucg_coll_type_t, indexed by its value.
const std::array<CollectiveShape, UCG_COLL_LAST>& collective_shapes();

/// Returns how many blocks the buffer has on a rank.
std::uint64_t block_count(BlocksPerRank blocks, Rank rank, Rank root, Rank size);

/// Returns the bytes that NCCL's tests divide by time for the algorithm bandwidth: the whole
/// vector, which for collectives with a block for each rank is all blocks together. `bytes` is the
/// length of one block.
double algorithm_bytes(const CollectiveShape& shape, Rank size, std::uint64_t bytes);

/// Returns bus bandwidth divided by algorithm bandwidth, as NCCL's tests define it: the part of the
/// vector that the busiest link of a ring must carry.
double bus_factor(const CollectiveShape& shape, Rank size);

/// Returns the least number of bytes that processors must copy or sum, all ranks together. A sum of
/// two vectors counts as many bytes as one vector has. Copying a rank's own block counts, too.
double least_bytes(const CollectiveShape& shape, Rank size, std::uint64_t bytes);

/// Returns the least number of bytes that some host must send or receive. `hosts` is the host of
/// each rank, numbered from 0. What ranks of a host have in common leaves and enters it once.
double least_link_bytes(const CollectiveShape& shape, std::span<const std::size_t> hosts, Rank root,
                        std::uint64_t bytes);

} // namespace ucg::perftest
