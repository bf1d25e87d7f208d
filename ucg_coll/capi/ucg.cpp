// Every extern "C" function. Each is one call to guarded().
#include "ucg/ucg.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/group.hpp"
#include "ucg_coll/capi/guard.hpp"
#include "ucg_coll/capi/version.hpp"
#include "ucg_coll/capi/wait.hpp"

#define UCG_PUBLIC __attribute__((visibility("default")))

using ucg::Code;
using ucg::Result;
using ucg::Status;
using ucg::capi::Collective;
using ucg::capi::Config;
using ucg::capi::Context;
using ucg::capi::Group;
using ucg::capi::guarded;
using ucg::capi::report;
using ucg::capi::Slept;

struct ucg_config {
    Config config;
};
struct ucg_context : Context {
    using Context::Context;
};
struct ucg_group {
    std::unique_ptr<Group> group;
};

namespace ucg::capi {

ucg_status_t to_c(Code code) {
    switch (code) {
    case Code::ok: return UCG_OK;
    case Code::invalid_argument: return UCG_ERR_INVALID_PARAM;
    case Code::unsupported: return UCG_ERR_UNSUPPORTED;
    case Code::unreachable: return UCG_ERR_UNREACHABLE;
    case Code::out_of_memory: return UCG_ERR_NO_MEMORY;
    case Code::io_error: return UCG_ERR_IO_ERROR;
    case Code::timed_out: return UCG_ERR_TIMED_OUT;
    case Code::disagreement: return UCG_ERR_DISAGREEMENT;
    }
    return UCG_ERR_INTERNAL;
}

namespace {

ucg_status_t state_of(Group& group, const Collective& collective) {
    return collective.run->execution.in_progress() ? UCG_INPROGRESS
                                                   : to_c(group.outcome(collective));
}

/// Gives up a collective that is no longer in progress.
ucg_status_t end(Group& group, Collective& collective) {
    if (collective.run->execution.state() == engine::ExecutionState::failed) [[unlikely]] {
        return to_c(group.outcome(collective).code()); // A transport may still hold its messages.
    }
    group.release(collective);
    return UCG_OK;
}

/// The end of a collective that was started and had to wait, and whose operator is kept for this
/// thread: since it was started, if it is a blocking one, or others may have called it already.
[[gnu::noinline]] Slept await(Group& group, engine::Execution& execution) {
    const Slept slept = wait(group, execution);
    const Group::Lock lock = group.lock();
    execution.keep_operator(false);
    return slept;
}

/// The same of a prepared collective, with what it owes the host.
[[gnu::noinline]] ucg_status_t wait_for_end(Group& group, const Collective& collective) {
    const Slept slept = await(group, collective.run->execution);
    serve_host(group.context(), collective.type, slept);
    const Group::Lock lock = group.lock();
    return to_c(group.outcome(collective).code());
}

/// A blocking collective, without what it owes the host.
ucg_status_t run(Group& group, const ucg_coll_params_t& params, Slept& slept) {
    Collective collective;
    {
        const std::lock_guard lock(group.mutex()); // The shortest path.
        Status status;
        const KnownCall* const call = group.understand(params, status);
        if (call == nullptr) [[unlikely]] {
            return report(status);
        }
        collective = group.prepare(params, *call);
        group.start(collective);
        if (!collective.run->execution.in_progress()) {
            return end(group, collective);
        }
        collective.run->execution.keep_operator(true);
    }
    slept = await(group, collective.run->execution);
    const Group::Lock lock = group.lock();
    return end(group, collective);
}

/// Before a blocking alltoallv whose best algorithm depends on what others receive.
ucg_status_t agree_on_blocks(Group& group, const ucg_coll_params_t& params) {
    std::optional<std::uint64_t> own;
    {
        const Group::Lock lock = group.lock();
        own = group.to_add_up(params);
    }
    if (!own) {
        return UCG_OK;
    }
    std::uint64_t total = 0;
    ucg_coll_params_t sum = {};
    sum.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    sum.type = UCG_COLL_ALLREDUCE;
    sum.count = 1;
    sum.element_bytes = sizeof(total);
    sum.datatype = UCG_DT_UINT64;
    sum.op = UCG_OP_SUM;
    sum.send_buffer = &*own;
    sum.recv_buffer = &total;
    Slept slept = Slept::no;
    const ucg_status_t status = run(group, sum, slept);
    if (status == UCG_OK) {
        const Group::Lock lock = group.lock();
        group.add_up(total);
    }
    return status;
}

bool complete(const ucg_group_params_t* params) {
    return params != nullptr && params->oob_allgather != nullptr && params->size > 0 &&
           params->rank < params->size && params->size <= 0x7fffffffU;
}

} // namespace
} // namespace ucg::capi

extern "C" {

UCG_PUBLIC const char* ucg_status_string(ucg_status_t status) {
    switch (status) {
    case UCG_OK: return "Success";
    case UCG_INPROGRESS: return "In progress";
    case UCG_ERR_INVALID_PARAM: return "Invalid parameter";
    case UCG_ERR_UNSUPPORTED: return "Not supported";
    case UCG_ERR_UNREACHABLE: return "A peer cannot be reached";
    case UCG_ERR_NO_MEMORY: return "Out of memory";
    case UCG_ERR_IO_ERROR: return "Input/output error";
    case UCG_ERR_TIMED_OUT: return "Timed out";
    case UCG_ERR_DISAGREEMENT: return "Ranks disagree";
    case UCG_ERR_INTERNAL: return "Internal error";
    }
    return "Unknown status";
}

UCG_PUBLIC void ucg_get_version(unsigned* major_p, unsigned* minor_p, unsigned* release_p) {
    const auto set = [](unsigned* out, unsigned value) {
        if (out != nullptr) {
            *out = value;
        }
    };
    set(major_p, UCG_VERSION_MAJOR);
    set(minor_p, UCG_VERSION_MINOR);
    set(release_p, UCG_VERSION_RELEASE);
}

UCG_PUBLIC const char* ucg_get_version_string(void) {
    return UCG_VERSION_STRING;
}

UCG_PUBLIC ucg_status_t ucg_config_read(ucg_config_h* config_p) {
    return guarded([&] {
        Result<Config> config = Config::from_environment();
        if (!config.ok()) {
            return report(config.status());
        }
        *config_p = new ucg_config{std::move(*config)};
        return UCG_OK;
    });
}

UCG_PUBLIC ucg_status_t ucg_config_modify(ucg_config_h config, const char* name,
                                          const char* value) {
    return guarded([&] { return report(config->config.set(name, value)); });
}

UCG_PUBLIC void ucg_config_print(ucg_config_h config, FILE* stream) {
    static_cast<void>(guarded([&] {
        std::fputs(config->config.to_text().c_str(), stream);
        return UCG_OK;
    }));
}

UCG_PUBLIC void ucg_config_release(ucg_config_h config) {
    delete config;
}

UCG_PUBLIC ucg_status_t ucg_context_create(const ucg_context_params_t* params, ucg_config_h config,
                                           ucg_context_h* context_p) {
    return guarded([&] {
        Result<Config> settings =
            config != nullptr ? Result<Config>(config->config) : Config::from_environment();
        if (!settings.ok()) {
            return report(settings.status());
        }
        ucg::set_log_level(settings->log_level());
        Result<ucg::capi::LoadedProfile> profile = ucg::capi::load_profile(settings->profile());
        if (!profile.ok()) {
            return report(profile.status());
        }
        ucg::capi::LoadedPhases phases = ucg::capi::load_phases(*settings, ucg::capi::host_name());
        *context_p =
            new ucg_context(params, std::move(*settings), std::move(*profile), std::move(phases));
        return UCG_OK;
    });
}

UCG_PUBLIC unsigned ucg_context_progress(ucg_context_h context) {
    unsigned events = 0;
    static_cast<void>(guarded([&] {
        events = context->progress(ucg::capi::Busy::skip);
        return UCG_OK;
    }));
    return events;
}

UCG_PUBLIC unsigned ucg_context_poll(ucg_context_h context, ucg_completion_t* completions,
                                     unsigned max) {
    unsigned count = 0;
    static_cast<void>(guarded([&] {
        context->progress(ucg::capi::Busy::skip);
        while (count < max) {
            const ucg::capi::Completion* const ended = context->take_completion();
            if (ended == nullptr) {
                break;
            }
            completions[count++] = {ended->user_data, ucg::capi::to_c(ended->code)};
        }
        return UCG_OK;
    }));
    return count;
}

UCG_PUBLIC ucg_status_t ucg_context_disconnect(ucg_context_h context) {
    return guarded([&] {
        context->disconnect();
        return UCG_OK;
    });
}

UCG_PUBLIC void ucg_context_destroy(ucg_context_h context) {
    static_cast<void>(guarded([&] {
        delete context;
        return UCG_OK;
    }));
}

UCG_PUBLIC ucg_status_t ucg_mem_alloc(ucg_context_h context, size_t size, void** address_p) {
    return guarded([&] {
        *address_p = nullptr;
        if (size == 0) {
            return UCG_OK;
        }
        const Result<std::byte*> memory = context->allocate(size);
        if (!memory.ok()) {
            return report(memory.status());
        }
        *address_p = *memory;
        return UCG_OK;
    });
}

UCG_PUBLIC ucg_status_t ucg_mem_free(ucg_context_h context, void* address) {
    return guarded([&] {
        if (address == nullptr || context->release(static_cast<const std::byte*>(address))) {
            return UCG_OK;
        }
        return report(Status(Code::invalid_argument,
                             "ucg_mem_free: not memory that ucg_mem_alloc gave for this context"));
    });
}

namespace {

/// Of a failure that all ranks share. One of them may have lacked memory; that none is left for a
/// group says that a rank failed alone.
ucg_status_t agreed(Code code) {
    return ucg::capi::to_c(code == Code::out_of_memory ? Code::unreachable : code);
}

} // namespace

UCG_PUBLIC ucg_status_t ucg_group_create(ucg_context_h context, const ucg_group_params_t* params,
                                         ucg_group_h* group_p) {
    const ucg_status_t status = guarded([&] {
        if (!ucg::capi::complete(params)) {
            return report(Status(Code::invalid_argument,
                                 "ucg_group_create: oob_allgather must be set and rank < size"));
        }
        if (context == nullptr) {
            return ucg::capi::to_c(ucg::capi::decline_group(*params).code());
        }
        // Asked on all ranks: any of them may be rank 0 of another group.
        if (context->first(Context::Once::variables) && params->rank == 0) {
            context->config().warn_of_unused_variables();
        }
        auto handle = std::make_unique<ucg_group>();
        Result<std::unique_ptr<Group>> group = Group::create(*context, *params);
        if (!group.ok()) {
            return agreed(group.status().code()); // Told by the rank that knows why.
        }
        handle->group = std::move(*group);
        *group_p = handle.release();
        return UCG_OK;
    });
    if (status == UCG_ERR_NO_MEMORY || status == UCG_ERR_INTERNAL) {
        static_cast<void>(guarded([&] {
            return report(
                ucg::failure(Code::out_of_memory,
                             "rank {}: memory ran out while a group of {} ranks was made; the "
                             "others may wait for it, so the program should end",
                             params->rank, params->size));
        }));
    }
    return status;
}

UCG_PUBLIC void ucg_group_destroy(ucg_group_h group) {
    static_cast<void>(guarded([&] {
        Context& context = group->group->context();
        delete group;
        context.drop_unused_heap();
        return UCG_OK;
    }));
}

UCG_PUBLIC const char* ucg_coll_type_string(ucg_coll_type_t type) {
    // The names are literals, hence terminated.
    return type >= 0 && type < UCG_COLL_LAST
               ? ucg::graph::name(static_cast<ucg::graph::Collective>(type)).data()
               : nullptr;
}

UCG_PUBLIC ucg_status_t ucg_coll_init(ucg_group_h group, const ucg_coll_params_t* params,
                                      ucg_coll_h* coll_p) {
    return guarded([&] {
        const Group::Lock lock = group->group->lock();
        Status status;
        const ucg::capi::KnownCall* const call = group->group->understand(*params, status);
        if (call == nullptr) {
            return report(status);
        }
        ucg_request& coll = group->group->spare_request();
        coll.binding = call->binding;
        coll.collective = group->group->prepare(*params, *call);
        *coll_p = group->group->take_request();
        return UCG_OK;
    });
}

namespace {

/// Goes on with a collective that has been started, as far as it comes at once, and then looks for
/// its end, unless a wait would give the processor away. Returns how many looks it took, `most` at
/// the most.
unsigned look_for_end(Group& group, ucg::engine::Execution& execution, unsigned most,
                      Group::Lock& lock) {
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

/// Of a collective in progress: who makes progress looks after it.
void leave(Group& group, Group::Lock& lock) {
    const bool unlisted = group.to_be_listed();
    lock.unlock();
    if (unlisted) {
        group.context().list_busy(group);
    }
}

/// The same of a posted one, whose end is told.
void leave_posted(ucg_request& coll, void* user_data, Group::Lock& lock) {
    coll.completion.user_data = user_data;
    coll.collective.run->execution.tell_end(&coll.completion);
    leave(*coll.collective.group, lock);
}

} // namespace

UCG_PUBLIC ucg_status_t ucg_coll_start(ucg_coll_h coll) {
    return guarded([&] {
        Collective& collective = coll->collective;
        Group& group = *collective.group;
        Group::Lock lock = group.lock();
        group.start(collective);
        if (collective.run->execution.in_progress()) {
            group.advance(collective.run->execution, lock);
        }
        const ucg_status_t state = ucg::capi::state_of(group, collective);
        leave(group, lock);
        return state;
    });
}

UCG_PUBLIC ucg_status_t ucg_coll_post(ucg_coll_h coll, unsigned* looks, void* user_data) {
    return guarded([&] {
        Collective& collective = coll->collective;
        Group& group = *collective.group;
        Group::Lock lock = group.lock();
        const unsigned most = std::exchange(*looks, 0);
        group.start(collective);
        if (collective.run->execution.in_progress()) {
            *looks = look_for_end(group, collective.run->execution, most, lock);
        }
        const ucg_status_t state = ucg::capi::state_of(group, collective);
        if (state == UCG_INPROGRESS) {
            leave_posted(*coll, user_data, lock);
        }
        return state;
    });
}

UCG_PUBLIC ucg_status_t ucg_coll_test(ucg_coll_h coll) {
    return guarded([&] {
        Group& group = *coll->collective.group;
        Group::Lock lock = group.lock();
        if (coll->collective.run->execution.in_progress()) {
            group.advance(coll->collective.run->execution, lock);
        }
        return ucg::capi::state_of(group, coll->collective);
    });
}

UCG_PUBLIC ucg_status_t ucg_coll_wait(ucg_coll_h coll) {
    return guarded([&] {
        Group& group = *coll->collective.group;
        {
            const Group::Lock lock = group.lock();
            coll->collective.run->execution.keep_operator(true);
        }
        return ucg::capi::wait_for_end(group, coll->collective);
    });
}

UCG_PUBLIC ucg_status_t ucg_coll_repeat(ucg_coll_h coll, const void* send_buffer,
                                        void* recv_buffer) {
    return guarded([&] {
        Group& group = *coll->collective.group;
        bool done = false;
        {
            const std::lock_guard lock(group.mutex());
            if (coll->collective.type == ucg::graph::Collective::alltoallv &&
                group.mean_block_matters()) [[unlikely]] {
                return UCG_ERR_UNSUPPORTED;
            }
            ucg::engine::Execution& execution = coll->collective.run->execution;
            execution.bind_buffers(coll->binding.input(send_buffer, recv_buffer),
                                   coll->binding.output(recv_buffer));
            group.start(coll->collective);
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

UCG_PUBLIC void ucg_coll_free(ucg_coll_h coll) {
    static_cast<void>(guarded([&] {
        Group& group = *coll->collective.group;
        Group::Lock lock = group.lock();
        UCG_ASSERT(!coll->collective.run->execution.in_progress());
        group.release(coll->collective);
        group.give_back(coll);
        return UCG_OK;
    }));
}

UCG_PUBLIC ucg_status_t ucg_coll_run(ucg_group_h handle, const ucg_coll_params_t* params) {
    return guarded([&] {
        Group& group = *handle->group;
        if (params->type == UCG_COLL_ALLTOALLV) [[unlikely]] {
            if (const ucg_status_t agreed = ucg::capi::agree_on_blocks(group, *params);
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
    return guarded([&] {
        Group& group = *handle->group;
        Group::Lock lock = group.lock();
        const unsigned most = std::exchange(*looks, 0);
        Status status;
        const ucg::capi::KnownCall* const call = group.understand(*params, status);
        if (call == nullptr) [[unlikely]] {
            return report(status);
        }
        ucg_request& coll = group.spare_request(); // Before anything starts: it may allocate.
        Collective collective = group.prepare(*params, *call);
        group.start(collective);
        if (!collective.run->execution.in_progress()) {
            return ucg::capi::end(group, collective);
        }
        static_cast<void>(group.take_request());
        coll.binding = call->binding;
        coll.collective = collective;
        *looks = look_for_end(group, collective.run->execution, most, lock);
        if (!collective.run->execution.in_progress()) {
            group.give_back(&coll);
            return ucg::capi::end(group, collective);
        }
        *coll_p = &coll;
        leave_posted(coll, user_data, lock);
        return UCG_INPROGRESS;
    });
}

UCG_PUBLIC ucg_status_t ucg_group_query(ucg_group_h group, ucg_group_attr_t* attr_p) {
    return guarded([&] {
        const Group::Lock lock = group->group->lock();
        group->group->query(*attr_p);
        return UCG_OK;
    });
}

UCG_PUBLIC ucg_status_t ucg_group_explain(ucg_group_h group, const ucg_coll_params_t* params,
                                          FILE* stream) {
    return guarded([&] {
        const Group::Lock lock = group->group->lock();
        return report(group->group->explain(*params, stream));
    });
}

} // extern "C"
