/*
 * MPI_Allgather and MPI_Allgatherv.
 */
#include "coll_ucg_forms.h"

/* ------------------------------------------------------------------ allgather */

ucg_status_t coll_ucg_open_allgather(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    const ompi_datatype_t* type = arguments->rdtype;
    const size_t count = (size_t)arguments->rcount;
    const size_t sent = (size_t)arguments->scount;
    call->params = (ucg_coll_params_t){
        .type = UCG_COLL_ALLGATHER,
        .count = coll_ucg_packed_bytes(type, count),
        .element_bytes = 1,
    };
    call->empty = 0 == call->params.count;
    ucg_status_t status =
        coll_ucg_open_receive(call, arguments->rbuf, count * coll_ucg_size(call), type);
    if (UCG_OK == status && MPI_IN_PLACE == arguments->sbuf) {
        coll_ucg_read_in_place(call, (size_t)coll_ucg_rank(call) * count, count);
        return UCG_OK;
    }
    if (UCG_OK == status) {
        status = coll_ucg_check_own_block(call, coll_ucg_packed_bytes(arguments->sdtype, sent),
                                          call->params.count);
    }
    return UCG_OK == status ? coll_ucg_open_send(call, arguments->sbuf, sent, arguments->sdtype)
                            : status;
}

int mca_coll_ucg_allgather(const void* sbuf, coll_ucg_count_t scount,
                           struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                           struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                           mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_allgather];
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool alike = in_place || (scount == rcount && sdtype == rdtype);
    if (alike && coll_ucg_repeats(latest, rdtype, NULL, rcount, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_allgather, in_place ? NULL : sbuf, rbuf);
    }
    if (0 == coll_ucg_packed_bytes(rdtype, (size_t)rcount)) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_allgather);
    }
    return coll_ucg_blocking_plain(ucg, COLL_UCG_FN_allgather,
                                   (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED});
}

int mca_coll_ucg_iallgather(const void* sbuf, coll_ucg_count_t scount,
                            struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                            struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                            ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_iallgather);
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool alike = in_place || (scount == rcount && sdtype == rdtype);
    if (alike && coll_ucg_repeats(latest, rdtype, NULL, rcount, in_place)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_iallgather, in_place ? NULL : sbuf, rbuf, request);
    }
    return coll_ucg_nonblocking_plain(
        ucg, COLL_UCG_FN_iallgather,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .request = request});
}

int mca_coll_ucg_allgather_init(const void* sbuf, coll_ucg_count_t scount,
                                struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                                struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                struct ompi_info_t* info, ompi_request_t** request,
                                mca_coll_base_module_t* module) {
    return coll_ucg_persistent(
        module, COLL_UCG_FN_allgather_init,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .info = info, .request = request});
}

/* ------------------------------------------------------------------ allgatherv */

ucg_status_t coll_ucg_open_allgatherv(coll_ucg_call_t* call,
                                      const coll_ucg_arguments_t* arguments) {
    const coll_ucg_blocks_t output = coll_ucg_received_blocks(arguments);
    const size_t sent = (size_t)arguments->scount;
    call->params = (ucg_coll_params_t){.type = UCG_COLL_ALLGATHERV};
    coll_ucg_choose_vectors(&call->params, &output, NULL, output.type);
    ucg_status_t status = coll_ucg_open_receive_blocks(call, &output);
    if (UCG_OK == status && MPI_IN_PLACE == arguments->sbuf) {
        coll_ucg_read_in_place(call, (size_t)coll_ucg_rank(call), 1);
        return UCG_OK;
    }
    if (UCG_OK == status) {
        const size_t own = coll_ucg_count_at(output.counts, (size_t)coll_ucg_rank(call));
        status = coll_ucg_check_own_block(call, coll_ucg_packed_bytes(arguments->sdtype, sent),
                                          coll_ucg_packed_bytes(output.type, own));
    }
    return UCG_OK == status ? coll_ucg_open_send(call, arguments->sbuf, sent, arguments->sdtype)
                            : status;
}

static bool all_are_empty(coll_ucg_counts_t counts, const ompi_datatype_t* type,
                          ompi_communicator_t* comm) {
    bool empty = true;
    for (size_t i = 0; i < (size_t)ompi_comm_size(comm) && empty; i++) {
        empty = 0 == coll_ucg_packed_bytes(type, coll_ucg_count_at(counts, i));
    }
    return empty;
}

int mca_coll_ucg_allgatherv(const void* sbuf, coll_ucg_count_t scount,
                            struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_counts_t rcounts,
                            coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                            struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_allgatherv];
    const bool in_place = MPI_IN_PLACE == sbuf;
    const coll_ucg_count_t own = coll_ucg_own_count(rcounts, comm);
    const bool alike = in_place || (scount == own && sdtype == rdtype);
    const coll_ucg_vector_t vectors[] = {COLL_UCG_COUNTS(rcounts, ompi_comm_size(comm)),
                                         COLL_UCG_DISPLS(rdispls, ompi_comm_size(comm))};
    if (alike && coll_ucg_repeats(latest, rdtype, NULL, own, in_place) &&
        coll_ucg_same_vectors(latest, vectors, 2)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_allgatherv, in_place ? NULL : sbuf, rbuf);
    }
    if (all_are_empty(rcounts, rdtype, comm)) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_allgatherv);
    }
    const coll_ucg_latest_t call = {
        .type = rdtype, .count = own, .in_place = in_place, .vector_count = 2, .vectors = vectors};
    return coll_ucg_blocking(ucg, COLL_UCG_FN_allgatherv,
                             (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS},
                             alike ? &call : NULL);
}

int mca_coll_ucg_iallgatherv(const void* sbuf, coll_ucg_count_t scount,
                             struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_counts_t rcounts,
                             coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                             struct ompi_communicator_t* comm, ompi_request_t** request,
                             mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    const coll_ucg_count_t own = coll_ucg_own_count(rcounts, comm);
    const bool alike = in_place || (scount == own && sdtype == rdtype);
    const coll_ucg_vector_t vectors[] = {COLL_UCG_COUNTS(rcounts, ompi_comm_size(comm)),
                                         COLL_UCG_DISPLS(rdispls, ompi_comm_size(comm))};
    const coll_ucg_latest_t call = {
        .type = rdtype, .count = own, .in_place = in_place, .vector_count = 2, .vectors = vectors};
    if (alike &&
        coll_ucg_repeats_all_of(coll_ucg_latest_start(ucg, COLL_UCG_FN_iallgatherv), &call)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_iallgatherv, in_place ? NULL : sbuf, rbuf,
                                request);
    }
    return coll_ucg_nonblocking(
        ucg, COLL_UCG_FN_iallgatherv,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS, .request = request},
        alike ? &call : NULL);
}

int mca_coll_ucg_allgatherv_init(const void* sbuf, coll_ucg_count_t scount,
                                 struct ompi_datatype_t* sdtype, void* rbuf,
                                 coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                 struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                 struct ompi_info_t* info, ompi_request_t** request,
                                 mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_allgatherv_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS,
                                                      .info = info, .request = request});
}
