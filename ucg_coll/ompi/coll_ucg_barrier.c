/*
 * MPI_Barrier.
 */
#include "coll_ucg.h"

static ucg_status_t barrier(mca_coll_ucg_module_t* ucg) {
    const ucg_coll_params_t params = {.type = UCG_COLL_BARRIER};
    const coll_ucg_latest_t call = {.count = 0};
    ucg_status_t status = ucg_coll_run(ucg->group, &params);
    if (UCG_OK == status) {
        coll_ucg_remember(ucg, COLL_UCG_FN_barrier, &call, &params);
    }
    return status;
}

static COLL_UCG_APART int barrier_anew(struct ompi_communicator_t* comm,
                                       mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = barrier(ucg);
    }
    COLL_UCG_LEAVE(ucg, barrier, status, comm);
}

int mca_coll_ucg_barrier(struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    if (NULL != ucg->latest[COLL_UCG_FN_barrier].coll) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_barrier, NULL, NULL);
    }
    return barrier_anew(comm, module);
}
