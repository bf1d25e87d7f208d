// A collective or group that is started, freed or destroyed too early is refused, and goes on as if
// the call had not been made.
#include <cstdint>
#include <string>

#include "test/ranks/capi_group.hpp"
#include "test/support/catch.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::run_shm_group;
using ucg::test::ThreadRank;

void nothing(void* /*arg*/, ucg_coll_h /*coll*/, ucg_status_t /*status*/) {}

/// A sum of two ranks. The second rank comes only after the first has made all its attempts.
struct Sum {
    explicit Sum(ucg_group_h in) : group(in) {
        params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
        params.type = UCG_COLL_ALLREDUCE;
        params.count = 1;
        params.element_bytes = sizeof(mine);
        params.datatype = UCG_DT_UINT64;
        params.op = UCG_OP_SUM;
        params.send_buffer = &mine;
        params.recv_buffer = &total;
        ready = ucg_coll_init(group, &params, &coll) == UCG_OK;
    }
    Sum(const Sum&) = delete;
    Sum& operator=(const Sum&) = delete;

    /// True if all calls are refused for a collective that is in progress, or whose end is not
    /// known yet.
    bool refuses_all() {
        unsigned looks = 0;
        return ucg_coll_start(coll) == UCG_ERR_BUSY &&
               ucg_coll_post(coll, &looks, nullptr) == UCG_ERR_BUSY &&
               ucg_coll_start_cb(coll, nothing, nullptr) == UCG_ERR_BUSY &&
               ucg_coll_free(coll) == UCG_ERR_BUSY && ucg_group_destroy(group) == UCG_ERR_BUSY;
    }

    ucg_group_h group;
    ucg_coll_params_t params = {};
    ucg_coll_h coll = nullptr;
    std::uint64_t mine = 21;
    std::uint64_t total = 0;
    bool ready = false;
};

std::string start_too_often(ThreadRank& me, Sum& sum) {
    std::uint64_t other = 0;
    if (ucg_coll_start_cb(sum.coll, nullptr, nullptr) != UCG_ERR_INVALID_PARAM) {
        return "it starts although nobody is to be called back";
    }
    if (me.rank == 0 && (ucg_coll_start(sum.coll) != UCG_INPROGRESS || !sum.refuses_all() ||
                         ucg_coll_repeat(sum.coll, &sum.mine, &other) != UCG_ERR_BUSY ||
                         ucg_coll_restart(sum.coll, &sum.mine, &other) != UCG_ERR_BUSY)) {
        return "what was in progress was touched";
    }
    me.meeting->wait();
    if (me.rank == 1 && ucg_coll_start(sum.coll) < 0) {
        return "no start";
    }
    return ucg_coll_wait(sum.coll) == UCG_OK && sum.total == 42 && other == 0 ? "" : "a wrong sum";
}

std::string free_before_the_end_is_told(ThreadRank& me, ucg_context_h context, Sum& sum) {
    unsigned looks = 0;
    if (me.rank == 0 && (ucg_coll_post(sum.coll, &looks, &sum) != UCG_INPROGRESS)) {
        return "no post";
    }
    me.meeting->wait();
    if (me.rank == 1) {
        return ucg_coll_start(sum.coll) >= 0 && ucg_coll_wait(sum.coll) == UCG_OK ? "" : "no end";
    }
    sum.total = 0;
    for (unsigned round = 0; round < 1000000 && sum.total == 0; ++round) {
        ucg_context_progress(context);
    }
    ucg_completion_t end = {};
    if (!sum.refuses_all() || ucg_context_poll(context, &end, 1) != 1 || end.user_data != &sum) {
        return "an end that nobody knew of was not kept";
    }
    return "";
}

std::string use_group(ThreadRank& me, ucg_context_h context, ucg_group_h group) {
    Sum sum(group);
    std::string complaint = sum.ready ? start_too_often(me, sum) : "no collective";
    me.meeting->wait();
    if (complaint.empty()) {
        complaint = free_before_the_end_is_told(me, context, sum);
    }
    return complaint.empty() && ucg_coll_free(sum.coll) != UCG_OK ? "it cannot be freed"
                                                                  : complaint;
}

} // namespace

TEST_CASE("capi: what is in use is neither started nor ended", "[capi][nonblocking][shm]") {
    CHECK(run_shm_group(2, use_group) == "");
}
