// Requests with random block vectors, to prove the algorithms that move blocks: lengths include
// zeros and long outliers, offsets differ at each rank, and nothing is symmetric that need not be.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "ucg_coll/plan/plan.hpp"

namespace ucg::plan::test {

struct BlockCase {
    graph::Collective collective = graph::Collective::allgatherv;
    Rank rank_count = 1;
    Rank root = 0;
    std::uint64_t element_bytes = 1;
    std::uint64_t longest = 0; ///< In elements.
    bool in_place = false;
    bool commutative = true;
    std::uint32_t seed = 0;
};

/// Random requests of all ranks.
std::vector<graph::Request> random_requests(const BlockCase& sample);

/// Plans all ranks by the row of that name and proves the plans.
Status prove(const Facts& facts, std::string_view algorithm,
             const std::vector<graph::Request>& requests);

using Names = std::set<std::string_view>;

/// REQUIREs that every eligible row of the case's collective passes, on one host and on several,
/// with shared memory and without. Returns the names of these rows.
Names require_proofs(const BlockCase& sample);

/// The same for equal blocks of `bytes`, for all roots that matter, in place and not.
Names require_equal_blocks(graph::Collective collective, Rank rank_count, std::uint64_t bytes,
                           std::uint64_t element_bytes = 1);

/// The same for every number of ranks up to 33, some lengths and some larger groups. Each row must
/// be eligible somewhere.
void require_equal_blocks_everywhere(graph::Collective collective);

/// The same for unequal blocks of up to 33 ranks, in place and not: from several roots where the
/// collective has one, with several seeds where it has none. Each row must be eligible somewhere.
void require_any_blocks(graph::Collective collective);

/// How many ops of that kind are in the schedule of `rank` for equal blocks on one host.
std::size_t count_ops(graph::Collective collective, std::string_view algorithm, Rank rank_count,
                      Rank rank, graph::OpKind kind);

} // namespace ucg::plan::test
