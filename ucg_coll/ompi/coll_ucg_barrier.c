/*
 * MPI_Barrier.
 */
#include "coll_ucg_forms.h"

/** A call that has just begun is a barrier already. */
ucg_status_t coll_ucg_open_barrier(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    (void)arguments;
    call->params.type = UCG_COLL_BARRIER;
    return UCG_OK;
}

int mca_coll_ucg_barrier(struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    if (NULL != ucg->latest[COLL_UCG_FN_barrier].coll && !coll_ucg_is_nested()) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_barrier, NULL, NULL);
    }
    return coll_ucg_blocking_plain(ucg, COLL_UCG_FN_barrier, (coll_ucg_arguments_t){.sbuf = NULL});
}

int mca_coll_ucg_ibarrier(struct ompi_communicator_t* comm, ompi_request_t** request,
                          mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_ibarrier);
    if (NULL != latest->coll && !coll_ucg_is_nested()) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_ibarrier, NULL, NULL, request);
    }
    return coll_ucg_nonblocking_plain(ucg, COLL_UCG_FN_ibarrier,
                                      (coll_ucg_arguments_t){.request = request});
}

int mca_coll_ucg_barrier_init(struct ompi_communicator_t* comm, struct ompi_info_t* info,
                              ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_barrier_init,
                               (coll_ucg_arguments_t){.info = info, .request = request});
}
