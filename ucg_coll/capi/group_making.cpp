#include "ucg_coll/capi/group_making.hpp"

#include <mutex>

#include "ucg_coll/capi/group_params.hpp"
#include "ucg_coll/capi/task.hpp"
#include "ucg_coll/capi/wireup/exchange.hpp"
#include "ucg_coll/capi/wireup/wireup.hpp"

namespace ucg::capi {
namespace {

Task<MadeGroup> decline(const GroupParams& params, Exchanges& exchanges) {
    co_return co_await decline_group(params, exchanges);
}

/// Both must outlive it.
Task<MadeGroup> making(Context* context, const GroupParams& params, Exchanges& exchanges) {
    return context == nullptr ? decline(params, exchanges)
                              : Group::make(*context, params, exchanges);
}

/// Held while a wire-up works, and never over an exchange. Without a context there is nothing to
/// guard.
std::unique_lock<OptionalMutex> hold_maker(Context* context) {
    return context == nullptr ? std::unique_lock<OptionalMutex>()
                              : std::unique_lock(context->maker());
}

} // namespace

MadeGroup make_group(Context* context, const ucg_group_params_t& params) {
    std::unique_lock<OptionalRecursiveMutex> in_order;
    if (context != nullptr) {
        in_order = std::unique_lock(context->waiting_makers());
    }
    const GroupParams wanted(params, true);
    Exchanges exchanges;
    std::unique_lock maker = hold_maker(context);
    Task<MadeGroup> task = making(context, wanted, exchanges);
    task.start();
    while (!task.ended()) {
        if (maker.owns_lock()) {
            maker.unlock();
        }
        const Exchange due = exchanges.due();
        const bool succeeded =
            params.oob_allgather(params.oob_arg, due.mine, due.all, due.bytes) == 0;
        if (maker.mutex() != nullptr) {
            maker.lock();
        }
        exchanges.end(succeeded);
    }
    return task.outcome();
}

} // namespace ucg::capi
