/*
 * MPI_Reduce, MPI_Allreduce, MPI_Scan and MPI_Exscan: one vector goes in, at most one comes out.
 */
#include "coll_ucg.h"

/** What the four have in common. No address tells whether there is a buffer: MPI_BOTTOM is null. */
typedef struct {
    enum coll_ucg_function function;
    ucg_coll_type_t type;
    const void* input;
    void* output;
    size_t count;
    ompi_datatype_t* datatype;
    ompi_op_t* op;
    int root;
} vector_reduction_t;

/** Does this rank have a receive buffer? */
static bool has_output(mca_coll_ucg_module_t* ucg, const vector_reduction_t* call) {
    return UCG_COLL_REDUCE != call->type || call->root == ompi_comm_rank(ucg->comm);
}

/** Opens the buffers that the call has; with MPI_IN_PLACE the operands are where the result goes.
 */
static ucg_status_t open_buffers(mca_coll_ucg_module_t* ucg, const vector_reduction_t* call,
                                 coll_ucg_buffer_t* output, ucg_coll_params_t* params) {
    coll_ucg_buffer_t input;
    ucg_status_t status = UCG_OK;
    if (has_output(ucg, call)) {
        status =
            coll_ucg_open_receive(output, &ucg->receive, call->output, call->count, call->datatype);
        params->recv_buffer = output->packed;
    }
    if (UCG_OK == status && MPI_IN_PLACE == call->input) {
        params->flags |= UCG_COLL_FLAG_IN_PLACE;
        return coll_ucg_load(output, 0, call->count);
    }
    if (UCG_OK == status) {
        status = coll_ucg_open_send(&input, &ucg->send, call->input, call->count, call->datatype);
        params->send_buffer = input.packed;
    }
    return status;
}

/** Rank 0's result of exscan is undefined: its buffer is not written. */
static bool has_result(mca_coll_ucg_module_t* ucg, const vector_reduction_t* call) {
    return has_output(ucg, call) &&
           (UCG_COLL_EXSCAN != call->type || 0 != ompi_comm_rank(ucg->comm));
}

static ucg_status_t reduce_vector(mca_coll_ucg_module_t* ucg, const vector_reduction_t* call) {
    ucg_coll_params_t params = {
        .type = call->type,
        .root = (uint32_t)call->root,
        .count = call->count,
    };
    coll_ucg_reduction_t reduction;
    coll_ucg_buffer_t output;
    if (0 == coll_ucg_packed_bytes(call->datatype, call->count)) {
        return UCG_OK;
    }
    ucg_status_t status =
        coll_ucg_open_reduction(&reduction, ucg, call->op, call->datatype, &params);
    if (UCG_OK == status) {
        status = open_buffers(ucg, call, &output, &params);
    }
    if (UCG_OK == status) {
        status = ucg_coll_run(ucg->group, &params);
    }
    if (UCG_OK == status) {
        const coll_ucg_latest_t latest = {.type = call->datatype,
                                          .op = call->op,
                                          .count = call->count,
                                          .root = call->root,
                                          .in_place = MPI_IN_PLACE == call->input};
        coll_ucg_remember(ucg, call->function, &latest, &params);
    }
    return UCG_OK == status && has_result(ucg, call) ? coll_ucg_store(&output) : status;
}

static COLL_UCG_APART int allreduce_anew(const void* sbuf, void* rbuf, int count,
                                         struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                         struct ompi_communicator_t* comm,
                                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const vector_reduction_t call = {
        COLL_UCG_FN_allreduce, UCG_COLL_ALLREDUCE, sbuf, rbuf, (size_t)count, dtype, op, 0};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = reduce_vector(ucg, &call);
    }
    COLL_UCG_LEAVE(ucg, allreduce, status, sbuf, rbuf, count, dtype, op, comm);
}

int mca_coll_ucg_allreduce(const void* sbuf, void* rbuf, int count, struct ompi_datatype_t* dtype,
                           struct ompi_op_t* op, struct ompi_communicator_t* comm,
                           mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_allreduce], dtype, op, count, 0, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_allreduce, in_place ? NULL : sbuf, rbuf);
    }
    return allreduce_anew(sbuf, rbuf, count, dtype, op, comm, module);
}

static COLL_UCG_APART int reduce_anew(const void* sbuf, void* rbuf, int count,
                                      struct ompi_datatype_t* dtype, struct ompi_op_t* op, int root,
                                      struct ompi_communicator_t* comm,
                                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const vector_reduction_t call = {COLL_UCG_FN_reduce, UCG_COLL_REDUCE, sbuf, rbuf,
                                     (size_t)count,      dtype,           op,   root};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = reduce_vector(ucg, &call);
    }
    COLL_UCG_LEAVE(ucg, reduce, status, sbuf, rbuf, count, dtype, op, root, comm);
}

int mca_coll_ucg_reduce(const void* sbuf, void* rbuf, int count, struct ompi_datatype_t* dtype,
                        struct ompi_op_t* op, int root, struct ompi_communicator_t* comm,
                        mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_reduce], dtype, op, count, root, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_reduce, in_place ? NULL : sbuf, rbuf);
    }
    return reduce_anew(sbuf, rbuf, count, dtype, op, root, comm, module);
}

static COLL_UCG_APART int scan_anew(const void* sbuf, void* rbuf, int count,
                                    struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                    struct ompi_communicator_t* comm,
                                    mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const vector_reduction_t call = {COLL_UCG_FN_scan, UCG_COLL_SCAN, sbuf, rbuf,
                                     (size_t)count,    dtype,         op,   0};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = reduce_vector(ucg, &call);
    }
    COLL_UCG_LEAVE(ucg, scan, status, sbuf, rbuf, count, dtype, op, comm);
}

int mca_coll_ucg_scan(const void* sbuf, void* rbuf, int count, struct ompi_datatype_t* dtype,
                      struct ompi_op_t* op, struct ompi_communicator_t* comm,
                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_scan], dtype, op, count, 0, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_scan, in_place ? NULL : sbuf, rbuf);
    }
    return scan_anew(sbuf, rbuf, count, dtype, op, comm, module);
}

static COLL_UCG_APART int exscan_anew(const void* sbuf, void* rbuf, int count,
                                      struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                      struct ompi_communicator_t* comm,
                                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const vector_reduction_t call = {COLL_UCG_FN_exscan, UCG_COLL_EXSCAN, sbuf, rbuf,
                                     (size_t)count,      dtype,           op,   0};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = reduce_vector(ucg, &call);
    }
    COLL_UCG_LEAVE(ucg, exscan, status, sbuf, rbuf, count, dtype, op, comm);
}

int mca_coll_ucg_exscan(const void* sbuf, void* rbuf, int count, struct ompi_datatype_t* dtype,
                        struct ompi_op_t* op, struct ompi_communicator_t* comm,
                        mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_exscan], dtype, op, count, 0, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_exscan, in_place ? NULL : sbuf, rbuf);
    }
    return exscan_anew(sbuf, rbuf, count, dtype, op, comm, module);
}
