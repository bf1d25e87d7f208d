// Views of the ranks' blocks by host, which the stages of two-level algorithms work on.
#pragma once

#include <vector>

#include "ucg_coll/plan/parts/blocks.hpp"

namespace ucg::plan {

/// Returns the blocks of the ranks of `host`, in their order. `blocks` has one for each rank.
BlockMap blocks_on_host(const Facts& facts, std::uint32_t host, const BlockMap& blocks);

// For requests whose blocks' lengths all ranks know.

/// Returns the lengths of the blocks of the ranks of `host`, in their order.
std::vector<std::uint64_t> bytes_on_host(const Facts& facts, std::uint32_t host,
                                         const graph::Request& request);
/// Returns for each host the length of all its ranks' blocks together.
std::vector<std::uint64_t> bytes_by_host(const Facts& facts, const graph::Request& request);
/// Returns the greatest of these.
std::uint64_t bytes_by_host_max(const Facts& facts, const graph::Request& request);

/// Returns the mean length of the blocks of the hosts that are not the root's. All ranks have
/// blocks of `request.bytes`. REQUIRES: several hosts.
std::uint64_t bytes_of_other_host(const Facts& facts, const graph::Request& request);

} // namespace ucg::plan
