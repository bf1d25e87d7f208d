#include "ucg_coll/capi/group_guard.hpp"

namespace ucg::capi {

ucg_status_t refuse(Group& group, const Status& status) {
    if (status.code() == Code::unsupported || status.code() == Code::invalid_argument) {
        return report(status);
    }
    group.fail(status.code(), status.message());
    return to_c(status);
}

ucg_status_t fail_alone(Group& group, ucg_status_t status) noexcept {
    const Group::Lock lock = group.lock();
    if (status == UCG_ERR_NO_MEMORY) {
        group.fail(Code::out_of_memory, "memory ran out for a collective that others may have "
                                        "started");
    } else {
        group.fail(Code::io_error, "a collective ended unexpectedly");
    }
    return status;
}

} // namespace ucg::capi
