/*
 * The neighbourhood collectives. For libucg all five are one: blocks of bytes along edges.
 */
#include "coll_ucg_edges.h"
#include "coll_ucg_forms.h"

/* ------------------------------------------------------------------ opening */

/** Opens a call along the edges of its communicator. */
static ucg_status_t open_along(coll_ucg_call_t* call, const coll_ucg_edge_blocks_t* input,
                               const coll_ucg_edge_blocks_t* output) {
    const ucg_status_t status = coll_ucg_find_edges(call->module);
    return UCG_OK == status ? coll_ucg_open_edges(call, &call->module->edges, input, output)
                            : status;
}

/** `gathers`: one block goes along all edges. */
static ucg_status_t open_call(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments,
                              bool gathers) {
    coll_ucg_edge_blocks_t input = coll_ucg_edge_input(arguments);
    const coll_ucg_edge_blocks_t output = coll_ucg_edge_output(arguments);
    input.is_one = gathers;
    return open_along(call, &input, &output);
}

ucg_status_t coll_ucg_open_neighbor_allgather(coll_ucg_call_t* call,
                                              const coll_ucg_arguments_t* arguments) {
    return open_call(call, arguments, true);
}

ucg_status_t coll_ucg_open_neighbor_allgatherv(coll_ucg_call_t* call,
                                               const coll_ucg_arguments_t* arguments) {
    return open_call(call, arguments, true);
}

ucg_status_t coll_ucg_open_neighbor_alltoall(coll_ucg_call_t* call,
                                             const coll_ucg_arguments_t* arguments) {
    return open_call(call, arguments, false);
}

ucg_status_t coll_ucg_open_neighbor_alltoallv(coll_ucg_call_t* call,
                                              const coll_ucg_arguments_t* arguments) {
    return open_call(call, arguments, false);
}

/** Its displacements are of type MPI_Aint, in bytes. */
ucg_status_t coll_ucg_open_neighbor_alltoallw(coll_ucg_call_t* call,
                                              const coll_ucg_arguments_t* arguments) {
    coll_ucg_edge_blocks_t input = coll_ucg_edge_input(arguments);
    coll_ucg_edge_blocks_t output = coll_ucg_edge_output(arguments);
    input.places = arguments->sdispls;
    output.places = arguments->rdispls;
    return open_along(call, &input, &output);
}

/* ------------------------------------------------------------------ equal blocks */

/**
 * Runs a neighbor_allgather or neighbor_alltoall. MPI_Neighbor_allgather() and
 * MPI_Neighbor_alltoall() return without calling a component where the counts are zero: where a
 * process has no neighbours, or it and all whom edges join to it have no data. In a grid that
 * happens on all processes or none. In a graph no process knows whether it happens on others; so
 * such a call goes to the previous module, and does not count towards making the group.
 */
static COLL_UCG_APART int run_with_all(mca_coll_ucg_module_t* module,
                                       enum coll_ucg_function function,
                                       coll_ucg_arguments_t arguments) {
    if (!OMPI_COMM_IS_CART(module->comm)) {
        return coll_ucg_pass_on(module, function, &arguments);
    }
    if (0 == coll_ucg_packed_bytes(arguments.sdtype, (size_t)arguments.scount) &&
        0 == coll_ucg_packed_bytes(arguments.rdtype, (size_t)arguments.rcount)) {
        return coll_ucg_leave_empty(module, function);
    }
    return coll_ucg_blocking_plain(module, function, arguments);
}

int mca_coll_ucg_neighbor_allgather(const void* sbuf, coll_ucg_count_t scount,
                                    struct ompi_datatype_t* sdtype, void* rbuf,
                                    coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                    struct ompi_communicator_t* comm,
                                    mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_neighbor_allgather];
    int result;
    if (scount == rcount && sdtype == rdtype &&
        coll_ucg_repeats(latest, rdtype, NULL, rcount, false) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_allgather, sbuf, rbuf, &result)) {
        return result;
    }
    return run_with_all(ucg, COLL_UCG_FN_neighbor_allgather,
                        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED});
}

int mca_coll_ucg_ineighbor_allgather(const void* sbuf, coll_ucg_count_t scount,
                                     struct ompi_datatype_t* sdtype, void* rbuf,
                                     coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                     struct ompi_communicator_t* comm, ompi_request_t** request,
                                     mca_coll_base_module_t* module) {
    return coll_ucg_nonblocking(
        (mca_coll_ucg_module_t*)module, COLL_UCG_FN_ineighbor_allgather,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .request = request}, NULL);
}

int mca_coll_ucg_neighbor_allgather_init(const void* sbuf, coll_ucg_count_t scount,
                                         struct ompi_datatype_t* sdtype, void* rbuf,
                                         coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                         ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(
        module, COLL_UCG_FN_neighbor_allgather_init,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .info = info, .request = request});
}

int mca_coll_ucg_neighbor_alltoall(const void* sbuf, coll_ucg_count_t scount,
                                   struct ompi_datatype_t* sdtype, void* rbuf,
                                   coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                   struct ompi_communicator_t* comm,
                                   mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_neighbor_alltoall];
    int result;
    if (scount == rcount && sdtype == rdtype &&
        coll_ucg_repeats(latest, rdtype, NULL, rcount, false) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_alltoall, sbuf, rbuf, &result)) {
        return result;
    }
    return run_with_all(ucg, COLL_UCG_FN_neighbor_alltoall,
                        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED});
}

int mca_coll_ucg_ineighbor_alltoall(const void* sbuf, coll_ucg_count_t scount,
                                    struct ompi_datatype_t* sdtype, void* rbuf,
                                    coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                    struct ompi_communicator_t* comm, ompi_request_t** request,
                                    mca_coll_base_module_t* module) {
    return coll_ucg_nonblocking(
        (mca_coll_ucg_module_t*)module, COLL_UCG_FN_ineighbor_alltoall,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .request = request}, NULL);
}

int mca_coll_ucg_neighbor_alltoall_init(const void* sbuf, coll_ucg_count_t scount,
                                        struct ompi_datatype_t* sdtype, void* rbuf,
                                        coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                        struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                        ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(
        module, COLL_UCG_FN_neighbor_alltoall_init,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .info = info, .request = request});
}

/* ------------------------------------------------------------------ blocks of their own */

/** Vectors with an entry for each block of a side; empty before the communicator's first call. */
#define SENT(KIND, vector) COLL_UCG_##KIND(vector, ucg->edges.sent_blocks)
#define RECEIVED(KIND, vector) COLL_UCG_##KIND(vector, ucg->edges.received_blocks)

int mca_coll_ucg_neighbor_allgatherv(const void* sbuf, coll_ucg_count_t scount,
                                     struct ompi_datatype_t* sdtype, void* rbuf,
                                     coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                     struct ompi_datatype_t* rdtype,
                                     struct ompi_communicator_t* comm,
                                     mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_vector_t vectors[] = {RECEIVED(COUNTS, rcounts), RECEIVED(DISPLS, rdispls)};
    const coll_ucg_latest_t call = {
        .type = rdtype, .count = scount, .vector_count = 2, .vectors = vectors};
    const bool alike = sdtype == rdtype;
    int result;
    if (alike && coll_ucg_repeats_described(ucg, COLL_UCG_FN_neighbor_allgatherv, &call) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_allgatherv, sbuf, rbuf, &result)) {
        return result;
    }
    return coll_ucg_blocking(ucg, COLL_UCG_FN_neighbor_allgatherv,
                             (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS},
                             alike ? &call : NULL);
}

int mca_coll_ucg_ineighbor_allgatherv(const void* sbuf, coll_ucg_count_t scount,
                                      struct ompi_datatype_t* sdtype, void* rbuf,
                                      coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                      struct ompi_datatype_t* rdtype,
                                      struct ompi_communicator_t* comm, ompi_request_t** request,
                                      mca_coll_base_module_t* module) {
    return coll_ucg_nonblocking(
        (mca_coll_ucg_module_t*)module, COLL_UCG_FN_ineighbor_allgatherv,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS, .request = request}, NULL);
}

int mca_coll_ucg_neighbor_allgatherv_init(const void* sbuf, coll_ucg_count_t scount,
                                          struct ompi_datatype_t* sdtype, void* rbuf,
                                          coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                          struct ompi_datatype_t* rdtype,
                                          struct ompi_communicator_t* comm,
                                          struct ompi_info_t* info, ompi_request_t** request,
                                          mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_neighbor_allgatherv_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS,
                                                      .info = info, .request = request});
}

int mca_coll_ucg_neighbor_alltoallv(const void* sbuf, coll_ucg_counts_t scounts,
                                    coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                    void* rbuf, coll_ucg_counts_t rcounts,
                                    coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                                    struct ompi_communicator_t* comm,
                                    mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_vector_t vectors[] = {SENT(COUNTS, scounts), SENT(DISPLS, sdispls),
                                         RECEIVED(COUNTS, rcounts), RECEIVED(DISPLS, rdispls)};
    const coll_ucg_latest_t call = {.type = rdtype, .vector_count = 4, .vectors = vectors};
    const bool alike = sdtype == rdtype;
    int result;
    if (alike && coll_ucg_repeats_described(ucg, COLL_UCG_FN_neighbor_alltoallv, &call) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_alltoallv, sbuf, rbuf, &result)) {
        return result;
    }
    return coll_ucg_blocking(ucg, COLL_UCG_FN_neighbor_alltoallv,
                             (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS, COLL_UCG_RECEIVED_BLOCKS},
                             alike ? &call : NULL);
}

int mca_coll_ucg_ineighbor_alltoallv(const void* sbuf, coll_ucg_counts_t scounts,
                                     coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                     void* rbuf, coll_ucg_counts_t rcounts,
                                     coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                                     struct ompi_communicator_t* comm, ompi_request_t** request,
                                     mca_coll_base_module_t* module) {
    return coll_ucg_nonblocking(
        (mca_coll_ucg_module_t*)module, COLL_UCG_FN_ineighbor_alltoallv,
        (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS, COLL_UCG_RECEIVED_BLOCKS, .request = request},
        NULL);
}

int mca_coll_ucg_neighbor_alltoallv_init(const void* sbuf, coll_ucg_counts_t scounts,
                                         coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                         void* rbuf, coll_ucg_counts_t rcounts,
                                         coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                         ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_neighbor_alltoallv_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS,
                                                      COLL_UCG_RECEIVED_BLOCKS, .info = info,
                                                      .request = request});
}

int mca_coll_ucg_neighbor_alltoallw(const void* sbuf, coll_ucg_counts_t scounts,
                                    coll_ucg_places_t sdispls,
                                    struct ompi_datatype_t* const* sdtypes, void* rbuf,
                                    coll_ucg_counts_t rcounts, coll_ucg_places_t rdispls,
                                    struct ompi_datatype_t* const* rdtypes,
                                    struct ompi_communicator_t* comm,
                                    mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_vector_t vectors[] = {SENT(COUNTS, scounts),     SENT(PLACES, sdispls),
                                         SENT(TYPES, sdtypes),      RECEIVED(COUNTS, rcounts),
                                         RECEIVED(PLACES, rdispls), RECEIVED(TYPES, rdtypes)};
    const coll_ucg_latest_t call = {.vector_count = 6, .vectors = vectors};
    int result;
    if (coll_ucg_repeats_described(ucg, COLL_UCG_FN_neighbor_alltoallw, &call) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_alltoallw, sbuf, rbuf, &result)) {
        return result;
    }
    return coll_ucg_blocking(ucg, COLL_UCG_FN_neighbor_alltoallw,
                             (coll_ucg_arguments_t){COLL_UCG_SENT_TYPES, COLL_UCG_RECEIVED_TYPES},
                             &call);
}

int mca_coll_ucg_ineighbor_alltoallw(const void* sbuf, coll_ucg_counts_t scounts,
                                     coll_ucg_places_t sdispls,
                                     struct ompi_datatype_t* const* sdtypes, void* rbuf,
                                     coll_ucg_counts_t rcounts, coll_ucg_places_t rdispls,
                                     struct ompi_datatype_t* const* rdtypes,
                                     struct ompi_communicator_t* comm, ompi_request_t** request,
                                     mca_coll_base_module_t* module) {
    return coll_ucg_nonblocking(
        (mca_coll_ucg_module_t*)module, COLL_UCG_FN_ineighbor_alltoallw,
        (coll_ucg_arguments_t){COLL_UCG_SENT_TYPES, COLL_UCG_RECEIVED_TYPES, .request = request},
        NULL);
}

int mca_coll_ucg_neighbor_alltoallw_init(const void* sbuf, coll_ucg_counts_t scounts,
                                         coll_ucg_places_t sdispls,
                                         struct ompi_datatype_t* const* sdtypes, void* rbuf,
                                         coll_ucg_counts_t rcounts, coll_ucg_places_t rdispls,
                                         struct ompi_datatype_t* const* rdtypes,
                                         struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                         ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_neighbor_alltoallw_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT_TYPES, COLL_UCG_RECEIVED_TYPES,
                                                      .info = info, .request = request});
}
