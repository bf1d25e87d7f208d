/*
 * MPI_Barrier.
 */
#include "coll_ucg_background.h"
#include "coll_ucg_call.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"
#include "coll_ucg_restart.h"

/** A call that has just begun is a barrier already. */
static ucg_status_t open_barrier(coll_ucg_call_t* call) {
    call->params.type = UCG_COLL_BARRIER;
    return UCG_OK;
}

static ucg_status_t barrier(mca_coll_ucg_module_t* ucg) {
    const coll_ucg_latest_t latest = {.count = 0};
    coll_ucg_call_t call;
    coll_ucg_begin_blocking(&call, ucg);
    const ucg_status_t status = coll_ucg_run_first(&call, open_barrier(&call));
    coll_ucg_remember_call(&call, COLL_UCG_FN_barrier, &latest, status);
    return status;
}

static COLL_UCG_APART int barrier_anew(struct ompi_communicator_t* comm,
                                       mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = barrier(ucg);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, barrier, status, comm);
}

int mca_coll_ucg_barrier(struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    if (NULL != ucg->latest[COLL_UCG_FN_barrier].coll && !coll_ucg_is_nested()) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_barrier, NULL, NULL);
    }
    return barrier_anew(comm, module);
}

static COLL_UCG_APART int ibarrier_anew(struct ompi_communicator_t* comm, ompi_request_t** request,
                                        mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const coll_ucg_latest_t latest = {.count = 0};
        const ucg_status_t opened = open_barrier(&mine->call);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_ibarrier, &latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ibarrier, status, comm, request);
}

int mca_coll_ucg_ibarrier(struct ompi_communicator_t* comm, ompi_request_t** request,
                          mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_ibarrier);
    if (NULL != latest->coll && !coll_ucg_is_nested()) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_ibarrier, NULL, NULL, request);
    }
    return ibarrier_anew(comm, request, module);
}

int mca_coll_ucg_barrier_init(struct ompi_communicator_t* comm, struct ompi_info_t* info,
                              ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine, open_barrier(&mine->call), request);
    }
    COLL_UCG_LEAVE(ucg, barrier_init, status, comm, info, request);
}
