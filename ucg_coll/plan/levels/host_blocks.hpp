// Views of the ranks' blocks by host, which the stages of two-level algorithms work on.
#pragma once

#include <vector>

#include "ucg_coll/plan/parts/blocks.hpp"

namespace ucg::plan {

/// Those of the ranks' blocks that belong to the ranks of `host`, in their order.
BlockMap blocks_on_host(const Facts& facts, std::uint32_t host, const BlockMap& blocks);

// Of requests whose blocks' lengths all ranks know.

/// How long the blocks of the ranks of `host` are, in their order.
std::vector<std::uint64_t> bytes_on_host(const Facts& facts, std::uint32_t host,
                                         const graph::Request& request);
/// How long all blocks of each host are together.
std::vector<std::uint64_t> bytes_by_host(const Facts& facts, const graph::Request& request);
/// The most of them.
std::uint64_t bytes_by_host_max(const Facts& facts, const graph::Request& request);

} // namespace ucg::plan
