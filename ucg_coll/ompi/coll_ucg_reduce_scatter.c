/*
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block: the result of a reduction, a part for each rank.
 */
#include "coll_ucg_background.h"
#include "coll_ucg_call.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"
#include "coll_ucg_restart.h"

typedef struct {
    const void* input;
    void* output;
    size_t total; /**< Elements of all ranks together. */
    size_t own;   /**< Elements of this rank's part. */
    ompi_datatype_t* datatype;
    ompi_op_t* op;
} scattered_reduction_t;

/** Opens the buffer of a call with MPI_IN_PLACE: the input is where the output goes, and the result
 *  then stands at its beginning. */
static ucg_status_t open_in_place(coll_ucg_call_t* call, const scattered_reduction_t* given) {
    const ucg_status_t status =
        coll_ucg_open_receive(call, given->output, given->total, given->datatype);
    coll_ucg_read_in_place(call, 0, given->total);
    call->output.store_count = given->own;
    return status;
}

static ucg_status_t open_scattered_reduction(coll_ucg_call_t* call,
                                             const scattered_reduction_t* given) {
    call->empty = 0 == coll_ucg_packed_bytes(given->datatype, given->total);
    if (call->empty) {
        return UCG_OK;
    }
    ucg_status_t status = coll_ucg_open_reduction(call, given->op, given->datatype);
    if (UCG_OK == status && MPI_IN_PLACE == given->input) {
        return open_in_place(call, given);
    }
    if (UCG_OK == status) {
        status = coll_ucg_open_send(call, given->input, given->total, given->datatype);
    }
    return UCG_OK == status
               ? coll_ucg_open_receive(call, given->output, given->own, given->datatype)
               : status;
}

ucg_status_t coll_ucg_open_reduce_scatter(coll_ucg_call_t* call, const void* sbuf, void* rbuf,
                                          coll_ucg_counts_t counts, ompi_datatype_t* type,
                                          ompi_op_t* op) {
    const size_t size = coll_ucg_size(call);
    const coll_ucg_entries_t entries = coll_ucg_counts_entries(counts);
    const bool ints = sizeof(int) == entries.width;
    scattered_reduction_t given = {.input = sbuf, .output = rbuf, .datatype = type, .op = op};
    for (size_t i = 0; i < size; i++) {
        given.total += coll_ucg_count_at(counts, i);
    }
    given.own = coll_ucg_count_at(counts, (size_t)coll_ucg_rank(call));
    call->params = (ucg_coll_params_t){
        .field_mask = ints ? UCG_COLL_PARAM_FIELD_INT_VECTORS : UCG_COLL_PARAM_FIELD_VECTORS,
        .type = UCG_COLL_REDUCE_SCATTER,
        .count = given.own,
        .recv_counts = entries.data, /* Also the pointer to int counts. */
    };
    return open_scattered_reduction(call, &given);
}

static COLL_UCG_APART int reduce_scatter_anew(const void* sbuf, void* rbuf,
                                              coll_ucg_counts_t rcounts,
                                              struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                              struct ompi_communicator_t* comm,
                                              mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(
            &call, coll_ucg_open_reduce_scatter(&call, sbuf, rbuf, rcounts, dtype, op));
        const coll_ucg_vector_t counts = COLL_UCG_COUNTS(rcounts, ompi_comm_size(comm));
        const coll_ucg_latest_t latest = {.type = dtype,
                                          .op = op,
                                          .in_place = MPI_IN_PLACE == sbuf,
                                          .vector_count = 1,
                                          .vectors = &counts};
        coll_ucg_remember_call(&call, COLL_UCG_FN_reduce_scatter, &latest, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, reduce_scatter, status, sbuf, rbuf, rcounts, dtype, op, comm);
}

int mca_coll_ucg_reduce_scatter(const void* sbuf, void* rbuf, coll_ucg_counts_t rcounts,
                                struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_reduce_scatter];
    const bool in_place = MPI_IN_PLACE == sbuf;
    const coll_ucg_vector_t counts = COLL_UCG_COUNTS(rcounts, ompi_comm_size(comm));
    if (coll_ucg_repeats(latest, dtype, op, 0, in_place) &&
        coll_ucg_same_vectors(latest, &counts, 1)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_reduce_scatter, in_place ? NULL : sbuf, rbuf);
    }
    return reduce_scatter_anew(sbuf, rbuf, rcounts, dtype, op, comm, module);
}

static COLL_UCG_APART int
ireduce_scatter_anew(const void* sbuf, void* rbuf, coll_ucg_counts_t rcounts,
                     struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                     struct ompi_communicator_t* comm, ompi_request_t** request,
                     mca_coll_base_module_t* module, const coll_ucg_latest_t* latest) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const ucg_status_t opened =
            coll_ucg_open_reduce_scatter(&mine->call, sbuf, rbuf, rcounts, dtype, op);
        status =
            coll_ucg_start_described(mine, COLL_UCG_FN_ireduce_scatter, latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ireduce_scatter, status, sbuf, rbuf, rcounts, dtype, op, comm,
                               request);
}

int mca_coll_ucg_ireduce_scatter(const void* sbuf, void* rbuf, coll_ucg_counts_t rcounts,
                                 struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                 struct ompi_communicator_t* comm, ompi_request_t** request,
                                 mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    const coll_ucg_vector_t counts = COLL_UCG_COUNTS(rcounts, ompi_comm_size(comm));
    const coll_ucg_latest_t call = {
        .type = dtype, .op = op, .in_place = in_place, .vector_count = 1, .vectors = &counts};
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_ireduce_scatter);
    if (coll_ucg_repeats(latest, dtype, op, 0, in_place) &&
        coll_ucg_same_vectors(latest, &counts, 1)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_ireduce_scatter, in_place ? NULL : sbuf, rbuf,
                                request);
    }
    return ireduce_scatter_anew(sbuf, rbuf, rcounts, dtype, op, comm, request, module, &call);
}

int mca_coll_ucg_reduce_scatter_init(const void* sbuf, void* rbuf, coll_ucg_counts_t rcounts,
                                     struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                     struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                     ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(
            mine, coll_ucg_open_reduce_scatter(&mine->call, sbuf, rbuf, rcounts, dtype, op),
            request);
    }
    COLL_UCG_LEAVE(ucg, reduce_scatter_init, status, sbuf, rbuf, rcounts, dtype, op, comm, info,
                   request);
}

static ucg_status_t open_reduce_scatter_block(coll_ucg_call_t* call, const void* sbuf, void* rbuf,
                                              coll_ucg_count_t rcount, ompi_datatype_t* type,
                                              ompi_op_t* op) {
    const size_t count = (size_t)rcount;
    const scattered_reduction_t given = {sbuf, rbuf, count * coll_ucg_size(call), count, type, op};
    call->params = (ucg_coll_params_t){.type = UCG_COLL_REDUCE_SCATTER_BLOCK, .count = count};
    return open_scattered_reduction(call, &given);
}

static COLL_UCG_APART int
reduce_scatter_block_anew(const void* sbuf, void* rbuf, coll_ucg_count_t rcount,
                          struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                          struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(
            &call, open_reduce_scatter_block(&call, sbuf, rbuf, rcount, dtype, op));
        const coll_ucg_latest_t latest = {
            .type = dtype, .op = op, .count = rcount, .in_place = MPI_IN_PLACE == sbuf};
        coll_ucg_remember_call(&call, COLL_UCG_FN_reduce_scatter_block, &latest, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, reduce_scatter_block, status, sbuf, rbuf, rcount, dtype, op, comm);
}

int mca_coll_ucg_reduce_scatter_block(const void* sbuf, void* rbuf, coll_ucg_count_t rcount,
                                      struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                      struct ompi_communicator_t* comm,
                                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_reduce_scatter_block];
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, rcount, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_reduce_scatter_block, in_place ? NULL : sbuf, rbuf);
    }
    return reduce_scatter_block_anew(sbuf, rbuf, rcount, dtype, op, comm, module);
}

static COLL_UCG_APART int
ireduce_scatter_block_anew(const void* sbuf, void* rbuf, coll_ucg_count_t rcount,
                           struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                           struct ompi_communicator_t* comm, ompi_request_t** request,
                           mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const coll_ucg_latest_t latest = {
            .type = dtype, .op = op, .count = rcount, .in_place = MPI_IN_PLACE == sbuf};
        const ucg_status_t opened =
            open_reduce_scatter_block(&mine->call, sbuf, rbuf, rcount, dtype, op);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_ireduce_scatter_block, &latest, opened,
                                          request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ireduce_scatter_block, status, sbuf, rbuf, rcount, dtype, op,
                               comm, request);
}

int mca_coll_ucg_ireduce_scatter_block(const void* sbuf, void* rbuf, coll_ucg_count_t rcount,
                                       struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                       struct ompi_communicator_t* comm, ompi_request_t** request,
                                       mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest =
        coll_ucg_latest_start(ucg, COLL_UCG_FN_ireduce_scatter_block);
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, rcount, in_place)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_ireduce_scatter_block, in_place ? NULL : sbuf,
                                rbuf, request);
    }
    return ireduce_scatter_block_anew(sbuf, rbuf, rcount, dtype, op, comm, request, module);
}

int mca_coll_ucg_reduce_scatter_block_init(const void* sbuf, void* rbuf, coll_ucg_count_t rcount,
                                           struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                           struct ompi_communicator_t* comm,
                                           struct ompi_info_t* info, ompi_request_t** request,
                                           mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(
            mine, open_reduce_scatter_block(&mine->call, sbuf, rbuf, rcount, dtype, op), request);
    }
    COLL_UCG_LEAVE(ucg, reduce_scatter_block_init, status, sbuf, rbuf, rcount, dtype, op, comm,
                   info, request);
}
