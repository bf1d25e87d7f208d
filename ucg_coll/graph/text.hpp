// The text form of schedules, for people and for tests. Parsing what was printed gives an equal
// value. README.md explains slices, repeats and dependencies.
#pragma once

#include <string>
#include <string_view>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// Returns the text form: a header line, a line for each repeat and a line for each op. Example:
///
///   schedule allreduce recursive_doubling rank 0 of 2 input 8 output 8 scratch 8 element 8
///   0: send to 1 input[0:8]
///   1: recv from 1 scratch[0:8]
///   2: reduce input[0:8] scratch[0:8] -> output[0:8] after 1
std::string to_text(const Schedule& schedule);

/// Returns the schedule that `text` describes. Fails with invalid_argument and "line L, column C:
/// expected ..., found ...".
Result<Schedule> parse_text(std::string_view text);

} // namespace ucg::graph
