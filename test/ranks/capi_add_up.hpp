// An allreduce that a test of the C API waits for in one of several ways.
#pragma once

#include <chrono>
#include <cstdint>
#include <sched.h>
#include <thread>
#include <vector>

#include "ucg/ucg.h"

namespace ucg::test {

/// Adds up `count` numbers of each rank. `blocks`: by a blocking call; else the rank starts the
/// collective and asks for its end, and yields or sleeps for `pause` before each time.
inline ucg_status_t add_up(ucg_group_h group, std::uint64_t count, bool blocks,
                           std::chrono::milliseconds pause = {}) {
    std::vector<std::int64_t> in(count, 1);
    std::vector<std::int64_t> out(count);
    ucg_coll_params_t params = {};
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.type = UCG_COLL_ALLREDUCE;
    params.count = count;
    params.element_bytes = sizeof(std::int64_t);
    params.datatype = UCG_DT_INT64;
    params.op = UCG_OP_SUM;
    params.send_buffer = in.data();
    params.recv_buffer = out.data();
    if (blocks) {
        return ucg_coll_run(group, &params);
    }
    ucg_coll_h call = nullptr;
    ucg_status_t status = ucg_coll_init(group, &params, &call);
    if (status == UCG_OK) {
        status = ucg_coll_start(call);
    }
    while (status == UCG_INPROGRESS) {
        if (pause.count() == 0) {
            sched_yield();
        } else {
            std::this_thread::sleep_for(pause);
        }
        status = ucg_coll_test(call);
    }
    if (call != nullptr) {
        ucg_coll_free(call);
    }
    return status;
}

} // namespace ucg::test
