/*
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block: the result of a reduction, a part for each rank.
 */
#include "coll_ucg_forms.h"

/** Opens a reduction of `total` elements, of which `own` are those of this rank. With MPI_IN_PLACE
 *  the input is where the output goes, and the result then stands at its beginning. */
static ucg_status_t open_scattered(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments,
                                   size_t total, size_t own) {
    ompi_datatype_t* type = arguments->rdtype;
    const bool in_place = MPI_IN_PLACE == arguments->sbuf;
    call->empty = 0 == coll_ucg_packed_bytes(type, total);
    if (call->empty) {
        return UCG_OK;
    }
    ucg_status_t status = coll_ucg_open_reduction(call, arguments->op, type);
    if (UCG_OK == status && in_place) {
        status = coll_ucg_open_receive(call, arguments->rbuf, total, type);
        coll_ucg_read_in_place(call, 0, total);
        call->output.store_count = own;
        return status;
    }
    if (UCG_OK == status) {
        status = coll_ucg_open_send(call, arguments->sbuf, total, type);
    }
    return UCG_OK == status ? coll_ucg_open_receive(call, arguments->rbuf, own, type) : status;
}

/* ------------------------------------------------------------------ reduce_scatter */

ucg_status_t coll_ucg_open_reduce_scatter(coll_ucg_call_t* call,
                                          const coll_ucg_arguments_t* arguments) {
    const size_t size = coll_ucg_size(call);
    const size_t own = coll_ucg_count_at(arguments->rcounts, (size_t)coll_ucg_rank(call));
    const coll_ucg_entries_t entries = coll_ucg_counts_entries(arguments->rcounts);
    const bool ints = sizeof(int) == entries.width;
    size_t total = 0;
    for (size_t i = 0; i < size; i++) {
        total += coll_ucg_count_at(arguments->rcounts, i);
    }
    call->params = (ucg_coll_params_t){
        .field_mask = ints ? UCG_COLL_PARAM_FIELD_INT_VECTORS : UCG_COLL_PARAM_FIELD_VECTORS,
        .type = UCG_COLL_REDUCE_SCATTER,
        .count = own,
        .recv_counts = entries.data, /* Also the pointer to int counts. */
    };
    return open_scattered(call, arguments, total, own);
}

/** The arguments of the functions below. */
#define ARGUMENTS .sbuf = sbuf, .rbuf = rbuf, .rcounts = rcounts, .rdtype = dtype, .op = op

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
    const coll_ucg_latest_t call = {
        .type = dtype, .op = op, .in_place = in_place, .vector_count = 1, .vectors = &counts};
    return coll_ucg_blocking(ucg, COLL_UCG_FN_reduce_scatter, (coll_ucg_arguments_t){ARGUMENTS},
                             &call);
}

int mca_coll_ucg_ireduce_scatter(const void* sbuf, void* rbuf, coll_ucg_counts_t rcounts,
                                 struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                 struct ompi_communicator_t* comm, ompi_request_t** request,
                                 mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_ireduce_scatter);
    const bool in_place = MPI_IN_PLACE == sbuf;
    const coll_ucg_vector_t counts = COLL_UCG_COUNTS(rcounts, ompi_comm_size(comm));
    if (coll_ucg_repeats(latest, dtype, op, 0, in_place) &&
        coll_ucg_same_vectors(latest, &counts, 1)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_ireduce_scatter, in_place ? NULL : sbuf, rbuf,
                                request);
    }
    const coll_ucg_latest_t call = {
        .type = dtype, .op = op, .in_place = in_place, .vector_count = 1, .vectors = &counts};
    return coll_ucg_nonblocking(ucg, COLL_UCG_FN_ireduce_scatter,
                                (coll_ucg_arguments_t){ARGUMENTS, .request = request}, &call);
}

int mca_coll_ucg_reduce_scatter_init(const void* sbuf, void* rbuf, coll_ucg_counts_t rcounts,
                                     struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                     struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                     ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_reduce_scatter_init,
                               (coll_ucg_arguments_t){ARGUMENTS, .info = info, .request = request});
}

/* ------------------------------------------------------------------ reduce_scatter_block */

ucg_status_t coll_ucg_open_reduce_scatter_block(coll_ucg_call_t* call,
                                                const coll_ucg_arguments_t* arguments) {
    const size_t count = (size_t)arguments->rcount;
    call->params = (ucg_coll_params_t){.type = UCG_COLL_REDUCE_SCATTER_BLOCK, .count = count};
    return open_scattered(call, arguments, count * coll_ucg_size(call), count);
}

int mca_coll_ucg_reduce_scatter_block(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                      struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                      struct ompi_communicator_t* comm,
                                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_reduce_scatter_block];
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, count, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_reduce_scatter_block, in_place ? NULL : sbuf, rbuf);
    }
    return coll_ucg_blocking_plain(ucg, COLL_UCG_FN_reduce_scatter_block,
                                   (coll_ucg_arguments_t){COLL_UCG_REDUCED});
}

int mca_coll_ucg_ireduce_scatter_block(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                       struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                       struct ompi_communicator_t* comm, ompi_request_t** request,
                                       mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest =
        coll_ucg_latest_start(ucg, COLL_UCG_FN_ireduce_scatter_block);
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (coll_ucg_repeats(latest, dtype, op, count, in_place)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_ireduce_scatter_block, in_place ? NULL : sbuf,
                                rbuf, request);
    }
    return coll_ucg_nonblocking_plain(ucg, COLL_UCG_FN_ireduce_scatter_block,
                                      (coll_ucg_arguments_t){COLL_UCG_REDUCED, .request = request});
}

int mca_coll_ucg_reduce_scatter_block_init(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                           struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                           struct ompi_communicator_t* comm,
                                           struct ompi_info_t* info, ompi_request_t** request,
                                           mca_coll_base_module_t* module) {
    return coll_ucg_persistent(
        module, COLL_UCG_FN_reduce_scatter_block_init,
        (coll_ucg_arguments_t){COLL_UCG_REDUCED, .info = info, .request = request});
}
