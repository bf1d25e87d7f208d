// What a rank's end of a group on one host takes of its node heap.
#pragma once

#include <cstdint>

#include "ucg_coll/transport/shm/shm_transport.hpp"

namespace ucg::transport {

/// Memory that a group takes on one host, in bytes.
struct ShmFootprint {
    // Of the host's first rank.
    std::uint64_t bytes_at_first = 0; ///< As soon as the group is made.
    std::uint64_t bytes_at_most = 0;  ///< When everything has been used, staging included.
    // Of all ranks of the host together, at most, as soon as the group is made and has made a
    // barrier, if they have made their heaps together.
    std::uint64_t host_bytes = 0;       ///< Pages.
    std::uint64_t host_table_bytes = 0; ///< Page tables of what the ranks then have touched.
    // By how much these grow, at least, once each pair of ranks has had a message of more than a
    // line.
    std::uint64_t pairs_bytes = 0;
    std::uint64_t pairs_table_bytes = 0;
};

/// Returns the footprint of a group with so many ranks on the host. REQUIRES: rank_count >= 1.
ShmFootprint footprint(std::uint32_t rank_count, const ShmOptions& options);

} // namespace ucg::transport
