/*
 * MPI_Scatter and MPI_Scatterv. The send arguments mean something at the root only; there,
 * MPI_IN_PLACE as receive buffer leaves the root's part where it is.
 */
#include "coll_ucg_background.h"
#include "coll_ucg_call.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"
#include "coll_ucg_restart.h"

/** Opens the part that a rank receives. */
static ucg_status_t open_part(coll_ucg_call_t* call, void* rbuf, size_t rcount,
                              const ompi_datatype_t* rtype) {
    call->params.count = coll_ucg_part(&call->params, rtype, rcount);
    return coll_ucg_open_receive(call, rbuf, rcount, rtype);
}

/* ------------------------------------------------------------------ scatter */

static ucg_status_t open_scatter_at_root(coll_ucg_call_t* call, const void* sbuf, size_t scount,
                                         const ompi_datatype_t* stype, void* rbuf, size_t rcount,
                                         const ompi_datatype_t* rtype) {
    call->params.count = coll_ucg_packed_bytes(stype, scount);
    ucg_status_t status = coll_ucg_open_send(call, sbuf, scount * coll_ucg_size(call), stype);
    if (MPI_IN_PLACE == rbuf) {
        call->params.flags = UCG_COLL_FLAG_IN_PLACE;
        return status;
    }
    if (UCG_OK == status) {
        status = coll_ucg_check_own_block(call, call->params.count,
                                          coll_ucg_packed_bytes(rtype, rcount));
    }
    return UCG_OK == status ? coll_ucg_open_receive(call, rbuf, rcount, rtype) : status;
}

static ucg_status_t open_scatter(coll_ucg_call_t* call, const void* sbuf, coll_ucg_count_t scount,
                                 const ompi_datatype_t* stype, void* rbuf, coll_ucg_count_t rcount,
                                 const ompi_datatype_t* rtype, int root) {
    call->params =
        (ucg_coll_params_t){.type = UCG_COLL_SCATTER, .root = (uint32_t)root, .element_bytes = 1};
    const ucg_status_t status =
        root == coll_ucg_rank(call)
            ? open_scatter_at_root(call, sbuf, (size_t)scount, stype, rbuf, (size_t)rcount, rtype)
            : open_part(call, rbuf, (size_t)rcount, rtype);
    call->empty = 0 == call->params.count;
    return status;
}

static COLL_UCG_APART int scatter_anew(const void* sbuf, coll_ucg_count_t scount,
                                       struct ompi_datatype_t* sdtype, void* rbuf,
                                       coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                       int root, struct ompi_communicator_t* comm,
                                       mca_coll_base_module_t* module,
                                       const coll_ucg_latest_t* latest) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    if (0 == (MPI_IN_PLACE == rbuf ? coll_ucg_packed_bytes(sdtype, (size_t)scount)
                                   : coll_ucg_packed_bytes(rdtype, (size_t)rcount))) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_scatter);
    }
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(
            &call, open_scatter(&call, sbuf, scount, sdtype, rbuf, rcount, rdtype, root));
        coll_ucg_remember_call(&call, COLL_UCG_FN_scatter, latest, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, scatter, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, root,
                            comm);
}

int mca_coll_ucg_scatter(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype,
                         void* rbuf, coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                         int root, struct ompi_communicator_t* comm,
                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_latest_t call;
    const bool alike =
        coll_ucg_describe_rooted(&call, ucg, root, rbuf, rcount, rdtype,
                                 (coll_ucg_root_blocks_t){.count = scount, .type = sdtype});
    if (alike && coll_ucg_repeats_described(ucg, COLL_UCG_FN_scatter, &call)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_scatter, sbuf, call.in_place ? NULL : rbuf);
    }
    return scatter_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, root, comm, module,
                        alike ? &call : NULL);
}

static COLL_UCG_APART int iscatter_anew(const void* sbuf, coll_ucg_count_t scount,
                                        struct ompi_datatype_t* sdtype, void* rbuf,
                                        coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                        int root, struct ompi_communicator_t* comm,
                                        ompi_request_t** request, mca_coll_base_module_t* module,
                                        const coll_ucg_latest_t* latest) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const ucg_status_t opened =
            open_scatter(&mine->call, sbuf, scount, sdtype, rbuf, rcount, rdtype, root);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_iscatter, latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, iscatter, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                               root, comm, request);
}

int mca_coll_ucg_iscatter(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype,
                          void* rbuf, coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                          int root, struct ompi_communicator_t* comm, ompi_request_t** request,
                          mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_latest_t call;
    const bool alike =
        coll_ucg_describe_rooted(&call, ucg, root, rbuf, rcount, rdtype,
                                 (coll_ucg_root_blocks_t){.count = scount, .type = sdtype});
    if (alike && coll_ucg_repeats_all_of(coll_ucg_latest_start(ucg, COLL_UCG_FN_iscatter), &call)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_iscatter, sbuf, call.in_place ? NULL : rbuf,
                                request);
    }
    return iscatter_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, root, comm, request, module,
                         alike ? &call : NULL);
}

int mca_coll_ucg_scatter_init(const void* sbuf, coll_ucg_count_t scount,
                              struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                              struct ompi_datatype_t* rdtype, int root,
                              struct ompi_communicator_t* comm, struct ompi_info_t* info,
                              ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(
            mine, open_scatter(&mine->call, sbuf, scount, sdtype, rbuf, rcount, rdtype, root),
            request);
    }
    COLL_UCG_LEAVE(ucg, scatter_init, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, root,
                   comm, info, request);
}

/* ------------------------------------------------------------------ scatterv */

static ucg_status_t open_scatterv_at_root(coll_ucg_call_t* call, const coll_ucg_blocks_t* input,
                                          void* rbuf, size_t rcount, const ompi_datatype_t* rtype) {
    ucg_coll_params_t* params = &call->params;
    coll_ucg_choose_vectors(params, input, NULL, MPI_IN_PLACE == rbuf ? input->type : rtype);
    const ucg_status_t status = coll_ucg_open_send_blocks(call, input);
    if (UCG_OK == status && MPI_IN_PLACE == rbuf) {
        params->flags = UCG_COLL_FLAG_IN_PLACE;
        params->count = coll_ucg_block_length(params, &call->input, (int)params->root);
        return UCG_OK;
    }
    return UCG_OK == status ? open_part(call, rbuf, rcount, rtype) : status;
}

/** Opens a scatterv. A rank without bytes takes part too, since the root alone knows all sizes. */
static ucg_status_t open_scatterv(coll_ucg_call_t* call, const coll_ucg_blocks_t* input, void* rbuf,
                                  coll_ucg_count_t rcount, const ompi_datatype_t* rtype, int root) {
    call->params =
        (ucg_coll_params_t){.type = UCG_COLL_SCATTERV, .root = (uint32_t)root, .element_bytes = 1};
    return root == coll_ucg_rank(call)
               ? open_scatterv_at_root(call, input, rbuf, (size_t)rcount, rtype)
               : open_part(call, rbuf, (size_t)rcount, rtype);
}

/** The blocks that the functions' arguments describe. */
#define INPUT (&(coll_ucg_blocks_t){sbuf, scounts, displs, sdtype, NULL})

/** Declares `call`, the description of the functions' arguments, and `alike`, which says whether
 *  such a call may be repeated. */
#define DESCRIBE_SCATTERV(call, alike)                                                             \
    const coll_ucg_vector_t vectors[] = {COLL_UCG_COUNTS(scounts, ompi_comm_size(comm)),           \
                                         COLL_UCG_DISPLS(displs, ompi_comm_size(comm))};           \
    const coll_ucg_count_t own =                                                                   \
        ompi_comm_rank(comm) == root ? coll_ucg_own_count(scounts, comm) : 0;                      \
    coll_ucg_latest_t call;                                                                        \
    const bool alike = coll_ucg_describe_rooted(                                                   \
        &(call), ucg, root, rbuf, rcount, rdtype,                                                  \
        (coll_ucg_root_blocks_t){.count = own, .type = sdtype, .vectors = vectors})

static COLL_UCG_APART int
scatterv_anew(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_displs_t displs,
              struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
              struct ompi_datatype_t* rdtype, int root, struct ompi_communicator_t* comm,
              mca_coll_base_module_t* module, const coll_ucg_latest_t* latest) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(&call, open_scatterv(&call, INPUT, rbuf, rcount, rdtype, root));
        coll_ucg_remember_call(&call, COLL_UCG_FN_scatterv, latest, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, scatterv, status, sbuf, scounts, displs, sdtype, rbuf, rcount,
                            rdtype, root, comm);
}

int mca_coll_ucg_scatterv(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_displs_t displs,
                          struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                          struct ompi_datatype_t* rdtype, int root,
                          struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    DESCRIBE_SCATTERV(call, alike);
    if (alike && coll_ucg_repeats_described(ucg, COLL_UCG_FN_scatterv, &call)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_scatterv, sbuf, call.in_place ? NULL : rbuf);
    }
    return scatterv_anew(sbuf, scounts, displs, sdtype, rbuf, rcount, rdtype, root, comm, module,
                         alike ? &call : NULL);
}

static COLL_UCG_APART int iscatterv_anew(const void* sbuf, coll_ucg_counts_t scounts,
                                         coll_ucg_displs_t displs, struct ompi_datatype_t* sdtype,
                                         void* rbuf, coll_ucg_count_t rcount,
                                         struct ompi_datatype_t* rdtype, int root,
                                         struct ompi_communicator_t* comm, ompi_request_t** request,
                                         mca_coll_base_module_t* module,
                                         const coll_ucg_latest_t* latest) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const ucg_status_t opened = open_scatterv(&mine->call, INPUT, rbuf, rcount, rdtype, root);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_iscatterv, latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, iscatterv, status, sbuf, scounts, displs, sdtype, rbuf, rcount,
                               rdtype, root, comm, request);
}

int mca_coll_ucg_iscatterv(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_displs_t displs,
                           struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                           struct ompi_datatype_t* rdtype, int root,
                           struct ompi_communicator_t* comm, ompi_request_t** request,
                           mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    DESCRIBE_SCATTERV(call, alike);
    if (alike &&
        coll_ucg_repeats_all_of(coll_ucg_latest_start(ucg, COLL_UCG_FN_iscatterv), &call)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_iscatterv, sbuf, call.in_place ? NULL : rbuf,
                                request);
    }
    return iscatterv_anew(sbuf, scounts, displs, sdtype, rbuf, rcount, rdtype, root, comm, request,
                          module, alike ? &call : NULL);
}

int mca_coll_ucg_scatterv_init(const void* sbuf, coll_ucg_counts_t scounts,
                               coll_ucg_displs_t displs, struct ompi_datatype_t* sdtype, void* rbuf,
                               coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype, int root,
                               struct ompi_communicator_t* comm, struct ompi_info_t* info,
                               ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(
            mine, open_scatterv(&mine->call, INPUT, rbuf, rcount, rdtype, root), request);
    }
    COLL_UCG_LEAVE(ucg, scatterv_init, status, sbuf, scounts, displs, sdtype, rbuf, rcount, rdtype,
                   root, comm, info, request);
}
