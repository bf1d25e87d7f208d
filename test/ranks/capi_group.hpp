// A group for tests of the C API: its ranks are threads of this process and share memory.
#pragma once

#include <functional>
#include <string>

#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"

namespace ucg::test {

/// What a rank does in the group. It returns what is wrong, "" if nothing is.
using GroupBody = std::function<std::string(ThreadRank& me, ucg_context_h, ucg_group_h)>;

/// On so many ranks, makes the group, calls `body` and destroys the group. Returns all complaints.
inline std::string run_shm_group(unsigned ranks, const GroupBody& body) {
    return run_thread_ranks(ranks, [&](ThreadRank& me) -> std::string {
        ucg_config_h config = nullptr;
        ucg_config_read(&config);
        ucg_config_modify(config, "TLS", "shm");
        ucg_context_h context = nullptr;
        ucg_context_create(nullptr, config, &context);
        ucg_config_release(config);
        const ucg_group_params_t params = me.group_params();
        ucg_group_h group = nullptr;
        std::string complaint = "no group";
        if (ucg_group_create(context, &params, &group) == UCG_OK) {
            complaint = body(me, context, group);
            me.meeting->wait();
            if (ucg_group_destroy(group) != UCG_OK && complaint.empty()) {
                complaint = "the group cannot be destroyed";
            }
        }
        ucg_context_destroy(context);
        return complaint;
    });
}

} // namespace ucg::test
