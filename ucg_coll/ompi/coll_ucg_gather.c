/*
 * MPI_Gather and MPI_Gatherv. The receive arguments mean something at the root only.
 */
#include "coll_ucg_background.h"
#include "coll_ucg_call.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"
#include "coll_ucg_restart.h"

static ucg_status_t open_part(coll_ucg_call_t* call, const void* sbuf, size_t scount,
                              const ompi_datatype_t* stype) {
    call->params.count = coll_ucg_part(&call->params, stype, scount);
    return coll_ucg_open_send(call, sbuf, scount, stype);
}

/* ------------------------------------------------------------------ gather */

/** Opens the call at the root, whose own block goes through libucg as well. */
static ucg_status_t open_gather_at_root(coll_ucg_call_t* call, const void* sbuf, size_t scount,
                                        const ompi_datatype_t* stype, void* rbuf, size_t rcount,
                                        const ompi_datatype_t* rtype) {
    ucg_coll_params_t* params = &call->params;
    params->count = coll_ucg_packed_bytes(rtype, rcount);
    ucg_status_t status = coll_ucg_open_receive(call, rbuf, rcount * coll_ucg_size(call), rtype);
    if (UCG_OK == status && MPI_IN_PLACE == sbuf) {
        coll_ucg_read_in_place(call, params->root * rcount, rcount);
        return UCG_OK;
    }
    if (UCG_OK == status) {
        status =
            coll_ucg_check_own_block(call, coll_ucg_packed_bytes(stype, scount), params->count);
    }
    return UCG_OK == status ? coll_ucg_open_send(call, sbuf, scount, stype) : status;
}

static ucg_status_t open_gather(coll_ucg_call_t* call, const void* sbuf, coll_ucg_count_t scount,
                                const ompi_datatype_t* stype, void* rbuf, coll_ucg_count_t rcount,
                                const ompi_datatype_t* rtype, int root) {
    call->params =
        (ucg_coll_params_t){.type = UCG_COLL_GATHER, .root = (uint32_t)root, .element_bytes = 1};
    const ucg_status_t status =
        root == coll_ucg_rank(call)
            ? open_gather_at_root(call, sbuf, (size_t)scount, stype, rbuf, (size_t)rcount, rtype)
            : open_part(call, sbuf, (size_t)scount, stype);
    call->empty = 0 == call->params.count;
    return status;
}

static COLL_UCG_APART int gather_anew(const void* sbuf, coll_ucg_count_t scount,
                                      struct ompi_datatype_t* sdtype, void* rbuf,
                                      coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                      int root, struct ompi_communicator_t* comm,
                                      mca_coll_base_module_t* module,
                                      const coll_ucg_latest_t* latest) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    if (0 == (MPI_IN_PLACE == sbuf ? coll_ucg_packed_bytes(rdtype, (size_t)rcount)
                                   : coll_ucg_packed_bytes(sdtype, (size_t)scount))) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_gather);
    }
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(
            &call, open_gather(&call, sbuf, scount, sdtype, rbuf, rcount, rdtype, root));
        coll_ucg_remember_call(&call, COLL_UCG_FN_gather, latest, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, gather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, root,
                            comm);
}

int mca_coll_ucg_gather(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype,
                        void* rbuf, coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                        int root, struct ompi_communicator_t* comm,
                        mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_latest_t call;
    const bool alike =
        coll_ucg_describe_rooted(&call, ucg, root, sbuf, scount, sdtype,
                                 (coll_ucg_root_blocks_t){.count = rcount, .type = rdtype});
    if (alike && coll_ucg_repeats_described(ucg, COLL_UCG_FN_gather, &call)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_gather, call.in_place ? NULL : sbuf, rbuf);
    }
    return gather_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, root, comm, module,
                       alike ? &call : NULL);
}

static COLL_UCG_APART int igather_anew(const void* sbuf, coll_ucg_count_t scount,
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
            open_gather(&mine->call, sbuf, scount, sdtype, rbuf, rcount, rdtype, root);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_igather, latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, igather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                               root, comm, request);
}

int mca_coll_ucg_igather(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype,
                         void* rbuf, coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                         int root, struct ompi_communicator_t* comm, ompi_request_t** request,
                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_latest_t call;
    const bool alike =
        coll_ucg_describe_rooted(&call, ucg, root, sbuf, scount, sdtype,
                                 (coll_ucg_root_blocks_t){.count = rcount, .type = rdtype});
    if (alike && coll_ucg_repeats_all_of(coll_ucg_latest_start(ucg, COLL_UCG_FN_igather), &call)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_igather, call.in_place ? NULL : sbuf, rbuf,
                                request);
    }
    return igather_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, root, comm, request, module,
                        alike ? &call : NULL);
}

int mca_coll_ucg_gather_init(const void* sbuf, coll_ucg_count_t scount,
                             struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                             struct ompi_datatype_t* rdtype, int root,
                             struct ompi_communicator_t* comm, struct ompi_info_t* info,
                             ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(
            mine, open_gather(&mine->call, sbuf, scount, sdtype, rbuf, rcount, rdtype, root),
            request);
    }
    COLL_UCG_LEAVE(ucg, gather_init, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, root, comm,
                   info, request);
}

/* ------------------------------------------------------------------ gatherv */

static ucg_status_t open_gatherv_at_root(coll_ucg_call_t* call, const void* sbuf, size_t scount,
                                         const ompi_datatype_t* stype,
                                         const coll_ucg_blocks_t* output) {
    ucg_coll_params_t* params = &call->params;
    const int root = (int)params->root;
    coll_ucg_choose_vectors(params, output, NULL, MPI_IN_PLACE == sbuf ? output->type : stype);
    const ucg_status_t status = coll_ucg_open_receive_blocks(call, output);
    if (UCG_OK == status && MPI_IN_PLACE == sbuf) {
        params->count = coll_ucg_block_length(params, &call->output, root);
        coll_ucg_read_in_place(call, (size_t)root, 1);
        return UCG_OK;
    }
    return UCG_OK == status ? open_part(call, sbuf, scount, stype) : status;
}

/** Opens a gatherv. A rank without bytes takes part too, since the root alone knows all sizes. */
static ucg_status_t open_gatherv(coll_ucg_call_t* call, const void* sbuf, coll_ucg_count_t scount,
                                 const ompi_datatype_t* stype, const coll_ucg_blocks_t* output,
                                 int root) {
    call->params =
        (ucg_coll_params_t){.type = UCG_COLL_GATHERV, .root = (uint32_t)root, .element_bytes = 1};
    return root == coll_ucg_rank(call)
               ? open_gatherv_at_root(call, sbuf, (size_t)scount, stype, output)
               : open_part(call, sbuf, (size_t)scount, stype);
}

/** The blocks that the functions' arguments describe. */
#define OUTPUT (&(coll_ucg_blocks_t){rbuf, rcounts, displs, rdtype, NULL})

/** Declares `call`, the description of the functions' arguments, and `alike`, which says whether
 *  such a call may be repeated. */
#define DESCRIBE_GATHERV(call, alike)                                                              \
    const coll_ucg_vector_t vectors[] = {COLL_UCG_COUNTS(rcounts, ompi_comm_size(comm)),           \
                                         COLL_UCG_DISPLS(displs, ompi_comm_size(comm))};           \
    const coll_ucg_count_t own =                                                                   \
        ompi_comm_rank(comm) == root ? coll_ucg_own_count(rcounts, comm) : 0;                      \
    coll_ucg_latest_t call;                                                                        \
    const bool alike = coll_ucg_describe_rooted(                                                   \
        &(call), ucg, root, sbuf, scount, sdtype,                                                  \
        (coll_ucg_root_blocks_t){.count = own, .type = rdtype, .vectors = vectors})

static COLL_UCG_APART int
gatherv_anew(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype, void* rbuf,
             coll_ucg_counts_t rcounts, coll_ucg_displs_t displs, struct ompi_datatype_t* rdtype,
             int root, struct ompi_communicator_t* comm, mca_coll_base_module_t* module,
             const coll_ucg_latest_t* latest) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(&call, open_gatherv(&call, sbuf, scount, sdtype, OUTPUT, root));
        coll_ucg_remember_call(&call, COLL_UCG_FN_gatherv, latest, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, gatherv, status, sbuf, scount, sdtype, rbuf, rcounts, displs,
                            rdtype, root, comm);
}

int mca_coll_ucg_gatherv(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype,
                         void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t displs,
                         struct ompi_datatype_t* rdtype, int root, struct ompi_communicator_t* comm,
                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    DESCRIBE_GATHERV(call, alike);
    if (alike && coll_ucg_repeats_described(ucg, COLL_UCG_FN_gatherv, &call)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_gatherv, call.in_place ? NULL : sbuf, rbuf);
    }
    return gatherv_anew(sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, root, comm, module,
                        alike ? &call : NULL);
}

static COLL_UCG_APART int
igatherv_anew(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype, void* rbuf,
              coll_ucg_counts_t rcounts, coll_ucg_displs_t displs, struct ompi_datatype_t* rdtype,
              int root, struct ompi_communicator_t* comm, ompi_request_t** request,
              mca_coll_base_module_t* module, const coll_ucg_latest_t* latest) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const ucg_status_t opened = open_gatherv(&mine->call, sbuf, scount, sdtype, OUTPUT, root);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_igatherv, latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, igatherv, status, sbuf, scount, sdtype, rbuf, rcounts, displs,
                               rdtype, root, comm, request);
}

int mca_coll_ucg_igatherv(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype,
                          void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t displs,
                          struct ompi_datatype_t* rdtype, int root,
                          struct ompi_communicator_t* comm, ompi_request_t** request,
                          mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    DESCRIBE_GATHERV(call, alike);
    if (alike && coll_ucg_repeats_all_of(coll_ucg_latest_start(ucg, COLL_UCG_FN_igatherv), &call)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_igatherv, call.in_place ? NULL : sbuf, rbuf,
                                request);
    }
    return igatherv_anew(sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, root, comm, request,
                         module, alike ? &call : NULL);
}

int mca_coll_ucg_gatherv_init(const void* sbuf, coll_ucg_count_t scount,
                              struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_counts_t rcounts,
                              coll_ucg_displs_t displs, struct ompi_datatype_t* rdtype, int root,
                              struct ompi_communicator_t* comm, struct ompi_info_t* info,
                              ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(
            mine, open_gatherv(&mine->call, sbuf, scount, sdtype, OUTPUT, root), request);
    }
    COLL_UCG_LEAVE(ucg, gatherv_init, status, sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype,
                   root, comm, info, request);
}
