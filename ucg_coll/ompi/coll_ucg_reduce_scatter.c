/*
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block: the result of a reduction, a part for each rank.
 */
#include "coll_ucg.h"

typedef struct {
    const void* input;
    void* output;
    size_t total; /**< Elements of all ranks together. */
    size_t own;   /**< Elements of this rank's part. */
    ompi_datatype_t* datatype;
    ompi_op_t* op;
} scattered_reduction_t;

/** The input, which MPI_IN_PLACE puts where the output goes; the output then needs a place of its
 * own only when it is packed. */
static ucg_status_t open_input(mca_coll_ucg_module_t* ucg, const scattered_reduction_t* call,
                               coll_ucg_buffer_t* input, ucg_coll_params_t* params) {
    const bool in_place = MPI_IN_PLACE == call->input;
    const void* user = in_place ? call->output : call->input;
    ucg_status_t status = coll_ucg_open_send(input, in_place ? &ucg->receive : &ucg->send, user,
                                             call->total, call->datatype);
    if (in_place) {
        params->flags |= UCG_COLL_FLAG_IN_PLACE;
        params->recv_buffer = input->packed;
    } else {
        params->send_buffer = input->packed;
    }
    return status;
}

/** In place, the result stands at the beginning of the input. */
static ucg_status_t open_output(mca_coll_ucg_module_t* ucg, const scattered_reduction_t* call,
                                const coll_ucg_buffer_t* input, coll_ucg_buffer_t* output,
                                ucg_coll_params_t* params) {
    if (MPI_IN_PLACE == call->input) {
        *output = *input;
        output->count = call->own;
        return UCG_OK;
    }
    ucg_status_t status =
        coll_ucg_open_receive(output, &ucg->receive, call->output, call->own, call->datatype);
    params->recv_buffer = output->packed;
    return status;
}

static ucg_status_t reduce_scattered(mca_coll_ucg_module_t* ucg, const scattered_reduction_t* call,
                                     ucg_coll_params_t* params) {
    coll_ucg_reduction_t reduction;
    coll_ucg_buffer_t input;
    coll_ucg_buffer_t output;
    if (0 == coll_ucg_packed_bytes(call->datatype, call->total)) {
        return UCG_OK;
    }
    ucg_status_t status =
        coll_ucg_open_reduction(&reduction, ucg, call->op, call->datatype, params);
    if (UCG_OK == status) {
        status = open_input(ucg, call, &input, params);
    }
    if (UCG_OK == status) {
        status = open_output(ucg, call, &input, &output, params);
    }
    if (UCG_OK == status) {
        status = ucg_coll_run(ucg->group, params);
    }
    return UCG_OK == status ? coll_ucg_store(&output) : status;
}

static ucg_status_t reduce_scatter(mca_coll_ucg_module_t* ucg, scattered_reduction_t* call,
                                   const int* counts) {
    const int size = ompi_comm_size(ucg->comm);
    call->total = 0;
    for (int i = 0; i < size; i++) {
        call->total += (size_t)counts[i];
    }
    call->own = (size_t)counts[ompi_comm_rank(ucg->comm)];
    ucg_coll_params_t params = {
        .field_mask = UCG_COLL_PARAM_FIELD_INT_VECTORS,
        .type = UCG_COLL_REDUCE_SCATTER,
        .count = call->own,
        .int_recv_counts = counts,
    };
    return reduce_scattered(ucg, call, &params);
}

int mca_coll_ucg_reduce_scatter(const void* sbuf, void* rbuf, const int* rcounts,
                                struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    scattered_reduction_t call = {.input = sbuf, .output = rbuf, .datatype = dtype, .op = op};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = reduce_scatter(ucg, &call, rcounts);
    }
    COLL_UCG_LEAVE(ucg, reduce_scatter, status, sbuf, rbuf, rcounts, dtype, op, comm);
}

static ucg_status_t reduce_scatter_block(mca_coll_ucg_module_t* ucg, scattered_reduction_t* call,
                                         size_t count) {
    call->own = count;
    call->total = count * (size_t)ompi_comm_size(ucg->comm);
    ucg_coll_params_t params = {.type = UCG_COLL_REDUCE_SCATTER_BLOCK, .count = count};
    return reduce_scattered(ucg, call, &params);
}

int mca_coll_ucg_reduce_scatter_block(const void* sbuf, void* rbuf, int rcount,
                                      struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                      struct ompi_communicator_t* comm,
                                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    scattered_reduction_t call = {.input = sbuf, .output = rbuf, .datatype = dtype, .op = op};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = reduce_scatter_block(ucg, &call, (size_t)rcount);
    }
    COLL_UCG_LEAVE(ucg, reduce_scatter_block, status, sbuf, rbuf, rcount, dtype, op, comm);
}
