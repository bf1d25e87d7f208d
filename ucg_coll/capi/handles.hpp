// What the handles of the C API point to; ucg_request is in group.hpp.
#pragma once

#include <memory>

#include "ucg/ucg.h"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/group.hpp"
#include "ucg_coll/capi/group_making.hpp"

#define UCG_PUBLIC __attribute__((visibility("default")))

struct ucg_config {
    ucg::capi::Config config;
};
struct ucg_context : ucg::capi::Context {
    using Context::Context;
};
struct ucg_group {
    std::unique_ptr<ucg::capi::Group> group;
};
struct ucg_group_creation {
    std::unique_ptr<ucg_group> handle = std::make_unique<ucg_group>(); ///< Given out at the end.
    ucg::capi::GroupCreation making;

    ucg_group_creation(ucg_context* context, const ucg_group_params_t& params)
        : making(context, params) {}
};
