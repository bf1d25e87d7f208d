/*
 * MPI_Barrier.
 */
#include "coll_ucg.h"

static ucg_status_t barrier(mca_coll_ucg_module_t* ucg) {
    const ucg_coll_params_t params = {.type = UCG_COLL_BARRIER};
    return ucg_coll_run(ucg->group, &params);
}

int mca_coll_ucg_barrier(struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = barrier(ucg);
    }
    COLL_UCG_LEAVE(ucg, barrier, status, comm);
}
