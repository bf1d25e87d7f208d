// What the caller wants of a group.
#pragma once

#include <cstdint>
#include <string>

#include "ucg/ucg.h"

namespace ucg::capi {

/// A copy of what the caller wants: the caller's structure may be gone before the group is made.
/// That structure is shorter than today's where the caller's header is older, so no optional field
/// is read but those that its mask names.
struct GroupParams {
    std::uint32_t rank = 0;
    std::uint32_t size = 0;
    std::string name = "group"; ///< For messages.
    /// Whoever makes the group does nothing else until it is made. If false, it comes by now and
    /// then.
    bool waits = true;
    /// It does nothing else but to come by until then.
    bool attends = true;

    GroupParams() = default;
    GroupParams(const ucg_group_params_t& params, bool waiting)
        : rank(params.rank), size(params.size), waits(waiting),
          attends(waiting || ((params.field_mask & UCG_GROUP_PARAM_FIELD_FLAGS) != 0 &&
                              (params.flags & UCG_GROUP_FLAG_ATTENDED) != 0)) {
        if ((params.field_mask & UCG_GROUP_PARAM_FIELD_NAME) != 0 && params.name != nullptr) {
            name = params.name;
        }
    }
};

} // namespace ucg::capi
