// Who drives the making of a group from one exchange to the next: a caller that waits in its own
// allgather, or one that comes by now and then.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/group.hpp"
#include "ucg_coll/capi/group_params.hpp"
#include "ucg_coll/capi/task.hpp"
#include "ucg_coll/capi/wireup/exchange.hpp"

namespace ucg::capi {

using MadeGroup = Result<std::unique_ptr<Group>>;

/// Keeps a context in use while a group is made: until everything else that needs it is destroyed.
class ContextUse {
  public:
    explicit ContextUse(Context* context);
    ~ContextUse();
    ContextUse(const ContextUse&) = delete;
    ContextUse& operator=(const ContextUse&) = delete;

  private:
    Context* const context_;
};

/// Makes a group, and returns when it is made or has failed. `context`: null if this process cannot
/// be in it.
MadeGroup make_group(Context* context, const ucg_group_params_t& params);

/// A group that is being made without waiting. The context is in use until the creation has ended.
class GroupCreation {
  public:
    /// REQUIRES: the parameters have what starts and tests an exchange.
    GroupCreation(Context* context, const ucg_group_params_t& params);
    GroupCreation(const GroupCreation&) = delete;
    GroupCreation& operator=(const GroupCreation&) = delete;

    /// Begins, and goes on to the first exchange, if that is possible without waiting for another
    /// thread.
    void begin();

    /// Goes on as far as that is possible without waiting. Empty until the creation has ended.
    std::optional<MadeGroup> advance();

    const GroupParams& params() const { return params_; }

  private:
    bool exchange();
    bool go_on();

    Context* const context_;
    const ContextUse use_;
    const GroupParams params_;
    const ucg_oob_allgather_start_cb_t start_;
    const ucg_oob_allgather_test_cb_t test_;
    void* const oob_arg_;
    WireupExchanges exchanges_;
    Task<MadeGroup> task_;
    bool begun_ = false;     ///< The task has begun.
    bool under_way_ = false; ///< An exchange is under way.
    bool succeeded_ = false; ///< The last exchange has succeeded.
    bool within_ = false;    ///< advance() runs: what it calls may make progress, and come here.
};

} // namespace ucg::capi
