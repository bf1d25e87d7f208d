// The piece of recursive multiplying. messages/pieces.hpp has the rules that all pieces share; the
// price of this one is in choice.hpp.
#pragma once

#include "ucg_coll/graph/graph.hpp"
#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

/// Combines all members' `source` to every member's `target`, which may be its `source`.
/// REQUIRES: fits(schedule, team.size()).
void allreduce_recursive_multiplying(graph::Builder& builder, const Team& team,
                                     const MultiplyingSchedule& schedule, graph::Slice source,
                                     graph::Slice target);

} // namespace ucg::plan
