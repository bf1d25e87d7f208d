#include "ucg_coll/capi/group_making.hpp"

#include <thread>
#include <utility>

#include "ucg_coll/capi/wireup/wireup.hpp"

namespace ucg::capi {
namespace {

Task<MadeGroup> decline(const GroupParams& params, WireupExchanges& exchanges) {
    co_return co_await decline_group(params, exchanges);
}

/// Returns the task that makes the group. `params` and `exchanges` must outlive it.
Task<MadeGroup> making(Context* context, const GroupParams& params, WireupExchanges& exchanges) {
    return context == nullptr ? decline(params, exchanges)
                              : Group::make(*context, params, exchanges);
}

/// Returns the context's maker(), locked: held while a wire-up works, and never over an exchange.
/// Without a context there is nothing to guard.
std::unique_lock<OptionalMutex> hold_maker(Context* context) {
    return context == nullptr ? std::unique_lock<OptionalMutex>()
                              : std::unique_lock(context->maker());
}

} // namespace

MadeGroup make_group(Context* context, const ucg_group_params_t& params) {
    const ContextUse use(context);
    std::unique_lock<OptionalRecursiveMutex> in_order;
    if (context != nullptr) {
        in_order = std::unique_lock(context->waiting_makers());
    }
    const GroupParams wanted(params, true);
    WireupExchanges exchanges;
    std::unique_lock maker = hold_maker(context);
    Task<MadeGroup> task = making(context, wanted, exchanges);
    task.start();
    while (!task.ended()) {
        if (maker.owns_lock()) {
            maker.unlock();
        }
        if (exchanges.pauses()) {
            // Others may need the host's progress before they come to answer.
            context->host().progress();
            std::this_thread::yield();
            maker.lock();
            exchanges.go_on();
            continue;
        }
        const WireupExchange due = exchanges.due();
        const bool succeeded =
            params.oob_allgather(params.oob_arg, due.mine, due.all, due.bytes) == 0;
        if (maker.mutex() != nullptr) {
            maker.lock();
        }
        exchanges.end(succeeded);
    }
    return task.outcome();
}

ContextUse::ContextUse(Context* context) : context_(context) {
    if (context_ != nullptr) {
        context_->creation_begins();
    }
}

ContextUse::~ContextUse() {
    if (context_ != nullptr) {
        context_->creation_ends();
    }
}

GroupCreation::GroupCreation(Context* context, const ucg_group_params_t& params)
    : context_(context), use_(context), params_(params, false), start_(params.oob_allgather_start),
      test_(params.oob_allgather_test), oob_arg_(params.oob_arg),
      task_(making(context, params_, exchanges_)) {}

void GroupCreation::begin() {
    static_cast<void>(go_on());
}

std::optional<MadeGroup> GroupCreation::advance() {
    if (within_) {
        return std::nullopt;
    }
    within_ = true;
    while (!task_.ended() && exchange() && go_on() && !exchanges_.pauses()) {
    }
    within_ = false;
    return task_.ended() ? std::optional(task_.outcome()) : std::nullopt;
}

/// Tests the exchange that is under way. Returns true if there is none to wait for.
bool GroupCreation::exchange() {
    if (!under_way_) {
        return true;
    }
    const ucg_status_t status = test_(oob_arg_);
    under_way_ = status == UCG_INPROGRESS;
    succeeded_ = status == UCG_OK;
    return !under_way_;
}

/// Goes from one exchange, or pause, to the beginning of the next. Returns false where another
/// thread makes a group: that may wait for its peers, and these for what this thread has yet to do.
bool GroupCreation::go_on() {
    std::unique_lock<OptionalMutex> maker;
    if (context_ != nullptr) {
        maker = std::unique_lock(context_->maker(), std::try_to_lock);
        if (!maker.owns_lock()) {
            return false;
        }
    }
    if (exchanges_.pauses()) {
        exchanges_.go_on();
    } else if (begun_) {
        exchanges_.end(succeeded_);
    } else {
        begun_ = true;
        task_.start();
    }
    if (maker.owns_lock()) {
        maker.unlock();
    }
    if (!task_.ended() && !exchanges_.pauses()) {
        const WireupExchange due = exchanges_.due();
        under_way_ = start_(oob_arg_, due.mine, due.all, due.bytes) == 0;
        succeeded_ = false;
        if (under_way_) {
            exchanges_.begin();
        }
    }
    return true;
}

} // namespace ucg::capi
