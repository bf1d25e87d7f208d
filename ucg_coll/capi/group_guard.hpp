// The C edge of calls that start collectives of a group, or go on with them. If such a call fails
// on this rank alone before its collective has started, the others may have started theirs, and
// would take this rank's next collective for it. So the group fails.
#pragma once

#include <new>

#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/group.hpp"
#include "ucg_coll/capi/guard.hpp"

namespace ucg::capi {

/// Tells why a call does not start its collective, and returns the code. The group fails, except
/// where all ranks refuse such a call alike, and where arguments are wrong: the caller may have
/// wanted to know no more than that, and knows whether the others have started anything. The caller
/// holds the lock.
ucg_status_t refuse(Group& group, const Status& status);

/// Fails the group after an exception, of which `status` is the code, and returns that. The caller
/// does not hold the lock.
[[gnu::cold]] ucg_status_t fail_alone(Group& group, ucg_status_t status) noexcept;

/// Like guarded(). After an exception the group fails, too.
template <typename Body>
ucg_status_t guarded(Group& group, Body&& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return fail_alone(group, UCG_ERR_NO_MEMORY);
    } catch (...) {
        return fail_alone(group, UCG_ERR_INTERNAL);
    }
}

} // namespace ucg::capi
