// Schedules from files, and the requests that they must have been made for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ucg_coll/graph/graph.hpp"

namespace ucg::tools {

/// The schedules in files of text or JSON (an object or an array), as "ucg_plan show" prints them:
/// one for each rank of one group, in whatever order; the result is in rank order. Fails with the
/// file's name and what is wrong where, or with the rank that is missing or there twice.
Result<std::vector<graph::Schedule>> read_schedules(const std::vector<std::string>& paths);

/// What a schedule does not tell.
struct Hints {
    bool commutative = true;
    std::optional<Rank> root;
    std::vector<std::uint64_t> blocks; ///< Lengths of the ranks' blocks.
};

/// What the ranks must have asked for, judged by the sizes of their buffers. Blocks lie end to end.
/// Fails where the sizes leave it open, naming the option that tells. REQUIRES: in rank order, none
/// missing.
Result<std::vector<graph::Request>> infer_requests(const std::vector<graph::Schedule>& schedules,
                                                   const Hints& hints);

} // namespace ucg::tools
