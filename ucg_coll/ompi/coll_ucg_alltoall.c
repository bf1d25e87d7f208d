/*
 * MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw. To libucg the last two are one: blocks of bytes.
 */
#include "coll_ucg_forms.h"

/* ------------------------------------------------------------------ alltoall */

ucg_status_t coll_ucg_open_alltoall(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    const size_t size = coll_ucg_size(call);
    const size_t sent = (size_t)arguments->scount;
    const size_t received = (size_t)arguments->rcount;
    call->params = (ucg_coll_params_t){
        .type = UCG_COLL_ALLTOALL,
        .count = coll_ucg_packed_bytes(arguments->rdtype, received),
        .element_bytes = 1,
    };
    call->empty = 0 == call->params.count;
    ucg_status_t status =
        coll_ucg_open_receive(call, arguments->rbuf, received * size, arguments->rdtype);
    if (UCG_OK == status && MPI_IN_PLACE == arguments->sbuf) {
        coll_ucg_read_in_place(call, 0, received * size);
        return UCG_OK;
    }
    if (UCG_OK == status) {
        status = coll_ucg_check_own_block(call, coll_ucg_packed_bytes(arguments->sdtype, sent),
                                          call->params.count);
    }
    return UCG_OK == status
               ? coll_ucg_open_send(call, arguments->sbuf, sent * size, arguments->sdtype)
               : status;
}

int mca_coll_ucg_alltoall(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype,
                          void* rbuf, coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                          struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_alltoall];
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool alike = in_place || (scount == rcount && sdtype == rdtype);
    if (alike && coll_ucg_repeats(latest, rdtype, NULL, rcount, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_alltoall, in_place ? NULL : sbuf, rbuf);
    }
    return coll_ucg_blocking_plain(ucg, COLL_UCG_FN_alltoall,
                                   (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED});
}

int mca_coll_ucg_ialltoall(const void* sbuf, coll_ucg_count_t scount,
                           struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                           struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                           ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_ialltoall);
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool alike = in_place || (scount == rcount && sdtype == rdtype);
    if (alike && coll_ucg_repeats(latest, rdtype, NULL, rcount, in_place)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_ialltoall, in_place ? NULL : sbuf, rbuf, request);
    }
    return coll_ucg_nonblocking_plain(
        ucg, COLL_UCG_FN_ialltoall,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .request = request});
}

int mca_coll_ucg_alltoall_init(const void* sbuf, coll_ucg_count_t scount,
                               struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                               struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                               struct ompi_info_t* info, ompi_request_t** request,
                               mca_coll_base_module_t* module) {
    return coll_ucg_persistent(
        module, COLL_UCG_FN_alltoall_init,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .info = info, .request = request});
}

/* ------------------------------------------------------------------ alltoallv and alltoallw */

/** Opens a call with blocks of sizes of their own, all of one type or each of a type of its own. */
static ucg_status_t open_blocks(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    const coll_ucg_blocks_t input = coll_ucg_sent_blocks(arguments);
    const coll_ucg_blocks_t output = coll_ucg_received_blocks(arguments);
    const bool in_place = MPI_IN_PLACE == input.user;
    call->params = (ucg_coll_params_t){.type = UCG_COLL_ALLTOALLV};
    coll_ucg_choose_vectors(&call->params, &output, in_place ? NULL : &input,
                            in_place ? output.type : input.type);
    const ucg_status_t status = coll_ucg_open_receive_blocks(call, &output);
    if (UCG_OK == status && in_place) {
        coll_ucg_read_in_place(call, 0, coll_ucg_size(call));
        return UCG_OK;
    }
    return UCG_OK == status ? coll_ucg_open_send_blocks(call, &input) : status;
}

ucg_status_t coll_ucg_open_alltoallv(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    return open_blocks(call, arguments);
}

ucg_status_t coll_ucg_open_alltoallw(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments) {
    return open_blocks(call, arguments);
}

/* Vectors with an entry for each rank. Those of what is sent come last, and are left out for
   MPI_IN_PLACE, since MPI ignores them. */
#define COUNTS(vector) COLL_UCG_COUNTS(vector, ompi_comm_size(comm))
#define DISPLS(vector) COLL_UCG_DISPLS(vector, ompi_comm_size(comm))
#define TYPES(vector) COLL_UCG_TYPES(vector, ompi_comm_size(comm))

/** Declare `call`, the description of the functions' arguments. */
#define DESCRIBE_V(call)                                                                           \
    const coll_ucg_vector_t vectors[] = {COUNTS(rcounts), DISPLS(rdispls), COUNTS(scounts),        \
                                         DISPLS(sdispls)};                                         \
    const coll_ucg_latest_t call = {.type = rdtype,                                                \
                                    .in_place = in_place,                                          \
                                    .vector_count = in_place ? 2 : 4,                              \
                                    .vectors = vectors}
#define DESCRIBE_W(call)                                                                           \
    const coll_ucg_vector_t vectors[] = {COUNTS(rcounts), DISPLS(rdispls), TYPES(rdtypes),         \
                                         COUNTS(scounts), DISPLS(sdispls), TYPES(sdtypes)};        \
    const coll_ucg_latest_t call = {                                                               \
        .in_place = in_place, .vector_count = in_place ? 3 : 6, .vectors = vectors}

int mca_coll_ucg_alltoallv(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_displs_t sdispls,
                           struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_counts_t rcounts,
                           coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                           struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    DESCRIBE_V(call);
    const bool alike = in_place || sdtype == rdtype;
    int result;
    if (alike && coll_ucg_repeats_described(ucg, COLL_UCG_FN_alltoallv, &call) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_alltoallv, in_place ? NULL : sbuf, rbuf, &result)) {
        return result;
    }
    return coll_ucg_blocking(ucg, COLL_UCG_FN_alltoallv,
                             (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS, COLL_UCG_RECEIVED_BLOCKS},
                             alike ? &call : NULL);
}

int mca_coll_ucg_ialltoallv(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_displs_t sdispls,
                            struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_counts_t rcounts,
                            coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                            struct ompi_communicator_t* comm, ompi_request_t** request,
                            mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    DESCRIBE_V(call);
    const bool alike = in_place || sdtype == rdtype;
    ucg_status_t status = UCG_OK;
    if (alike &&
        coll_ucg_repeats_all_of(coll_ucg_latest_start(ucg, COLL_UCG_FN_ialltoallv), &call) &&
        coll_ucg_try_to_restart(ucg, COLL_UCG_FN_ialltoallv, in_place ? NULL : sbuf, rbuf, request,
                                &status)) {
        return coll_ucg_restarted(ucg, COLL_UCG_FN_ialltoallv, status);
    }
    return coll_ucg_nonblocking(
        ucg, COLL_UCG_FN_ialltoallv,
        (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS, COLL_UCG_RECEIVED_BLOCKS, .request = request},
        alike ? &call : NULL);
}

int mca_coll_ucg_alltoallv_init(const void* sbuf, coll_ucg_counts_t scounts,
                                coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                struct ompi_info_t* info, ompi_request_t** request,
                                mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_alltoallv_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS,
                                                      COLL_UCG_RECEIVED_BLOCKS, .info = info,
                                                      .request = request});
}

int mca_coll_ucg_alltoallw(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_displs_t sdispls,
                           struct ompi_datatype_t* const* sdtypes, void* rbuf,
                           coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                           struct ompi_datatype_t* const* rdtypes, struct ompi_communicator_t* comm,
                           mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    DESCRIBE_W(call);
    int result;
    if (coll_ucg_repeats_described(ucg, COLL_UCG_FN_alltoallw, &call) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_alltoallw, in_place ? NULL : sbuf, rbuf, &result)) {
        return result;
    }
    return coll_ucg_blocking(ucg, COLL_UCG_FN_alltoallw,
                             (coll_ucg_arguments_t){COLL_UCG_SENT_TYPES, COLL_UCG_RECEIVED_TYPES},
                             &call);
}

int mca_coll_ucg_ialltoallw(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_displs_t sdispls,
                            struct ompi_datatype_t* const* sdtypes, void* rbuf,
                            coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                            struct ompi_datatype_t* const* rdtypes,
                            struct ompi_communicator_t* comm, ompi_request_t** request,
                            mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    DESCRIBE_W(call);
    ucg_status_t status = UCG_OK;
    if (coll_ucg_repeats_all_of(coll_ucg_latest_start(ucg, COLL_UCG_FN_ialltoallw), &call) &&
        coll_ucg_try_to_restart(ucg, COLL_UCG_FN_ialltoallw, in_place ? NULL : sbuf, rbuf, request,
                                &status)) {
        return coll_ucg_restarted(ucg, COLL_UCG_FN_ialltoallw, status);
    }
    return coll_ucg_nonblocking(
        ucg, COLL_UCG_FN_ialltoallw,
        (coll_ucg_arguments_t){COLL_UCG_SENT_TYPES, COLL_UCG_RECEIVED_TYPES, .request = request},
        &call);
}

int mca_coll_ucg_alltoallw_init(const void* sbuf, coll_ucg_counts_t scounts,
                                coll_ucg_displs_t sdispls, struct ompi_datatype_t* const* sdtypes,
                                void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                struct ompi_datatype_t* const* rdtypes,
                                struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_alltoallw_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT_TYPES, COLL_UCG_RECEIVED_TYPES,
                                                      .info = info, .request = request});
}
