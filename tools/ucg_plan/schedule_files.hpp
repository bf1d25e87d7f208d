// Reads schedules from files, and infers the requests that they must have been made for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ucg_coll/graph/graph.hpp"

namespace ucg::tools {

/// Returns the schedules in files of text or JSON (an object or an array), as "ucg_plan show"
/// prints them: one for each rank of one group, in any order. The result is in rank order. Fails
/// with the file's name and what is wrong where, or with the rank that is missing or occurs twice.
Result<std::vector<graph::Schedule>> read_schedules(const std::vector<std::string>& paths);

/// What a schedule does not say about its request.
struct Hints {
    bool commutative = true;
    std::optional<Rank> root;
    std::vector<std::uint64_t> blocks; ///< Lengths of the ranks' blocks.
};

/// Returns the request of each rank, inferred from the sizes of the ranks' buffers. Blocks lie end
/// to end. Fails where the sizes are ambiguous, and names the option that decides. REQUIRES: the
/// schedules are in rank order and none is missing.
Result<std::vector<graph::Request>> infer_requests(const std::vector<graph::Schedule>& schedules,
                                                   const Hints& hints);

} // namespace ucg::tools
