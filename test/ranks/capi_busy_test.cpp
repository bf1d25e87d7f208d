// Progress looks only at groups that have something in progress, however many groups there are.
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/context.hpp"

namespace {

using ucg::test::run_thread_ranks;
using ucg::test::ThreadRank;

constexpr std::size_t kGroups = 20;

/// Uses the groups; returns what was wrong, or nothing.
std::string use_groups(ThreadRank& me, ucg_context_h context,
                       const std::vector<ucg_group_h>& groups) {
    const auto busy = [&] {
        ucg_context_progress(context);
        return reinterpret_cast<ucg::capi::Context*>(context)->busy_groups();
    };
    ucg_coll_params_t params = {};
    params.type = UCG_COLL_BARRIER;
    for (ucg_group_h group : groups) {
        if (ucg_coll_run(group, &params) != UCG_OK) {
            return "a barrier failed";
        }
    }
    if (busy() != 0) {
        return "busy after barriers";
    }
    ucg_coll_h coll = nullptr;
    if (ucg_coll_init(groups[kGroups / 2], &params, &coll) != UCG_OK) {
        return "no barrier";
    }
    if (me.rank == 1) {
        me.meeting->wait();
    }
    ucg_coll_start(coll);
    std::string complaint;
    if (me.rank == 0) { // The other rank has not come yet.
        complaint = busy() == 1 ? "" : "not busy in a barrier";
        me.meeting->wait();
    }
    if (ucg_coll_wait(coll) != UCG_OK || busy() != 0) {
        complaint = "busy after a barrier, or it failed";
    }
    ucg_coll_free(coll);
    return complaint;
}

} // namespace

TEST_CASE("capi: only groups with something in progress are looked at",
          "[capi][nonblocking][shm]") {
    CHECK(run_thread_ranks(2, [](ThreadRank& me) -> std::string {
              ucg_config_h config = nullptr;
              ucg_config_read(&config);
              ucg_config_modify(config, "TLS", "shm");
              ucg_context_h context = nullptr;
              ucg_context_create(nullptr, config, &context);
              ucg_config_release(config);
              std::vector<ucg_group_h> groups(kGroups);
              const ucg_group_params_t params = me.group_params();
              std::string complaint;
              for (ucg_group_h& group : groups) {
                  if (ucg_group_create(context, &params, &group) != UCG_OK) {
                      complaint = "no group";
                  }
              }
              if (complaint.empty()) {
                  complaint = use_groups(me, context, groups);
              }
              me.meeting->wait();
              for (ucg_group_h group : groups) {
                  if (group != nullptr) {
                      ucg_group_destroy(group);
                  }
              }
              ucg_context_destroy(context);
              return complaint;
          }) == "");
}
