/*
 * MPI_Gather and MPI_Gatherv. The receive arguments mean something at the root only.
 */
#include "coll_ucg_forms.h"

/** Opens the part that a rank sends. */
static ucg_status_t open_part(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    const size_t count = (size_t)arguments->scount;
    call->params.count = coll_ucg_part(&call->params, arguments->sdtype, count);
    return coll_ucg_open_send(call, arguments->sbuf, count, arguments->sdtype);
}

/* ------------------------------------------------------------------ gather */

/** Opens the call at the root, whose own block goes through libucg as well. */
static ucg_status_t open_gather_at_root(coll_ucg_call_t* call,
                                        const coll_ucg_arguments_t* arguments) {
    ucg_coll_params_t* params = &call->params;
    const size_t sent = (size_t)arguments->scount;
    const size_t count = (size_t)arguments->rcount;
    params->count = coll_ucg_packed_bytes(arguments->rdtype, count);
    ucg_status_t status = coll_ucg_open_receive(call, arguments->rbuf, count * coll_ucg_size(call),
                                                arguments->rdtype);
    if (UCG_OK == status && MPI_IN_PLACE == arguments->sbuf) {
        coll_ucg_read_in_place(call, params->root * count, count);
        return UCG_OK;
    }
    if (UCG_OK == status) {
        status = coll_ucg_check_own_block(call, coll_ucg_packed_bytes(arguments->sdtype, sent),
                                          params->count);
    }
    return UCG_OK == status ? coll_ucg_open_send(call, arguments->sbuf, sent, arguments->sdtype)
                            : status;
}

ucg_status_t coll_ucg_open_gather(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    call->params = (ucg_coll_params_t){
        .type = UCG_COLL_GATHER, .root = (uint32_t)arguments->root, .element_bytes = 1};
    const ucg_status_t status = arguments->root == coll_ucg_rank(call)
                                    ? open_gather_at_root(call, arguments)
                                    : open_part(call, arguments);
    call->empty = 0 == call->params.count;
    return status;
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
    if (0 == (MPI_IN_PLACE == sbuf ? coll_ucg_packed_bytes(rdtype, (size_t)rcount)
                                   : coll_ucg_packed_bytes(sdtype, (size_t)scount))) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_gather);
    }
    return coll_ucg_blocking(ucg, COLL_UCG_FN_gather,
                             (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .root = root},
                             alike ? &call : NULL);
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
    return coll_ucg_nonblocking(
        ucg, COLL_UCG_FN_igather,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .root = root, .request = request},
        alike ? &call : NULL);
}

int mca_coll_ucg_gather_init(const void* sbuf, coll_ucg_count_t scount,
                             struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                             struct ompi_datatype_t* rdtype, int root,
                             struct ompi_communicator_t* comm, struct ompi_info_t* info,
                             ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_gather_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED,
                                                      .root = root, .info = info,
                                                      .request = request});
}

/* ------------------------------------------------------------------ gatherv */

static ucg_status_t open_gatherv_at_root(coll_ucg_call_t* call,
                                         const coll_ucg_arguments_t* arguments) {
    const coll_ucg_blocks_t output = coll_ucg_received_blocks(arguments);
    ucg_coll_params_t* params = &call->params;
    const bool in_place = MPI_IN_PLACE == arguments->sbuf;
    coll_ucg_choose_vectors(params, &output, NULL, in_place ? output.type : arguments->sdtype);
    const ucg_status_t status = coll_ucg_open_receive_blocks(call, &output);
    if (UCG_OK == status && in_place) {
        params->count = coll_ucg_block_length(params, &call->output, arguments->root);
        coll_ucg_read_in_place(call, (size_t)arguments->root, 1);
        return UCG_OK;
    }
    return UCG_OK == status ? open_part(call, arguments) : status;
}

/** A rank without bytes takes part too, since the root alone knows all sizes. */
ucg_status_t coll_ucg_open_gatherv(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    call->params = (ucg_coll_params_t){
        .type = UCG_COLL_GATHERV, .root = (uint32_t)arguments->root, .element_bytes = 1};
    return arguments->root == coll_ucg_rank(call) ? open_gatherv_at_root(call, arguments)
                                                  : open_part(call, arguments);
}

int mca_coll_ucg_gatherv(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype,
                         void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                         struct ompi_datatype_t* rdtype, int root, struct ompi_communicator_t* comm,
                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_vector_t vectors[2];
    coll_ucg_latest_t call;
    const bool alike = coll_ucg_describe_rooted_blocks(&call, vectors, ucg, root, sbuf, scount,
                                                       sdtype, rcounts, rdispls, rdtype);
    if (alike && coll_ucg_repeats_described(ucg, COLL_UCG_FN_gatherv, &call)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_gatherv, call.in_place ? NULL : sbuf, rbuf);
    }
    return coll_ucg_blocking(
        ucg, COLL_UCG_FN_gatherv,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS, .root = root},
        alike ? &call : NULL);
}

int mca_coll_ucg_igatherv(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype,
                          void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                          struct ompi_datatype_t* rdtype, int root,
                          struct ompi_communicator_t* comm, ompi_request_t** request,
                          mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_vector_t vectors[2];
    coll_ucg_latest_t call;
    const bool alike = coll_ucg_describe_rooted_blocks(&call, vectors, ucg, root, sbuf, scount,
                                                       sdtype, rcounts, rdispls, rdtype);
    if (alike && coll_ucg_repeats_all_of(coll_ucg_latest_start(ucg, COLL_UCG_FN_igatherv), &call)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_igatherv, call.in_place ? NULL : sbuf, rbuf,
                                request);
    }
    return coll_ucg_nonblocking(ucg, COLL_UCG_FN_igatherv,
                                (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS,
                                                       .root = root, .request = request},
                                alike ? &call : NULL);
}

int mca_coll_ucg_gatherv_init(const void* sbuf, coll_ucg_count_t scount,
                              struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_counts_t rcounts,
                              coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype, int root,
                              struct ompi_communicator_t* comm, struct ompi_info_t* info,
                              ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_gatherv_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS,
                                                      .root = root, .info = info,
                                                      .request = request});
}
