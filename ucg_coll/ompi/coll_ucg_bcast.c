/*
 * MPI_Bcast.
 */
#include "coll_ucg_forms.h"

ucg_status_t coll_ucg_open_bcast_from(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments,
                                      uint32_t root, bool is_root) {
    const size_t count = (size_t)arguments->rcount;
    call->params = (ucg_coll_params_t){
        .type = UCG_COLL_BCAST,
        .root = root,
        .count = coll_ucg_packed_bytes(arguments->rdtype, count),
        .element_bytes = 1,
    };
    call->empty = 0 == call->params.count;
    const ucg_status_t status =
        coll_ucg_open_receive(call, arguments->rbuf, count, arguments->rdtype);
    if (is_root) {
        call->output.load_count = count;
        call->output.store_count = 0;
    }
    return status;
}

ucg_status_t coll_ucg_open_bcast(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    return coll_ucg_open_bcast_from(call, arguments, (uint32_t)arguments->root,
                                    arguments->root == coll_ucg_rank(call));
}

int mca_coll_ucg_bcast(void* buffer, coll_ucg_count_t count, struct ompi_datatype_t* dtype,
                       int root, struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_bcast];
    if (coll_ucg_repeats(latest, dtype, NULL, count, false) && latest->root == root) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_bcast, NULL, buffer);
    }
    if (0 == coll_ucg_packed_bytes(dtype, (size_t)count)) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_bcast);
    }
    return coll_ucg_blocking_plain(
        ucg, COLL_UCG_FN_bcast,
        (coll_ucg_arguments_t){.rbuf = buffer, .rcount = count, .rdtype = dtype, .root = root});
}

int mca_coll_ucg_ibcast(void* buffer, coll_ucg_count_t count, struct ompi_datatype_t* dtype,
                        int root, struct ompi_communicator_t* comm, ompi_request_t** request,
                        mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_ibcast);
    if (coll_ucg_repeats(latest, dtype, NULL, count, false) && latest->root == root) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_ibcast, NULL, buffer, request);
    }
    if (0 == coll_ucg_packed_bytes(dtype, (size_t)count)) {
        *request = &ompi_request_empty;
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_ibcast);
    }
    return coll_ucg_nonblocking_plain(
        ucg, COLL_UCG_FN_ibcast,
        (coll_ucg_arguments_t){
            .rbuf = buffer, .rcount = count, .rdtype = dtype, .root = root, .request = request});
}

int mca_coll_ucg_bcast_init(void* buffer, coll_ucg_count_t count, struct ompi_datatype_t* dtype,
                            int root, struct ompi_communicator_t* comm, struct ompi_info_t* info,
                            ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_bcast_init,
                               (coll_ucg_arguments_t){.rbuf = buffer,
                                                      .rcount = count,
                                                      .rdtype = dtype,
                                                      .root = root,
                                                      .info = info,
                                                      .request = request});
}
