/*
 * MPI_Reduce, MPI_Allreduce, MPI_Scan and MPI_Exscan: one vector goes in, at most one comes out.
 */
#include "coll_ucg_forms.h"

/** Opens the buffers. With MPI_IN_PLACE the operands are where the result goes. An address does not
 *  tell whether there is a buffer: MPI_BOTTOM is null. */
static ucg_status_t open_buffers(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    const size_t count = (size_t)arguments->rcount;
    const int rank = coll_ucg_rank(call);
    const bool has_output = UCG_COLL_REDUCE != call->params.type || (int)call->params.root == rank;
    ucg_status_t status = UCG_OK;
    if (has_output) {
        status = coll_ucg_open_receive(call, arguments->rbuf, count, arguments->rdtype);
    }
    if (UCG_OK == status && MPI_IN_PLACE == arguments->sbuf) {
        coll_ucg_read_in_place(call, 0, count);
    } else if (UCG_OK == status) {
        status = coll_ucg_open_send(call, arguments->sbuf, count, arguments->rdtype);
    }
    if (UCG_COLL_EXSCAN == call->params.type && 0 == rank) {
        call->output.store_count = 0; /* The result is undefined: it is not written. */
    }
    return status;
}

static ucg_status_t open_reduction(coll_ucg_call_t* call, ucg_coll_type_t collective,
                                   const coll_ucg_arguments_t* arguments) {
    call->params = (ucg_coll_params_t){
        .type = collective,
        .root = (uint32_t)arguments->root,
        .count = arguments->rcount,
    };
    call->empty = 0 == coll_ucg_packed_bytes(arguments->rdtype, (size_t)arguments->rcount);
    if (call->empty) {
        return UCG_OK;
    }
    const ucg_status_t status = coll_ucg_open_reduction(call, arguments->op, arguments->rdtype);
    return UCG_OK == status ? open_buffers(call, arguments) : status;
}

/* ------------------------------------------------------------------ reduce */

ucg_status_t coll_ucg_open_reduce(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    return open_reduction(call, UCG_COLL_REDUCE, arguments);
}

int mca_coll_ucg_reduce(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                        struct ompi_datatype_t* dtype, struct ompi_op_t* op, int root,
                        struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_reduce];
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, count, in_place) && latest->root == root) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_reduce, in_place ? NULL : sbuf, rbuf);
    }
    return coll_ucg_blocking_plain(ucg, COLL_UCG_FN_reduce,
                                   (coll_ucg_arguments_t){COLL_UCG_REDUCED, .root = root});
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
    return coll_ucg_nonblocking_plain(
        ucg, COLL_UCG_FN_ireduce,
        (coll_ucg_arguments_t){COLL_UCG_REDUCED, .root = root, .request = request});
}

int mca_coll_ucg_reduce_init(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                             struct ompi_datatype_t* dtype, struct ompi_op_t* op, int root,
                             struct ompi_communicator_t* comm, struct ompi_info_t* info,
                             ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(
        module, COLL_UCG_FN_reduce_init,
        (coll_ucg_arguments_t){COLL_UCG_REDUCED, .root = root, .info = info, .request = request});
}

/* ------------------------------------------------------------------ allreduce */

ucg_status_t coll_ucg_open_allreduce(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    return open_reduction(call, UCG_COLL_ALLREDUCE, arguments);
}

int mca_coll_ucg_allreduce(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                           struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                           struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_allreduce];
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, count, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_allreduce, in_place ? NULL : sbuf, rbuf);
    }
    return coll_ucg_blocking_plain(ucg, COLL_UCG_FN_allreduce,
                                   (coll_ucg_arguments_t){COLL_UCG_REDUCED});
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
    return coll_ucg_nonblocking_plain(ucg, COLL_UCG_FN_iallreduce,
                                      (coll_ucg_arguments_t){COLL_UCG_REDUCED, .request = request});
}

int mca_coll_ucg_allreduce_init(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(
        module, COLL_UCG_FN_allreduce_init,
        (coll_ucg_arguments_t){COLL_UCG_REDUCED, .info = info, .request = request});
}

/* ------------------------------------------------------------------ scan */

ucg_status_t coll_ucg_open_scan(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    return open_reduction(call, UCG_COLL_SCAN, arguments);
}

int mca_coll_ucg_scan(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                      struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                      struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_scan];
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, count, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_scan, in_place ? NULL : sbuf, rbuf);
    }
    return coll_ucg_blocking_plain(ucg, COLL_UCG_FN_scan, (coll_ucg_arguments_t){COLL_UCG_REDUCED});
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
    return coll_ucg_nonblocking_plain(ucg, COLL_UCG_FN_iscan,
                                      (coll_ucg_arguments_t){COLL_UCG_REDUCED, .request = request});
}

int mca_coll_ucg_scan_init(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                           struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                           struct ompi_communicator_t* comm, struct ompi_info_t* info,
                           ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(
        module, COLL_UCG_FN_scan_init,
        (coll_ucg_arguments_t){COLL_UCG_REDUCED, .info = info, .request = request});
}

/* ------------------------------------------------------------------ exscan */

ucg_status_t coll_ucg_open_exscan(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    return open_reduction(call, UCG_COLL_EXSCAN, arguments);
}

int mca_coll_ucg_exscan(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                        struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                        struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_exscan];
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, count, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_exscan, in_place ? NULL : sbuf, rbuf);
    }
    return coll_ucg_blocking_plain(ucg, COLL_UCG_FN_exscan,
                                   (coll_ucg_arguments_t){COLL_UCG_REDUCED});
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
    return coll_ucg_nonblocking_plain(ucg, COLL_UCG_FN_iexscan,
                                      (coll_ucg_arguments_t){COLL_UCG_REDUCED, .request = request});
}

int mca_coll_ucg_exscan_init(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                             struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                             struct ompi_communicator_t* comm, struct ompi_info_t* info,
                             ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(
        module, COLL_UCG_FN_exscan_init,
        (coll_ucg_arguments_t){COLL_UCG_REDUCED, .info = info, .request = request});
}
