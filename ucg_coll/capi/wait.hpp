// How a blocking call waits: for its own collective, while everything that peers may wait for in
// this process goes on.
#pragma once

#include "ucg_coll/capi/group.hpp"

namespace ucg::capi {

/// Returns when `execution`, of a collective of `group`, is no longer in progress. The caller does
/// not hold the context's lock.
void wait(Group& group, const engine::Execution& execution);

} // namespace ucg::capi
