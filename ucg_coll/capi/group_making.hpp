// Who drives the making of a group from one exchange to the next: a caller that waits in its own
// allgather.
#pragma once

#include <memory>

#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/group.hpp"

namespace ucg::capi {

using MadeGroup = Result<std::unique_ptr<Group>>;

/// Makes a group, and returns when it is there. `context`: null if this process cannot be in it.
MadeGroup make_group(Context* context, const ucg_group_params_t& params);

} // namespace ucg::capi
