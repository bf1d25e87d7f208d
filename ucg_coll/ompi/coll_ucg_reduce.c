/*
 * MPI_Reduce, MPI_Allreduce, MPI_Scan and MPI_Exscan: one vector goes in, at most one comes out.
 */
#include "coll_ucg_background.h"
#include "coll_ucg_call.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"
#include "coll_ucg_restart.h"

/** Opens the buffers. With MPI_IN_PLACE the operands are where the result goes. An address does not
 *  tell whether there is a buffer: MPI_BOTTOM is null. */
static ucg_status_t open_buffers(coll_ucg_call_t* call, const void* sbuf, void* rbuf, size_t count,
                                 const ompi_datatype_t* type) {
    const int rank = coll_ucg_rank(call);
    const bool has_output = UCG_COLL_REDUCE != call->params.type || (int)call->params.root == rank;
    ucg_status_t status = UCG_OK;
    if (has_output) {
        status = coll_ucg_open_receive(call, rbuf, count, type);
    }
    if (UCG_OK == status && MPI_IN_PLACE == sbuf) {
        coll_ucg_read_in_place(call, 0, count);
    } else if (UCG_OK == status) {
        status = coll_ucg_open_send(call, sbuf, count, type);
    }
    if (UCG_COLL_EXSCAN == call->params.type && 0 == rank) {
        call->output.store_count = 0; /* The result is undefined: it is not written. */
    }
    return status;
}

ucg_status_t coll_ucg_open_whole_reduction(coll_ucg_call_t* call, ucg_coll_type_t collective,
                                           const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                           ompi_datatype_t* type, ompi_op_t* op, int root) {
    call->params = (ucg_coll_params_t){
        .type = collective,
        .root = (uint32_t)root,
        .count = count,
    };
    call->empty = 0 == coll_ucg_packed_bytes(type, (size_t)count);
    if (call->empty) {
        return UCG_OK;
    }
    const ucg_status_t status = coll_ucg_open_reduction(call, op, type);
    return UCG_OK == status ? open_buffers(call, sbuf, rbuf, (size_t)count, type) : status;
}

/* ------------------------------------------------------------------ reduce */

static COLL_UCG_APART int reduce_anew(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                      struct ompi_datatype_t* dtype, struct ompi_op_t* op, int root,
                                      struct ompi_communicator_t* comm,
                                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status =
            coll_ucg_run_first(&call, coll_ucg_open_whole_reduction(&call, UCG_COLL_REDUCE, sbuf,
                                                                    rbuf, count, dtype, op, root));
        const coll_ucg_latest_t latest = {.type = dtype,
                                          .op = op,
                                          .count = count,
                                          .root = root,
                                          .in_place = MPI_IN_PLACE == sbuf};
        coll_ucg_remember_call(&call, COLL_UCG_FN_reduce, &latest, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, reduce, status, sbuf, rbuf, count, dtype, op, root, comm);
}

int mca_coll_ucg_reduce(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                        struct ompi_datatype_t* dtype, struct ompi_op_t* op, int root,
                        struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_reduce];
    if (coll_ucg_repeats(latest, dtype, op, count, in_place) && latest->root == root) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_reduce, in_place ? NULL : sbuf, rbuf);
    }
    return reduce_anew(sbuf, rbuf, count, dtype, op, root, comm, module);
}

static COLL_UCG_APART int ireduce_anew(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                       struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                       int root, struct ompi_communicator_t* comm,
                                       ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const coll_ucg_latest_t latest = {.type = dtype,
                                          .op = op,
                                          .count = count,
                                          .root = root,
                                          .in_place = MPI_IN_PLACE == sbuf};
        const ucg_status_t opened = coll_ucg_open_whole_reduction(
            &mine->call, UCG_COLL_REDUCE, sbuf, rbuf, count, dtype, op, root);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_ireduce, &latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ireduce, status, sbuf, rbuf, count, dtype, op, root, comm,
                               request);
}

int mca_coll_ucg_ireduce(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                         struct ompi_datatype_t* dtype, struct ompi_op_t* op, int root,
                         struct ompi_communicator_t* comm, ompi_request_t** request,
                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_ireduce);
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, count, in_place) && latest->root == root) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_ireduce, in_place ? NULL : sbuf, rbuf, request);
    }
    return ireduce_anew(sbuf, rbuf, count, dtype, op, root, comm, request, module);
}

int mca_coll_ucg_reduce_init(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                             struct ompi_datatype_t* dtype, struct ompi_op_t* op, int root,
                             struct ompi_communicator_t* comm, struct ompi_info_t* info,
                             ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status =
            coll_ucg_keep_call(mine,
                               coll_ucg_open_whole_reduction(&mine->call, UCG_COLL_REDUCE, sbuf,
                                                             rbuf, count, dtype, op, root),
                               request);
    }
    COLL_UCG_LEAVE(ucg, reduce_init, status, sbuf, rbuf, count, dtype, op, root, comm, info,
                   request);
}

/* ------------------------------------------------------------------ allreduce */

static COLL_UCG_APART int allreduce_anew(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                         struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                         struct ompi_communicator_t* comm,
                                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status =
            coll_ucg_run_first(&call, coll_ucg_open_whole_reduction(&call, UCG_COLL_ALLREDUCE, sbuf,
                                                                    rbuf, count, dtype, op, 0));
        const coll_ucg_latest_t latest = {
            .type = dtype, .op = op, .count = count, .in_place = MPI_IN_PLACE == sbuf};
        coll_ucg_remember_call(&call, COLL_UCG_FN_allreduce, &latest, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, allreduce, status, sbuf, rbuf, count, dtype, op, comm);
}

int mca_coll_ucg_allreduce(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                           struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                           struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_allreduce], dtype, op, count, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_allreduce, in_place ? NULL : sbuf, rbuf);
    }
    return allreduce_anew(sbuf, rbuf, count, dtype, op, comm, module);
}

/**
 * May this be a call by which Open MPI makes communicators? Those of MPI_Comm_idup() come whenever
 * that is advanced, at other places among the program's calls on each rank, whereas a group's
 * collectives have one order on all ranks. The previous module keeps its nonblocking calls apart
 * from blocking ones.
 */
static bool may_make_communicators(coll_ucg_count_t count, const ompi_datatype_t* type,
                                   const ompi_op_t* op) {
    return 1 == count && &ompi_mpi_int.dt == type &&
           (&ompi_mpi_op_max.op == op || &ompi_mpi_op_min.op == op);
}

static COLL_UCG_APART int iallreduce_anew(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                          struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                          struct ompi_communicator_t* comm,
                                          ompi_request_t** request,
                                          mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = may_make_communicators(count, dtype, op) && !coll_ucg_is_making_blocking()
                              ? coll_ucg_pass_in_order(ucg)
                              : coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const coll_ucg_latest_t latest = {
            .type = dtype, .op = op, .count = count, .in_place = MPI_IN_PLACE == sbuf};
        const ucg_status_t opened = coll_ucg_open_whole_reduction(&mine->call, UCG_COLL_ALLREDUCE,
                                                                  sbuf, rbuf, count, dtype, op, 0);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_iallreduce, &latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, iallreduce, status, sbuf, rbuf, count, dtype, op, comm,
                               request);
}

int mca_coll_ucg_iallreduce(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                            struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                            struct ompi_communicator_t* comm, ompi_request_t** request,
                            mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_iallreduce);
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, count, in_place)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_iallreduce, in_place ? NULL : sbuf, rbuf, request);
    }
    return iallreduce_anew(sbuf, rbuf, count, dtype, op, comm, request, module);
}

int mca_coll_ucg_allreduce_init(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine,
                                    coll_ucg_open_whole_reduction(&mine->call, UCG_COLL_ALLREDUCE,
                                                                  sbuf, rbuf, count, dtype, op, 0),
                                    request);
    }
    COLL_UCG_LEAVE(ucg, allreduce_init, status, sbuf, rbuf, count, dtype, op, comm, info, request);
}

/* ------------------------------------------------------------------ scan */

static COLL_UCG_APART int scan_anew(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                    struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                    struct ompi_communicator_t* comm,
                                    mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status =
            coll_ucg_run_first(&call, coll_ucg_open_whole_reduction(&call, UCG_COLL_SCAN, sbuf,
                                                                    rbuf, count, dtype, op, 0));
        const coll_ucg_latest_t latest = {
            .type = dtype, .op = op, .count = count, .in_place = MPI_IN_PLACE == sbuf};
        coll_ucg_remember_call(&call, COLL_UCG_FN_scan, &latest, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, scan, status, sbuf, rbuf, count, dtype, op, comm);
}

int mca_coll_ucg_scan(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                      struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                      struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_scan], dtype, op, count, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_scan, in_place ? NULL : sbuf, rbuf);
    }
    return scan_anew(sbuf, rbuf, count, dtype, op, comm, module);
}

static COLL_UCG_APART int iscan_anew(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                     struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                     struct ompi_communicator_t* comm, ompi_request_t** request,
                                     mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const coll_ucg_latest_t latest = {
            .type = dtype, .op = op, .count = count, .in_place = MPI_IN_PLACE == sbuf};
        const ucg_status_t opened = coll_ucg_open_whole_reduction(&mine->call, UCG_COLL_SCAN, sbuf,
                                                                  rbuf, count, dtype, op, 0);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_iscan, &latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, iscan, status, sbuf, rbuf, count, dtype, op, comm, request);
}

int mca_coll_ucg_iscan(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                       struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                       struct ompi_communicator_t* comm, ompi_request_t** request,
                       mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_iscan);
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, count, in_place)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_iscan, in_place ? NULL : sbuf, rbuf, request);
    }
    return iscan_anew(sbuf, rbuf, count, dtype, op, comm, request, module);
}

int mca_coll_ucg_scan_init(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                           struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                           struct ompi_communicator_t* comm, struct ompi_info_t* info,
                           ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine,
                                    coll_ucg_open_whole_reduction(&mine->call, UCG_COLL_SCAN, sbuf,
                                                                  rbuf, count, dtype, op, 0),
                                    request);
    }
    COLL_UCG_LEAVE(ucg, scan_init, status, sbuf, rbuf, count, dtype, op, comm, info, request);
}

/* ------------------------------------------------------------------ exscan */

static COLL_UCG_APART int exscan_anew(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                      struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                      struct ompi_communicator_t* comm,
                                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status =
            coll_ucg_run_first(&call, coll_ucg_open_whole_reduction(&call, UCG_COLL_EXSCAN, sbuf,
                                                                    rbuf, count, dtype, op, 0));
        const coll_ucg_latest_t latest = {
            .type = dtype, .op = op, .count = count, .in_place = MPI_IN_PLACE == sbuf};
        coll_ucg_remember_call(&call, COLL_UCG_FN_exscan, &latest, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, exscan, status, sbuf, rbuf, count, dtype, op, comm);
}

int mca_coll_ucg_exscan(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                        struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                        struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_exscan], dtype, op, count, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_exscan, in_place ? NULL : sbuf, rbuf);
    }
    return exscan_anew(sbuf, rbuf, count, dtype, op, comm, module);
}

static COLL_UCG_APART int iexscan_anew(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                       struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                       struct ompi_communicator_t* comm, ompi_request_t** request,
                                       mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const coll_ucg_latest_t latest = {
            .type = dtype, .op = op, .count = count, .in_place = MPI_IN_PLACE == sbuf};
        const ucg_status_t opened = coll_ucg_open_whole_reduction(&mine->call, UCG_COLL_EXSCAN,
                                                                  sbuf, rbuf, count, dtype, op, 0);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_iexscan, &latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, iexscan, status, sbuf, rbuf, count, dtype, op, comm, request);
}

int mca_coll_ucg_iexscan(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                         struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                         struct ompi_communicator_t* comm, ompi_request_t** request,
                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_iexscan);
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, count, in_place)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_iexscan, in_place ? NULL : sbuf, rbuf, request);
    }
    return iexscan_anew(sbuf, rbuf, count, dtype, op, comm, request, module);
}

int mca_coll_ucg_exscan_init(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                             struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                             struct ompi_communicator_t* comm, struct ompi_info_t* info,
                             ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine,
                                    coll_ucg_open_whole_reduction(&mine->call, UCG_COLL_EXSCAN,
                                                                  sbuf, rbuf, count, dtype, op, 0),
                                    request);
    }
    COLL_UCG_LEAVE(ucg, exscan_init, status, sbuf, rbuf, count, dtype, op, comm, info, request);
}
