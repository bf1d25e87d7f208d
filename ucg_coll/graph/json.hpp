// The JSON form of schedules, for other tools. Parsing what was printed gives an equal value.
#pragma once

#include <string>
#include <string_view>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// Returns the schedule as one JSON object; with `indent` < 0 on one line.
std::string to_json(const Schedule& schedule, int indent = 2);

/// Returns the schedule that `text` describes. Fails with invalid_argument, naming the path of the
/// member that is wrong (for example "ops[3].target.offset: expected a non-negative integer").
Result<Schedule> parse_json(std::string_view text);

} // namespace ucg::graph
