// What programs call that were compiled with an earlier header of this major version: the symbols
// that the header of today has functions of its own before.
#include <algorithm>
#include <cstdint>

#include "ucg/ucg.h"
#include "ucg_coll/capi/handles.hpp"

namespace {

/// API 0.1's ucg_group_attr_t: it had no mask, and its counters were of 17 collectives.
struct GroupAttributes01 {
    std::uint64_t started[17];
    std::uint64_t planned;
    std::uint32_t host_count;
    std::uint32_t ranks_on_host;
    int uses_shm;
    int uses_ucx;
};

} // namespace

extern "C" {

UCG_PUBLIC ucg_status_t context_create_01(const ucg_context_params_t* params, ucg_config_h config,
                                          ucg_context_h* context_p) __asm__("ucg_context_create");
UCG_PUBLIC ucg_status_t group_query_01(ucg_group_h group,
                                       GroupAttributes01* attr_p) __asm__("ucg_group_query");

ucg_status_t context_create_01(const ucg_context_params_t* params, ucg_config_h config,
                               ucg_context_h* context_p) {
    return ucg_context_create_version(0, 1, params, config, context_p);
}

ucg_status_t group_query_01(ucg_group_h group, GroupAttributes01* attr_p) {
    ucg_group_attr_t attributes;
    attributes.field_mask = UCG_GROUP_ATTR_FIELD_STARTED | UCG_GROUP_ATTR_FIELD_PLANNED |
                            UCG_GROUP_ATTR_FIELD_PLACES | UCG_GROUP_ATTR_FIELD_TRANSPORTS;
    const ucg_status_t status = ucg_group_query_fields(group, &attributes);
    if (status == UCG_OK) {
        std::copy_n(attributes.started, std::size(attr_p->started), attr_p->started);
        attr_p->planned = attributes.planned;
        attr_p->host_count = attributes.host_count;
        attr_p->ranks_on_host = attributes.ranks_on_host;
        attr_p->uses_shm = attributes.uses_shm;
        attr_p->uses_ucx = attributes.uses_ucx;
    }
    return status;
}

} // extern "C"
