// What the caller tells of its process when it makes a context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "ucg/ucg.h"

namespace ucg::capi {

/// A copy of what the caller tells. Its structure is shorter than today's where its header is
/// older, so no field is read but those that its mask names.
struct ContextParams {
    std::string name = "ucg"; ///< For messages.
    bool threaded = false;    ///< Several threads use the context.
    bool host_yields = false; ///< The host's own waits give the processor away.
    unsigned (*progress)(void* arg, unsigned flags) = nullptr; ///< The host's; null: it has none.
    void* progress_arg = nullptr;
    unsigned local_processes = 0; ///< The job's, on this host; 0: not told, as of what follows.
    std::size_t estimated_num_eps = 0;
    std::size_t estimated_num_ppn = 0;
    std::optional<std::uint32_t> local_rank;

    ContextParams() = default;
    /// `params`: null if the caller tells nothing.
    explicit ContextParams(const ucg_context_params_t* params) {
        const auto has = [params](std::uint64_t field) {
            return params != nullptr && (params->field_mask & field) != 0;
        };
        if (has(UCG_CONTEXT_PARAM_FIELD_NAME) && params->name != nullptr) {
            name = params->name;
        }
        threaded = has(UCG_CONTEXT_PARAM_FIELD_THREAD_MODE) &&
                   params->thread_mode == UCG_THREAD_MODE_MULTIPLE;
        host_yields = has(UCG_CONTEXT_PARAM_FIELD_YIELDS) && params->yields != 0;
        if (has(UCG_CONTEXT_PARAM_FIELD_PROGRESS)) {
            progress = params->progress;
            progress_arg = params->progress_arg;
        }
        if (has(UCG_CONTEXT_PARAM_FIELD_LOCAL_PROCESSES)) {
            local_processes = params->local_processes;
        }
        if (has(UCG_CONTEXT_PARAM_FIELD_LOCAL_RANK)) {
            local_rank = params->local_rank;
        }
        if (has(UCG_CONTEXT_PARAM_FIELD_ESTIMATED_NUM_EPS)) {
            estimated_num_eps = params->estimated_num_eps;
        }
        if (has(UCG_CONTEXT_PARAM_FIELD_ESTIMATED_NUM_PPN)) {
            estimated_num_ppn = params->estimated_num_ppn;
        }
    }
};

} // namespace ucg::capi
