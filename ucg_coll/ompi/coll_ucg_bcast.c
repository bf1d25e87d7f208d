/*
 * MPI_Bcast.
 */
#include "coll_ucg.h"

static ucg_status_t bcast(mca_coll_ucg_module_t* ucg, void* user, size_t count,
                          const ompi_datatype_t* type, int root) {
    const bool is_root = root == ompi_comm_rank(ucg->comm);
    coll_ucg_buffer_t buffer;
    ucg_status_t status = is_root
                              ? coll_ucg_open_send(&buffer, &ucg->receive, user, count, type)
                              : coll_ucg_open_receive(&buffer, &ucg->receive, user, count, type);
    if (UCG_OK != status) {
        return status;
    }
    const ucg_coll_params_t params = {
        .type = UCG_COLL_BCAST,
        .root = (uint32_t)root,
        .recv_buffer = buffer.packed,
        .count = coll_ucg_packed_bytes(type, count),
        .element_bytes = 1,
    };
    const coll_ucg_latest_t call = {.type = type, .count = count, .root = root};
    status = ucg_coll_run(ucg->group, &params);
    if (UCG_OK == status) {
        coll_ucg_remember(ucg, COLL_UCG_FN_bcast, &call, &params);
    }
    return UCG_OK == status && !is_root ? coll_ucg_store(&buffer) : status;
}

static COLL_UCG_APART int bcast_anew(void* buffer, int count, struct ompi_datatype_t* dtype,
                                     int root, struct ompi_communicator_t* comm,
                                     mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status) && 0 != coll_ucg_packed_bytes(dtype, (size_t)count)) {
        status = bcast(ucg, buffer, (size_t)count, dtype, root);
    }
    COLL_UCG_LEAVE(ucg, bcast, status, buffer, count, dtype, root, comm);
}

int mca_coll_ucg_bcast(void* buffer, int count, struct ompi_datatype_t* dtype, int root,
                       struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    if (coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_bcast], dtype, NULL, count, root, false)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_bcast, NULL, buffer);
    }
    return bcast_anew(buffer, count, dtype, root, comm, module);
}
