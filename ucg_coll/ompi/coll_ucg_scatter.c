/*
 * MPI_Scatter and MPI_Scatterv. The send arguments mean something at the root only; there,
 * MPI_IN_PLACE as receive buffer leaves the root's part where it is.
 */
#include "coll_ucg_forms.h"

/** Opens the part that a rank receives. */
static ucg_status_t open_part(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    const size_t count = (size_t)arguments->rcount;
    call->params.count = coll_ucg_part(&call->params, arguments->rdtype, count);
    return coll_ucg_open_receive(call, arguments->rbuf, count, arguments->rdtype);
}

/* ------------------------------------------------------------------ scatter */

static ucg_status_t open_scatter_at_root(coll_ucg_call_t* call,
                                         const coll_ucg_arguments_t* arguments) {
    const size_t count = (size_t)arguments->scount;
    const size_t received = (size_t)arguments->rcount;
    call->params.count = coll_ucg_packed_bytes(arguments->sdtype, count);
    ucg_status_t status =
        coll_ucg_open_send(call, arguments->sbuf, count * coll_ucg_size(call), arguments->sdtype);
    if (MPI_IN_PLACE == arguments->rbuf) {
        call->params.flags = UCG_COLL_FLAG_IN_PLACE;
        return status;
    }
    if (UCG_OK == status) {
        status = coll_ucg_check_own_block(call, call->params.count,
                                          coll_ucg_packed_bytes(arguments->rdtype, received));
    }
    return UCG_OK == status
               ? coll_ucg_open_receive(call, arguments->rbuf, received, arguments->rdtype)
               : status;
}

ucg_status_t coll_ucg_open_scatter(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    call->params = (ucg_coll_params_t){
        .type = UCG_COLL_SCATTER, .root = (uint32_t)arguments->root, .element_bytes = 1};
    const ucg_status_t status = arguments->root == coll_ucg_rank(call)
                                    ? open_scatter_at_root(call, arguments)
                                    : open_part(call, arguments);
    call->empty = 0 == call->params.count;
    return status;
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
    if (0 == (MPI_IN_PLACE == rbuf ? coll_ucg_packed_bytes(sdtype, (size_t)scount)
                                   : coll_ucg_packed_bytes(rdtype, (size_t)rcount))) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_scatter);
    }
    return coll_ucg_blocking(ucg, COLL_UCG_FN_scatter,
                             (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .root = root},
                             alike ? &call : NULL);
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
    return coll_ucg_nonblocking(
        ucg, COLL_UCG_FN_iscatter,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .root = root, .request = request},
        alike ? &call : NULL);
}

int mca_coll_ucg_scatter_init(const void* sbuf, coll_ucg_count_t scount,
                              struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                              struct ompi_datatype_t* rdtype, int root,
                              struct ompi_communicator_t* comm, struct ompi_info_t* info,
                              ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_scatter_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED,
                                                      .root = root, .info = info,
                                                      .request = request});
}

/* ------------------------------------------------------------------ scatterv */

static ucg_status_t open_scatterv_at_root(coll_ucg_call_t* call,
                                          const coll_ucg_arguments_t* arguments) {
    const coll_ucg_blocks_t input = coll_ucg_sent_blocks(arguments);
    ucg_coll_params_t* params = &call->params;
    const bool in_place = MPI_IN_PLACE == arguments->rbuf;
    coll_ucg_choose_vectors(params, &input, NULL, in_place ? input.type : arguments->rdtype);
    const ucg_status_t status = coll_ucg_open_send_blocks(call, &input);
    if (UCG_OK == status && in_place) {
        params->flags = UCG_COLL_FLAG_IN_PLACE;
        params->count = coll_ucg_block_length(params, &call->input, arguments->root);
        return UCG_OK;
    }
    return UCG_OK == status ? open_part(call, arguments) : status;
}

/** A rank without bytes takes part too, since the root alone knows all sizes. */
ucg_status_t coll_ucg_open_scatterv(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    call->params = (ucg_coll_params_t){
        .type = UCG_COLL_SCATTERV, .root = (uint32_t)arguments->root, .element_bytes = 1};
    return arguments->root == coll_ucg_rank(call) ? open_scatterv_at_root(call, arguments)
                                                  : open_part(call, arguments);
}

int mca_coll_ucg_scatterv(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_displs_t sdispls,
                          struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                          struct ompi_datatype_t* rdtype, int root,
                          struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_vector_t vectors[2];
    coll_ucg_latest_t call;
    const bool alike = coll_ucg_describe_rooted_blocks(&call, vectors, ucg, root, rbuf, rcount,
                                                       rdtype, scounts, sdispls, sdtype);
    if (alike && coll_ucg_repeats_described(ucg, COLL_UCG_FN_scatterv, &call)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_scatterv, sbuf, call.in_place ? NULL : rbuf);
    }
    return coll_ucg_blocking(
        ucg, COLL_UCG_FN_scatterv,
        (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS, COLL_UCG_RECEIVED, .root = root},
        alike ? &call : NULL);
}

int mca_coll_ucg_iscatterv(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_displs_t sdispls,
                           struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                           struct ompi_datatype_t* rdtype, int root,
                           struct ompi_communicator_t* comm, ompi_request_t** request,
                           mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_vector_t vectors[2];
    coll_ucg_latest_t call;
    const bool alike = coll_ucg_describe_rooted_blocks(&call, vectors, ucg, root, rbuf, rcount,
                                                       rdtype, scounts, sdispls, sdtype);
    if (alike &&
        coll_ucg_repeats_all_of(coll_ucg_latest_start(ucg, COLL_UCG_FN_iscatterv), &call)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_iscatterv, sbuf, call.in_place ? NULL : rbuf,
                                request);
    }
    return coll_ucg_nonblocking(ucg, COLL_UCG_FN_iscatterv,
                                (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS, COLL_UCG_RECEIVED,
                                                       .root = root, .request = request},
                                alike ? &call : NULL);
}

int mca_coll_ucg_scatterv_init(const void* sbuf, coll_ucg_counts_t scounts,
                               coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                               void* rbuf, coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                               int root, struct ompi_communicator_t* comm, struct ompi_info_t* info,
                               ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_scatterv_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS, COLL_UCG_RECEIVED,
                                                      .root = root, .info = info,
                                                      .request = request});
}
