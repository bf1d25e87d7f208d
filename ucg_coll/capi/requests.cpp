// Every extern "C" function of collectives. Each is one call to guarded().
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "ucg/ucg.h"
#include "ucg_coll/capi/group.hpp"
#include "ucg_coll/capi/group_guard.hpp"
#include "ucg_coll/capi/guard.hpp"
#include "ucg_coll/capi/handles.hpp"
#include "ucg_coll/capi/wait.hpp"

using ucg::Code;
using ucg::Result;
using ucg::Status;
using ucg::capi::Group;
using ucg::capi::guarded;
using ucg::capi::HandleState;
using ucg::capi::Packing;
using ucg::capi::PreparedCollective;
using ucg::capi::refuse;
using ucg::capi::report;
using ucg::capi::Slept;

namespace ucg::capi {
namespace {

ucg_status_t state_of(Group& group, const PreparedCollective& collective) {
    const engine::Execution& execution = collective.run->execution;
    return execution.in_progress() ? UCG_INPROGRESS : group.outcome(execution);
}

/// Gives up a collective that is no longer in progress.
ucg_status_t end(Group& group, PreparedCollective& collective) {
    const ucg_status_t outcome = group.outcome(collective.run->execution);
    group.release(collective);
    return outcome;
}

/// Waits for the end of a collective that was started, and whose operator is kept for this thread:
/// for a blocking one since its start; otherwise others may have called the operator before.
[[gnu::noinline]] Slept await(Group& group, engine::Execution& execution) {
    const Slept slept = wait(group, execution);
    const Group::Lock lock = group.lock();
    execution.keep_operator(false);
    return slept;
}

/// Waits for the end of a prepared collective, and then makes the progress that the call owes the
/// host.
[[gnu::noinline]] ucg_status_t wait_for_end(Group& group, const PreparedCollective& collective) {
    const Slept slept = await(group, collective.run->execution);
    serve_host(group.context(), collective.type, slept);
    const Group::Lock lock = group.lock();
    return group.outcome(collective.run->execution);
}

/// Runs a blocking collective, without the progress that it owes the host.
ucg_status_t run(Group& group, const ucg_coll_params_t& params, Slept& slept) {
    PreparedCollective collective;
    {
        const std::lock_guard lock(group.mutex()); // The shortest path.
        Status status;
        const KnownCall* const call = group.understand(params, status);
        if (call == nullptr) [[unlikely]] {
            return refuse(group, status);
        }
        collective = group.prepare(params, *call);
        group.start_to_wait(collective);
        if (!collective.run->execution.in_progress()) {
            return end(group, collective);
        }
        collective.run->execution.keep_operator(true);
    }
    slept = await(group, collective.run->execution);
    const Group::Lock lock = group.lock();
    return end(group, collective);
}

/// Prepares a collective.
Status init(Group& group, const ucg_coll_params_t* params, ucg_coll_h* coll_p) {
    std::unique_ptr<Packing> packing;
    if (has_layouts(*params)) {
        Result<std::unique_ptr<Packing>> made = group.packing(*params);
        if (!made.ok()) {
            return made.status();
        }
        packing = std::move(*made);
        params = &packing->call();
    }
    const Group::Lock lock = group.lock();
    Status status;
    const KnownCall* const call = group.understand(*params, status);
    if (call == nullptr) {
        return status;
    }
    ucg_request& coll = group.spare_request();
    coll.binding = call->binding;
    coll.collective = group.prepare(*params, *call);
    coll.packing = std::move(packing);
    *coll_p = group.take_request();
    return {};
}

/// Has ranks agree before a collective that may block, if it is time, or because a call of its own
/// asks for it (`always`).
ucg_status_t agree(Group& group, const ucg_coll_params_t& params, bool always) {
    const RunCollective run_one = [&group](const ucg_coll_params_t& one) {
        Slept slept = Slept::no;
        return run(group, one, slept);
    };
    switch (params.type) {
    case UCG_COLL_ALLTOALLV: return always ? UCG_OK : group.agree_on_blocks(params, run_one);
    case UCG_COLL_NEIGHBOR_ALLTOALLV: return group.agree_on_rooms(params, run_one, always);
    default: return UCG_OK;
    }
}

} // namespace
} // namespace ucg::capi

extern "C" {

UCG_PUBLIC ucg_status_t ucg_coll_agree(ucg_group_h group, const ucg_coll_params_t* params) {
    return guarded(*group->group, [&] { return ucg::capi::agree(*group->group, *params, true); });
}

UCG_PUBLIC ucg_status_t ucg_coll_init(ucg_group_h group, const ucg_coll_params_t* params,
                                      ucg_coll_h* coll_p) {
    return guarded([&] { return report(ucg::capi::init(*group->group, params, coll_p)); });
}

} // extern "C"

namespace {

/// Says why the holder may not start, post or free a collective that is not idle.
[[gnu::noinline]] Status refusal(const ucg_request& coll, std::string_view function) {
    if (coll.is(HandleState::spare)) {
        return ucg::failure(Code::invalid_argument, "{}: the collective was freed", function);
    }
    return ucg::failure(Code::busy, "{}: the collective is in progress, or its end not told",
                        function);
}

/// How a collective is started: by Group::start() or by Group::start_to_wait().
enum class Start { go_on, wait };

/// Every start of a prepared collective of that group is this one. Calls `bind` first. Returns
/// false if the collective may not be started; nothing has changed then. The caller holds the lock.
template <typename Bind>
[[gnu::always_inline]] inline bool start_held(ucg_request& coll, Group& group, Start how,
                                              Bind&& bind) {
    if (!coll.idle()) [[unlikely]] {
        return false;
    }
    bind();
    how == Start::go_on ? group.start(coll.collective) : group.start_to_wait(coll.collective);
    return true;
}

/// Starts the collective with the buffers that it has.
[[gnu::always_inline]] inline bool start_held(ucg_request& coll) {
    return start_held(coll, *coll.collective.group, Start::go_on, [] {});
}

/// Starts the collective if the caller may. Elements are packed without the lock, as all functions
/// of the program are called; another thread may have started the collective meanwhile.
Status begin(ucg_request& coll, std::string_view function, Group::Lock& lock) {
    if (coll.packing != nullptr && coll.idle()) [[unlikely]] {
        lock.unlock();
        coll.packing->load();
        lock.lock();
    }
    return start_held(coll) ? Status() : refusal(coll, function);
}

/// Goes on with a collective that has been started, as far as it comes at once, and then looks for
/// its end, unless a wait would give the processor away. Returns how many looks it took, `most` at
/// the most. Where ranks help one another it does not look, and the program may as well compute:
/// others see what there is to do.
unsigned look_for_end(Group& group, ucg::engine::Execution& execution, unsigned most,
                      Group::Lock& lock) {
    if (execution.helps()) {
        return 0;
    }
    const bool yields = group.waiter().rung() >= ucg::shm::Waiter::Rung::yield;
    unsigned looks = 0;
    group.advance(execution, lock); // What is there already may have to be passed on.
    for (; looks < most && !yields && execution.in_progress(); ++looks) {
        lock.unlock(); // For other threads that make progress.
        lock.lock();
        group.advance(execution, lock);
    }
    return looks;
}

/// Leaves a collective that is in progress to whoever makes progress.
void leave(Group& group, Group::Lock& lock) {
    const bool unlisted = group.to_be_listed();
    lock.unlock();
    if (unlisted) {
        group.context().groups().list_busy(group);
    }
}

/// From now on the collective is neither started nor freed until its holder is told of its end: by
/// the call that posts it, or by the context. The caller holds the lock.
void mark_posted(ucg_request& coll) {
    coll.state.store(HandleState::posted, std::memory_order_relaxed);
}

/// Leaves a posted collective that is in progress to whoever makes progress. Its end is told to the
/// callback, or if there is none to whoever polls.
void leave_to_be_told(ucg_request& coll, ucg_coll_cb_t callback, void* user_data,
                      Group::Lock& lock) {
    coll.completion.user_data = user_data;
    coll.completion.callback = callback;
    coll.completion.coll = &coll;
    coll.collective.run->execution.tell_end(&coll.completion);
    leave(*coll.collective.group, lock);
}

/// Goes on with a collective that has not ended at its start. Returns its state.
[[gnu::noinline]] ucg_status_t go_on(ucg_request& coll) {
    Group& group = *coll.collective.group;
    Group::Lock lock = group.lock();
    if (coll.collective.run->execution.in_progress()) {
        look_for_end(group, coll.collective.run->execution, 0, lock);
    }
    const ucg_status_t state = ucg::capi::state_of(group, coll.collective);
    leave(group, lock);
    return coll.told(state);
}

[[gnu::noinline]] ucg_status_t start_any(ucg_request& coll) {
    {
        Group::Lock lock = coll.collective.group->lock();
        if (const Status status = begin(coll, "ucg_coll_start", lock); !status.ok()) {
            return report(status);
        }
    }
    return go_on(coll);
}

/// Posts a collective that has been started: looks for its end, up to `looks` times, and if it has
/// not come, leaves it to be told.
ucg_status_t post_started(ucg_request& coll, unsigned& looks, ucg_coll_cb_t callback,
                          void* user_data, Group::Lock& lock) {
    Group& group = *coll.collective.group;
    mark_posted(coll);
    const unsigned most = std::exchange(looks, 0);
    if (coll.collective.run->execution.in_progress()) {
        looks = look_for_end(group, coll.collective.run->execution, most, lock);
    }
    const ucg_status_t state = ucg::capi::state_of(group, coll.collective);
    if (state == UCG_INPROGRESS) {
        leave_to_be_told(coll, callback, user_data, lock);
        return state;
    }
    lock.unlock();
    return coll.hand_back(state);
}

/// Starts a collective and posts it.
ucg_status_t post(ucg_request& coll, std::string_view function, unsigned& looks,
                  ucg_coll_cb_t callback, void* user_data) {
    Group::Lock lock = coll.collective.group->lock();
    if (const Status status = begin(coll, function, lock); !status.ok()) {
        looks = 0;
        return report(status);
    }
    return post_started(coll, looks, callback, user_data, lock);
}

} // namespace

extern "C" {

UCG_PUBLIC ucg_status_t ucg_coll_start(ucg_coll_h coll) {
    return guarded(*coll->collective.group, [&] {
        if (coll->packing != nullptr) [[unlikely]] {
            return start_any(*coll);
        }
        PreparedCollective& collective = coll->collective;
        bool done = false;
        {
            const std::lock_guard lock(collective.group->mutex()); // The shortest path.
            if (!start_held(*coll)) [[unlikely]] {
                return report(refusal(*coll, "ucg_coll_start"));
            }
            done = collective.run->execution.state() == ucg::engine::ExecutionState::done;
        }
        return done ? UCG_OK : go_on(*coll);
    });
}

UCG_PUBLIC ucg_status_t ucg_coll_start_cb(ucg_coll_h coll, ucg_coll_cb_t callback, void* cb_arg) {
    return guarded(*coll->collective.group, [&] {
        if (callback == nullptr) {
            return report(
                ucg::failure(Code::invalid_argument, "ucg_coll_start_cb: callback is null"));
        }
        unsigned looks = 0;
        return post(*coll, "ucg_coll_start_cb", looks, callback, cb_arg);
    });
}

UCG_PUBLIC ucg_status_t ucg_coll_post(ucg_coll_h coll, unsigned* looks, void* user_data) {
    return guarded(*coll->collective.group,
                   [&] { return post(*coll, "ucg_coll_post", *looks, nullptr, user_data); });
}

UCG_PUBLIC ucg_status_t ucg_coll_post_started(ucg_coll_h coll, unsigned* looks, void* user_data) {
    return guarded(*coll->collective.group, [&] {
        Group::Lock lock = coll->collective.group->lock();
        if (!coll->is(HandleState::held)) [[unlikely]] {
            *looks = 0;
            return report(refusal(*coll, "ucg_coll_post_started"));
        }
        return post_started(*coll, *looks, nullptr, user_data, lock);
    });
}

UCG_PUBLIC ucg_status_t ucg_coll_test(ucg_coll_h coll) {
    return guarded(*coll->collective.group, [&] {
        Group& group = *coll->collective.group;
        Group::Lock lock = group.lock();
        if (coll->collective.run->execution.in_progress()) {
            group.advance(coll->collective.run->execution, lock);
        }
        const ucg_status_t state = ucg::capi::state_of(group, coll->collective);
        if (state == UCG_INPROGRESS) {
            group.watch_at_times();
        }
        lock.unlock();
        if (state == UCG_INPROGRESS) {
            group.context().progress_at_times();
        }
        return coll->told(state);
    });
}

UCG_PUBLIC ucg_status_t ucg_coll_wait(ucg_coll_h coll) {
    return guarded(*coll->collective.group, [&] {
        Group& group = *coll->collective.group;
        {
            const Group::Lock lock = group.lock();
            coll->collective.run->execution.keep_operator(true);
        }
        return coll->told(ucg::capi::wait_for_end(group, coll->collective));
    });
}

namespace {

/// Returns why a collective is not started with other buffers. Where that is too early, callers
/// choose another collective, so nothing is told to the user. The caller holds the lock.
[[gnu::noinline]] ucg_status_t not_restarted(const ucg_request& coll) {
    if (coll.is(HandleState::spare)) {
        return report(refusal(coll, "a start with other buffers"));
    }
    const PreparedCollective& collective = coll.collective;
    return collective.group->choice_changes(collective.type) ? UCG_ERR_UNSUPPORTED : UCG_ERR_BUSY;
}

/// Starts a collective whose elements are packed first: with other buffers, and everything else as
/// ever.
ucg_status_t restart_packed(ucg_request& coll, const void* send_buffer, void* recv_buffer) {
    {
        Group& group = *coll.collective.group;
        const Group::Lock lock = group.lock();
        if (!coll.idle() || group.choice_changes(coll.collective.type)) {
            return not_restarted(coll);
        }
        coll.packing->rebind(send_buffer, recv_buffer);
        const ucg_coll_params_t& call = coll.packing->call();
        coll.collective.run->execution.bind_buffers(
            coll.binding.input(call.send_buffer, call.recv_buffer),
            coll.binding.output(call.recv_buffer));
    }
    return start_any(coll);
}

ucg_status_t repeat_packed(ucg_request& coll, const void* send_buffer, void* recv_buffer) {
    const ucg_status_t started = restart_packed(coll, send_buffer, recv_buffer);
    return started == UCG_INPROGRESS ? ucg_coll_wait(&coll) : started;
}

/// Starts the collective with these buffers. Returns false if it may not be started. The caller
/// holds the lock.
[[gnu::always_inline]] inline bool start_with(ucg_request& coll, Group& group, Start how,
                                              const void* send_buffer, void* recv_buffer) {
    if (group.choice_changes(coll.collective.type)) [[unlikely]] {
        return false;
    }
    return start_held(coll, group, how, [&] {
        coll.collective.run->execution.bind_buffers(coll.binding.input(send_buffer, recv_buffer),
                                                    coll.binding.output(recv_buffer));
    });
}

} // namespace

UCG_PUBLIC ucg_status_t ucg_coll_repeat(ucg_coll_h coll, const void* send_buffer,
                                        void* recv_buffer) {
    return guarded(*coll->collective.group, [&] {
        if (coll->packing != nullptr) [[unlikely]] {
            return repeat_packed(*coll, send_buffer, recv_buffer);
        }
        Group& group = *coll->collective.group;
        bool done = false;
        {
            const std::lock_guard lock(group.mutex());
            if (!start_with(*coll, group, Start::wait, send_buffer, recv_buffer)) [[unlikely]] {
                return not_restarted(*coll);
            }
            ucg::engine::Execution& execution = coll->collective.run->execution;
            done = execution.state() == ucg::engine::ExecutionState::done;
            if (!done) [[unlikely]] {
                execution.keep_operator(true);
            }
        }
        if (done) [[likely]] {
            ucg::capi::serve_host(group.context(), coll->collective.type, Slept::no);
            return UCG_OK;
        }
        return ucg::capi::wait_for_end(group, coll->collective);
    });
}

UCG_PUBLIC ucg_status_t ucg_coll_restart(ucg_coll_h coll, const void* send_buffer,
                                         void* recv_buffer) {
    return guarded(*coll->collective.group, [&] {
        if (coll->packing != nullptr) [[unlikely]] {
            return restart_packed(*coll, send_buffer, recv_buffer);
        }
        Group& group = *coll->collective.group;
        bool done = false;
        {
            const std::lock_guard lock(group.mutex());
            if (!start_with(*coll, group, Start::go_on, send_buffer, recv_buffer)) [[unlikely]] {
                return not_restarted(*coll);
            }
            done = coll->collective.run->execution.state() == ucg::engine::ExecutionState::done;
        }
        return done ? UCG_OK : go_on(*coll);
    });
}

UCG_PUBLIC ucg_status_t ucg_coll_free(ucg_coll_h coll) {
    return guarded([&] {
        Group& group = *coll->collective.group;
        Group::Lock lock = group.lock();
        if (!coll->idle()) {
            return report(refusal(*coll, "ucg_coll_free"));
        }
        group.release(coll->collective);
        group.give_back(coll);
        return UCG_OK;
    });
}

namespace {

ucg_status_t refuse_unlocked(Group& group, const Status& status) {
    const Group::Lock lock = group.lock();
    return refuse(group, status);
}

ucg_status_t run_packed(ucg_group_h handle, const ucg_coll_params_t& params) {
    const Result<std::unique_ptr<Packing>> packing = handle->group->packing(params);
    if (!packing.ok()) {
        return refuse_unlocked(*handle->group, packing.status());
    }
    (*packing)->load();
    return (*packing)->end(ucg_coll_run(handle, &(*packing)->call()));
}

/// Frees what is complete at once: the caller has no handle of it. Another thread may be told of
/// the end, and may free the collective, before ucg_coll_post() returns.
ucg_status_t run_or_post_packed(ucg_group_h handle, const ucg_coll_params_t& params,
                                unsigned* looks, void* user_data, ucg_coll_h* coll_p) {
    ucg_coll_h coll = nullptr;
    if (const Status made = ucg::capi::init(*handle->group, &params, &coll); !made.ok()) {
        *looks = 0;
        return refuse_unlocked(*handle->group, made);
    }
    *coll_p = coll;
    const ucg_status_t status = ucg_coll_post(coll, looks, user_data);
    if (status != UCG_INPROGRESS) {
        static_cast<void>(ucg_coll_free(coll));
    }
    return status;
}

} // namespace

UCG_PUBLIC ucg_status_t ucg_coll_run(ucg_group_h handle, const ucg_coll_params_t* params) {
    return guarded(*handle->group, [&] {
        Group& group = *handle->group;
        if (ucg::capi::has_layouts(*params)) [[unlikely]] {
            return run_packed(handle, *params);
        }
        if (Group::agrees_first(static_cast<ucg::graph::Collective>(params->type))) [[unlikely]] {
            if (const ucg_status_t agreed = ucg::capi::agree(group, *params, false);
                agreed != UCG_OK) {
                return agreed;
            }
        }
        Slept slept = Slept::no;
        const ucg_status_t outcome = ucg::capi::run(group, *params, slept);
        ucg::capi::serve_host(group.context(), static_cast<ucg::graph::Collective>(params->type),
                              slept);
        return outcome;
    });
}

UCG_PUBLIC ucg_status_t ucg_coll_run_or_post(ucg_group_h handle, const ucg_coll_params_t* params,
                                             unsigned* looks, void* user_data, ucg_coll_h* coll_p) {
    return guarded(*handle->group, [&] {
        if (ucg::capi::has_layouts(*params)) [[unlikely]] {
            return run_or_post_packed(handle, *params, looks, user_data, coll_p);
        }
        Group& group = *handle->group;
        Group::Lock lock = group.lock();
        const unsigned most = std::exchange(*looks, 0);
        Status status;
        const ucg::capi::KnownCall* const call = group.understand(*params, status);
        if (call == nullptr) [[unlikely]] {
            return refuse(group, status);
        }
        ucg_request& coll = group.spare_request(); // Before anything starts: it may allocate.
        PreparedCollective collective = group.prepare(*params, *call);
        group.start(collective);
        if (!collective.run->execution.in_progress()) {
            return ucg::capi::end(group, collective);
        }
        static_cast<void>(group.take_request());
        coll.binding = call->binding;
        coll.collective = collective;
        mark_posted(coll);
        *looks = look_for_end(group, collective.run->execution, most, lock);
        if (!collective.run->execution.in_progress()) {
            group.give_back(&coll);
            return ucg::capi::end(group, collective);
        }
        *coll_p = &coll;
        leave_to_be_told(coll, nullptr, user_data, lock);
        return UCG_INPROGRESS;
    });
}

} // extern "C"
