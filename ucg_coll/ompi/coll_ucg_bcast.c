/*
 * MPI_Bcast.
 */
#include "coll_ucg_background.h"
#include "coll_ucg_call.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"
#include "coll_ucg_restart.h"

ucg_status_t coll_ucg_open_bcast(coll_ucg_call_t* call, void* user, coll_ucg_count_t count,
                                 const ompi_datatype_t* type, uint32_t root, bool is_root) {
    call->params = (ucg_coll_params_t){
        .type = UCG_COLL_BCAST,
        .root = root,
        .count = coll_ucg_packed_bytes(type, (size_t)count),
        .element_bytes = 1,
    };
    call->empty = 0 == call->params.count;
    const ucg_status_t status = coll_ucg_open_receive(call, user, (size_t)count, type);
    if (is_root) {
        call->output.load_count = (size_t)count;
        call->output.store_count = 0;
    }
    return status;
}

static ucg_status_t open_bcast(coll_ucg_call_t* call, void* user, coll_ucg_count_t count,
                               const ompi_datatype_t* type, int root) {
    return coll_ucg_open_bcast(call, user, count, type, (uint32_t)root,
                               root == coll_ucg_rank(call));
}

static COLL_UCG_APART int bcast_anew(void* buffer, coll_ucg_count_t count,
                                     struct ompi_datatype_t* dtype, int root,
                                     struct ompi_communicator_t* comm,
                                     mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    if (0 == coll_ucg_packed_bytes(dtype, (size_t)count)) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_bcast);
    }
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(&call, open_bcast(&call, buffer, count, dtype, root));
        const coll_ucg_latest_t latest = {.type = dtype, .count = count, .root = root};
        coll_ucg_remember_call(&call, COLL_UCG_FN_bcast, &latest, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, bcast, status, buffer, count, dtype, root, comm);
}

int mca_coll_ucg_bcast(void* buffer, coll_ucg_count_t count, struct ompi_datatype_t* dtype,
                       int root, struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_bcast];
    if (coll_ucg_repeats(latest, dtype, NULL, count, false) && latest->root == root) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_bcast, NULL, buffer);
    }
    return bcast_anew(buffer, count, dtype, root, comm, module);
}

static COLL_UCG_APART int ibcast_anew(void* buffer, coll_ucg_count_t count,
                                      struct ompi_datatype_t* dtype, int root,
                                      struct ompi_communicator_t* comm, ompi_request_t** request,
                                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    if (0 == coll_ucg_packed_bytes(dtype, (size_t)count)) {
        *request = &ompi_request_empty;
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_ibcast);
    }
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const coll_ucg_latest_t latest = {.type = dtype, .count = count, .root = root};
        const ucg_status_t opened = open_bcast(&mine->call, buffer, count, dtype, root);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_ibcast, &latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ibcast, status, buffer, count, dtype, root, comm, request);
}

int mca_coll_ucg_ibcast(void* buffer, coll_ucg_count_t count, struct ompi_datatype_t* dtype,
                        int root, struct ompi_communicator_t* comm, ompi_request_t** request,
                        mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_ibcast);
    if (coll_ucg_repeats(latest, dtype, NULL, count, false) && latest->root == root) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_ibcast, NULL, buffer, request);
    }
    return ibcast_anew(buffer, count, dtype, root, comm, request, module);
}

int mca_coll_ucg_bcast_init(void* buffer, coll_ucg_count_t count, struct ompi_datatype_t* dtype,
                            int root, struct ompi_communicator_t* comm, struct ompi_info_t* info,
                            ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status =
            coll_ucg_keep_call(mine, open_bcast(&mine->call, buffer, count, dtype, root), request);
    }
    COLL_UCG_LEAVE(ucg, bcast_init, status, buffer, count, dtype, root, comm, info, request);
}
