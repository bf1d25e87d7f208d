// The extern "C" functions but for those of collectives. Each is one call to guarded().
#include "ucg/ucg.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "ucg_coll/base/log_handler.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/group.hpp"
#include "ucg_coll/capi/group_making.hpp"
#include "ucg_coll/capi/guard.hpp"
#include "ucg_coll/capi/handles.hpp"
#include "ucg_coll/capi/version.hpp"

using ucg::Code;
using ucg::Result;
using ucg::Status;
using ucg::capi::Config;
using ucg::capi::Context;
using ucg::capi::Group;
using ucg::capi::guarded;
using ucg::capi::report;

namespace ucg::capi {

namespace {

bool is_rank(const ucg_group_params_t* params) {
    return params != nullptr && params->size > 0 && params->rank < params->size &&
           params->size <= 0x7fffffffU;
}

/// Can the caller start an exchange without waiting? A structure of a caller with an earlier header
/// ends where its mask says.
bool can_start(const ucg_group_params_t& params) {
    return (params.field_mask & UCG_GROUP_PARAM_FIELD_OOB_START) != 0 &&
           params.oob_allgather_start != nullptr && params.oob_allgather_test != nullptr;
}

/// Warns once of unused variables, on rank 0. To be called on all ranks: any of them may be rank 0
/// of another group.
void tell_of_variables(Context* context, std::uint32_t rank) {
    if (context != nullptr && context->remarks().first(Once::variables) && rank == 0) {
        context->config().warn_of_unused_variables();
    }
}

/// Can this library serve a program that was compiled with a header of that version? If it cannot,
/// the user is told.
bool serves(unsigned api_major, unsigned api_minor) {
    if (api_major == UCG_API_MAJOR && api_minor <= UCG_API_MINOR) {
        return true;
    }
    log(LogLevel::error,
        "this program was compiled with <ucg/ucg.h> of API {}.{}, but libucg {} has API {}.{}: "
        "compile it anew, or run it with the library of its header",
        api_major, api_minor, UCG_VERSION_STRING, UCG_API_MAJOR, UCG_API_MINOR);
    return false;
}

/// A mode that is not known may have been meant for another library, in which the threads of the
/// program are under the same number.
Status check_thread_mode(const ucg_context_params_t* params) {
    if (params == nullptr || (params->field_mask & UCG_CONTEXT_PARAM_FIELD_THREAD_MODE) == 0 ||
        params->thread_mode == UCG_THREAD_MODE_SINGLE ||
        params->thread_mode == UCG_THREAD_MODE_MULTIPLE) {
        return {};
    }
    return ucg::failure(
        Code::invalid_argument,
        "thread_mode is {}, there are UCG_THREAD_MODE_SINGLE ({}) and _MULTIPLE ({})",
        static_cast<int>(params->thread_mode), int{UCG_THREAD_MODE_SINGLE},
        int{UCG_THREAD_MODE_MULTIPLE});
}

/// Returns the code of a failure that all ranks share. One of them may have lacked memory; but that
/// no memory is left for a group is the code of a rank that failed alone.
ucg_status_t agreed(Code code) {
    return to_c(code == Code::out_of_memory ? Code::unreachable : code);
}

/// Gives the group out. If there is none, the rank that knows why has told.
ucg_status_t give_out(MadeGroup made, std::unique_ptr<ucg_group> handle, ucg_group_h* group_p) {
    if (!made.ok()) {
        return agreed(made.status().code());
    }
    handle->group = std::move(*made);
    *group_p = handle.release();
    return UCG_OK;
}

/// Runs a part of the making of a group. Tells of a failure of this rank alone.
template <typename Body>
ucg_status_t guarded_making(std::uint32_t rank, std::uint32_t size, Body&& body) {
    const ucg_status_t status = guarded(body);
    if (status == UCG_ERR_NO_MEMORY || status == UCG_ERR_INTERNAL) {
        static_cast<void>(guarded([&] {
            return report(failure(Code::out_of_memory,
                                  "rank {}: memory ran out while a group of {} ranks was made; the "
                                  "others may wait for it, so the program should end",
                                  rank, size));
        }));
    }
    return status;
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
    case UCG_ERR_BUSY: return "Still in use";
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

UCG_PUBLIC ucg_log_handler_t ucg_log_set_handler(ucg_log_handler_t handler, void* arg,
                                                 void** old_arg_p) {
    const ucg::LogSink old = ucg::set_log_sink({handler, arg});
    if (old_arg_p != nullptr) {
        *old_arg_p = old.argument;
    }
    return old.take;
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

UCG_PUBLIC ucg_status_t ucg_context_create_version(unsigned api_major, unsigned api_minor,
                                                   const ucg_context_params_t* params,
                                                   ucg_config_h config, ucg_context_h* context_p) {
    return guarded([&] {
        if (!ucg::capi::serves(api_major, api_minor)) {
            return UCG_ERR_UNSUPPORTED;
        }
        if (const Status status = ucg::capi::check_thread_mode(params); !status.ok()) {
            return report(status);
        }
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
        events =
            context->progress(ucg::capi::Busy::skip).events + context->completions().call_back();
        return UCG_OK;
    }));
    return events;
}

UCG_PUBLIC unsigned ucg_context_poll(ucg_context_h context, ucg_completion_t* completions,
                                     unsigned max) {
    unsigned count = 0;
    static_cast<void>(guarded([&] {
        context->progress(ucg::capi::Busy::skip);
        context->completions().call_back();
        while (count < max) {
            ucg::capi::Completion* const ended = context->completions().take();
            if (ended == nullptr) {
                break;
            }
            void* const user_data = ended->user_data;
            completions[count++] = {user_data, ucg::capi::tell(*ended)};
        }
        return UCG_OK;
    }));
    return count;
}

UCG_PUBLIC ucg_status_t ucg_context_disconnect(ucg_context_h context) {
    return guarded([&] {
        context->network().disconnect();
        return UCG_OK;
    });
}

UCG_PUBLIC ucg_status_t ucg_context_destroy(ucg_context_h context) {
    return guarded([&] {
        if (const std::size_t groups = context->groups().count(); groups > 0) {
            return report(ucg::failure(Code::busy,
                                       "ucg_context_destroy: {} has {} groups; destroy them first",
                                       context->name(), groups));
        }
        if (const std::size_t creations = context->creation_count(); creations > 0) {
            return report(ucg::failure(Code::busy,
                                       "ucg_context_destroy: {} makes {} groups; end or abandon "
                                       "them first",
                                       context->name(), creations));
        }
        delete context;
        return UCG_OK;
    });
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
        if (address == nullptr ||
            context->memory().release(static_cast<const std::byte*>(address))) {
            return UCG_OK;
        }
        return report(Status(Code::invalid_argument,
                             "ucg_mem_free: not memory that ucg_mem_alloc gave for this context"));
    });
}

UCG_PUBLIC ucg_status_t ucg_group_create(ucg_context_h context, const ucg_group_params_t* params,
                                         ucg_group_h* group_p) {
    if (!ucg::capi::is_rank(params) || params->oob_allgather == nullptr) {
        return guarded([&] {
            return report(Status(Code::invalid_argument,
                                 "ucg_group_create: oob_allgather must be set and rank < size"));
        });
    }
    return ucg::capi::guarded_making(params->rank, params->size, [&] {
        ucg::capi::tell_of_variables(context, params->rank);
        auto handle = std::make_unique<ucg_group>();
        return ucg::capi::give_out(ucg::capi::make_group(context, *params), std::move(handle),
                                   group_p);
    });
}

UCG_PUBLIC ucg_status_t ucg_group_create_start(ucg_context_h context,
                                               const ucg_group_params_t* params,
                                               ucg_group_creation_h* creation_p) {
    if (!ucg::capi::is_rank(params) || !ucg::capi::can_start(*params)) {
        return guarded([&] {
            return report(Status(Code::invalid_argument,
                                 "ucg_group_create_start: oob_allgather_start and "
                                 "oob_allgather_test must be set and rank < size"));
        });
    }
    return ucg::capi::guarded_making(params->rank, params->size, [&] {
        ucg::capi::tell_of_variables(context, params->rank);
        auto creation = std::make_unique<ucg_group_creation>(context, *params);
        creation->making.begin();
        *creation_p = creation.release();
        return UCG_OK;
    });
}

UCG_PUBLIC ucg_status_t ucg_group_create_test(ucg_group_creation_h creation, ucg_group_h* group_p) {
    const ucg::capi::GroupParams& params = creation->making.params();
    return ucg::capi::guarded_making(params.rank, params.size, [&] {
        std::unique_ptr<ucg_group_creation> owned(creation);
        std::optional<ucg::capi::MadeGroup> made = creation->making.advance();
        if (!made) {
            static_cast<void>(owned.release());
            return UCG_INPROGRESS;
        }
        return ucg::capi::give_out(std::move(*made), std::move(owned->handle), group_p);
    });
}

UCG_PUBLIC void ucg_group_create_abandon(ucg_group_creation_h creation) {
    delete creation;
}

UCG_PUBLIC ucg_status_t ucg_group_trim(ucg_group_h group, uint64_t bytes) {
    return guarded([&] {
        group->group->trim(bytes);
        return UCG_OK;
    });
}

UCG_PUBLIC void ucg_group_fail(ucg_group_h group) {
    static_cast<void>(guarded([&] {
        const Group::Lock lock = group->group->lock();
        group->group->fail(Code::io_error, "the program asks for it");
        return UCG_OK;
    }));
}

UCG_PUBLIC ucg_status_t ucg_group_destroy(ucg_group_h group) {
    return guarded([&] {
        if (const Status status = group->group->may_end(); !status.ok()) {
            return report(status);
        }
        Context& context = group->group->context();
        delete group;
        context.memory().drop_unused();
        return UCG_OK;
    });
}

UCG_PUBLIC const char* ucg_coll_type_string(ucg_coll_type_t type) {
    // The names are literals, hence terminated.
    return type >= 0 && type < UCG_COLL_LAST
               ? ucg::graph::name(static_cast<ucg::graph::Collective>(type)).data()
               : nullptr;
}

extern UCG_PUBLIC const unsigned char ucg_in_place[1]; // Of <ucg/ucg_calls.h>: not for us here.
const unsigned char ucg_in_place[1] = {0};

UCG_PUBLIC uint64_t ucg_datatype_bytes(ucg_datatype_t datatype) {
    return ucg::capi::datatype_bytes(datatype);
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
