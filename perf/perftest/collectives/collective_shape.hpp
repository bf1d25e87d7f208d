// What each collective takes and gives: lengths of its buffers, and how many bytes it must move.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ucg/ucg.h"
#include "ucg_coll/base/types.hpp"

namespace ucg::perftest {

/// How a buffer is made up: of blocks of `count` elements.
enum class Blocks {
    none,
    one,       ///< On every rank.
    two,       ///< The same, one for each neighbour in a ring.
    each,      ///< One for each rank, on every rank.
    root_one,  ///< The same, on the root alone.
    root_each, ///< The same, on the root alone.
};

struct CollectiveShape {
    ucg_coll_type_t type;
    std::string_view name; ///< ucg_coll_type_string()
    Blocks send;
    Blocks receive;
    bool reduces;
    bool rooted;
    bool vectors; ///< The v-variants and reduce_scatter: counts and displacements.
};

/// Of every ucg_coll_type_t, by its value.
const std::array<CollectiveShape, UCG_COLL_LAST>& collective_shapes();

/// How many blocks the buffer has on a rank.
std::uint64_t block_count(Blocks blocks, Rank rank, Rank root, Rank size);

/// The bytes that NCCL's tests divide by time for the algorithm bandwidth: the whole vector, which
/// of collectives with a block for each rank is all blocks together. `bytes`: of one block.
double algorithm_bytes(const CollectiveShape& shape, Rank size, std::uint64_t bytes);

/// Bus bandwidth divided by algorithm bandwidth, as NCCL's tests define it: the part of the vector
/// that the busiest link of a ring must carry.
double bus_factor(const CollectiveShape& shape, Rank size);

/// The bytes that processors must copy or sum at least, all ranks together. A sum of two vectors
/// counts as many bytes as one vector has; that one's own block is copied, too, counts.
double least_bytes(const CollectiveShape& shape, Rank size, std::uint64_t bytes);

/// The bytes that some host must send, or receive, at least; `hosts`: that of each rank, numbered
/// from 0. What ranks of a host have in common goes out and comes in once.
double least_link_bytes(const CollectiveShape& shape, std::span<const std::size_t> hosts, Rank root,
                        std::uint64_t bytes);

} // namespace ucg::perftest
