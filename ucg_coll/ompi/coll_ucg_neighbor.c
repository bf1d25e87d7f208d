/*
 * The neighbourhood collectives. For libucg all five are one: blocks of bytes along edges.
 */
#include "coll_ucg_background.h"
#include "coll_ucg_edges.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"

/** Opens a call along the edges of its communicator. */
static ucg_status_t open_call(coll_ucg_call_t* call, const coll_ucg_edge_blocks_t* input,
                              const coll_ucg_edge_blocks_t* output) {
    const ucg_status_t status = coll_ucg_find_edges(call->module);
    return UCG_OK == status ? coll_ucg_open_edges(call, &call->module->edges, input, output)
                            : status;
}

/**
 * Begins a neighbor_allgather or neighbor_alltoall. MPI_Neighbor_allgather() and
 * MPI_Neighbor_alltoall() return without calling a component where the counts are zero: where a
 * process has no neighbours, or it and all whom edges join to it have no data. In a grid that
 * happens on all processes or none. In a graph no process knows whether it happens on others; so
 * such a call goes to the previous module, and does not count towards making the group.
 */
static ucg_status_t enter_with_all(mca_coll_ucg_module_t* module) {
    return OMPI_COMM_IS_CART(module->comm) ? coll_ucg_enter(module) : UCG_ERR_UNSUPPORTED;
}

/** Has no process of a grid any data for such a call? */
static bool is_empty_on_grid(coll_ucg_count_t scount, const ompi_datatype_t* stype,
                             coll_ucg_count_t rcount, const ompi_datatype_t* rtype,
                             const ompi_communicator_t* comm) {
    return 0 == coll_ucg_packed_bytes(stype, (size_t)scount) &&
           0 == coll_ucg_packed_bytes(rtype, (size_t)rcount) && OMPI_COMM_IS_CART(comm);
}

/* ------------------------------------------------------------------ the functions */

/** The blocks that the functions' arguments describe: one block for all edges, equal blocks, blocks
 *  of one type (V), and blocks of types of their own (W). */
#define ONE_INPUT                                                                                  \
    (&(coll_ucg_edge_blocks_t){.user = sbuf, .count = scount, .type = sdtype, .is_one = true})
#define INPUT (&(coll_ucg_edge_blocks_t){.user = sbuf, .count = scount, .type = sdtype})
#define OUTPUT (&(coll_ucg_edge_blocks_t){.user = rbuf, .count = rcount, .type = rdtype})
#define V_INPUT                                                                                    \
    (&(coll_ucg_edge_blocks_t){.user = sbuf, .counts = scounts, .displs = sdispls, .type = sdtype})
#define V_OUTPUT                                                                                   \
    (&(coll_ucg_edge_blocks_t){.user = rbuf, .counts = rcounts, .displs = rdispls, .type = rdtype})
#define W_INPUT                                                                                    \
    (&(coll_ucg_edge_blocks_t){                                                                    \
        .user = sbuf, .counts = scounts, .places = sdispls, .types = sdtypes})
#define W_OUTPUT                                                                                   \
    (&(coll_ucg_edge_blocks_t){                                                                    \
        .user = rbuf, .counts = rcounts, .places = rdispls, .types = rdtypes})

/** Vectors with an entry for each block of a side; empty before the communicator's first call. */
#define SENT(KIND, vector) COLL_UCG_##KIND(vector, ucg->edges.sent_blocks)
#define RECEIVED(KIND, vector) COLL_UCG_##KIND(vector, ucg->edges.received_blocks)

static COLL_UCG_APART int allgather_anew(const void* sbuf, coll_ucg_count_t scount,
                                         struct ompi_datatype_t* sdtype, void* rbuf,
                                         coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm,
                                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    if (is_empty_on_grid(scount, sdtype, rcount, rdtype, comm)) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_neighbor_allgather);
    }
    ucg_status_t status = enter_with_all(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(&call, open_call(&call, ONE_INPUT, OUTPUT));
        const bool alike = scount == rcount && sdtype == rdtype;
        const coll_ucg_latest_t latest = {.type = rdtype, .count = rcount};
        coll_ucg_remember_call(&call, COLL_UCG_FN_neighbor_allgather, alike ? &latest : NULL,
                               status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, neighbor_allgather, status, sbuf, scount, sdtype, rbuf, rcount,
                            rdtype, comm);
}

int mca_coll_ucg_neighbor_allgather(const void* sbuf, coll_ucg_count_t scount,
                                    struct ompi_datatype_t* sdtype, void* rbuf,
                                    coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                    struct ompi_communicator_t* comm,
                                    mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    int result;
    if (scount == rcount && sdtype == rdtype &&
        coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_neighbor_allgather], rdtype, NULL, rcount,
                         false) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_allgather, sbuf, rbuf, &result)) {
        return result;
    }
    return allgather_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
}

int mca_coll_ucg_ineighbor_allgather(const void* sbuf, coll_ucg_count_t scount,
                                     struct ompi_datatype_t* sdtype, void* rbuf,
                                     coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                     struct ompi_communicator_t* comm, ompi_request_t** request,
                                     mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_start_call(mine, open_call(&mine->call, ONE_INPUT, OUTPUT), request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ineighbor_allgather, status, sbuf, scount, sdtype, rbuf, rcount,
                               rdtype, comm, request);
}

int mca_coll_ucg_neighbor_allgather_init(const void* sbuf, coll_ucg_count_t scount,
                                         struct ompi_datatype_t* sdtype, void* rbuf,
                                         coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                         ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine, open_call(&mine->call, ONE_INPUT, OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, neighbor_allgather_init, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                   comm, info, request);
}

static COLL_UCG_APART int
allgatherv_anew(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype,
                void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                mca_coll_base_module_t* module, const coll_ucg_latest_t* arguments) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(&call, open_call(&call, ONE_INPUT, V_OUTPUT));
        coll_ucg_remember_call(&call, COLL_UCG_FN_neighbor_allgatherv, arguments, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, neighbor_allgatherv, status, sbuf, scount, sdtype, rbuf, rcounts,
                            rdispls, rdtype, comm);
}

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
    return allgatherv_anew(sbuf, scount, sdtype, rbuf, rcounts, rdispls, rdtype, comm, module,
                           alike ? &call : NULL);
}

int mca_coll_ucg_ineighbor_allgatherv(const void* sbuf, coll_ucg_count_t scount,
                                      struct ompi_datatype_t* sdtype, void* rbuf,
                                      coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                      struct ompi_datatype_t* rdtype,
                                      struct ompi_communicator_t* comm, ompi_request_t** request,
                                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_start_call(mine, open_call(&mine->call, ONE_INPUT, V_OUTPUT), request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ineighbor_allgatherv, status, sbuf, scount, sdtype, rbuf,
                               rcounts, rdispls, rdtype, comm, request);
}

int mca_coll_ucg_neighbor_allgatherv_init(const void* sbuf, coll_ucg_count_t scount,
                                          struct ompi_datatype_t* sdtype, void* rbuf,
                                          coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                          struct ompi_datatype_t* rdtype,
                                          struct ompi_communicator_t* comm,
                                          struct ompi_info_t* info, ompi_request_t** request,
                                          mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine, open_call(&mine->call, ONE_INPUT, V_OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, neighbor_allgatherv_init, status, sbuf, scount, sdtype, rbuf, rcounts,
                   rdispls, rdtype, comm, info, request);
}

static COLL_UCG_APART int alltoall_anew(const void* sbuf, coll_ucg_count_t scount,
                                        struct ompi_datatype_t* sdtype, void* rbuf,
                                        coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                        struct ompi_communicator_t* comm,
                                        mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    if (is_empty_on_grid(scount, sdtype, rcount, rdtype, comm)) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_neighbor_alltoall);
    }
    ucg_status_t status = enter_with_all(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(&call, open_call(&call, INPUT, OUTPUT));
        const bool alike = scount == rcount && sdtype == rdtype;
        const coll_ucg_latest_t latest = {.type = rdtype, .count = rcount};
        coll_ucg_remember_call(&call, COLL_UCG_FN_neighbor_alltoall, alike ? &latest : NULL,
                               status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, neighbor_alltoall, status, sbuf, scount, sdtype, rbuf, rcount,
                            rdtype, comm);
}

int mca_coll_ucg_neighbor_alltoall(const void* sbuf, coll_ucg_count_t scount,
                                   struct ompi_datatype_t* sdtype, void* rbuf,
                                   coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                   struct ompi_communicator_t* comm,
                                   mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    int result;
    if (scount == rcount && sdtype == rdtype &&
        coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_neighbor_alltoall], rdtype, NULL, rcount,
                         false) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_alltoall, sbuf, rbuf, &result)) {
        return result;
    }
    return alltoall_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
}

int mca_coll_ucg_ineighbor_alltoall(const void* sbuf, coll_ucg_count_t scount,
                                    struct ompi_datatype_t* sdtype, void* rbuf,
                                    coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                    struct ompi_communicator_t* comm, ompi_request_t** request,
                                    mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_start_call(mine, open_call(&mine->call, INPUT, OUTPUT), request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ineighbor_alltoall, status, sbuf, scount, sdtype, rbuf, rcount,
                               rdtype, comm, request);
}

int mca_coll_ucg_neighbor_alltoall_init(const void* sbuf, coll_ucg_count_t scount,
                                        struct ompi_datatype_t* sdtype, void* rbuf,
                                        coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                        struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                        ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine, open_call(&mine->call, INPUT, OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, neighbor_alltoall_init, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                   comm, info, request);
}

static COLL_UCG_APART int alltoallv_anew(const void* sbuf, coll_ucg_counts_t scounts,
                                         coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                         void* rbuf, coll_ucg_counts_t rcounts,
                                         coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm,
                                         mca_coll_base_module_t* module,
                                         const coll_ucg_latest_t* arguments) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(&call, open_call(&call, V_INPUT, V_OUTPUT));
        coll_ucg_remember_call(&call, COLL_UCG_FN_neighbor_alltoallv, arguments, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, neighbor_alltoallv, status, sbuf, scounts, sdispls, sdtype, rbuf,
                            rcounts, rdispls, rdtype, comm);
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
    return alltoallv_anew(sbuf, scounts, sdispls, sdtype, rbuf, rcounts, rdispls, rdtype, comm,
                          module, alike ? &call : NULL);
}

int mca_coll_ucg_ineighbor_alltoallv(const void* sbuf, coll_ucg_counts_t scounts,
                                     coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                     void* rbuf, coll_ucg_counts_t rcounts,
                                     coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                                     struct ompi_communicator_t* comm, ompi_request_t** request,
                                     mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_start_call(mine, open_call(&mine->call, V_INPUT, V_OUTPUT), request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ineighbor_alltoallv, status, sbuf, scounts, sdispls, sdtype,
                               rbuf, rcounts, rdispls, rdtype, comm, request);
}

int mca_coll_ucg_neighbor_alltoallv_init(const void* sbuf, coll_ucg_counts_t scounts,
                                         coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                         void* rbuf, coll_ucg_counts_t rcounts,
                                         coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                         ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine, open_call(&mine->call, V_INPUT, V_OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, neighbor_alltoallv_init, status, sbuf, scounts, sdispls, sdtype, rbuf,
                   rcounts, rdispls, rdtype, comm, info, request);
}

static COLL_UCG_APART int
alltoallw_anew(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_places_t sdispls,
               struct ompi_datatype_t* const* sdtypes, void* rbuf, coll_ucg_counts_t rcounts,
               coll_ucg_places_t rdispls, struct ompi_datatype_t* const* rdtypes,
               struct ompi_communicator_t* comm, mca_coll_base_module_t* module,
               const coll_ucg_latest_t* arguments) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(&call, open_call(&call, W_INPUT, W_OUTPUT));
        coll_ucg_remember_call(&call, COLL_UCG_FN_neighbor_alltoallw, arguments, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, neighbor_alltoallw, status, sbuf, scounts, sdispls, sdtypes, rbuf,
                            rcounts, rdispls, rdtypes, comm);
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
    return alltoallw_anew(sbuf, scounts, sdispls, sdtypes, rbuf, rcounts, rdispls, rdtypes, comm,
                          module, &call);
}

int mca_coll_ucg_ineighbor_alltoallw(const void* sbuf, coll_ucg_counts_t scounts,
                                     coll_ucg_places_t sdispls,
                                     struct ompi_datatype_t* const* sdtypes, void* rbuf,
                                     coll_ucg_counts_t rcounts, coll_ucg_places_t rdispls,
                                     struct ompi_datatype_t* const* rdtypes,
                                     struct ompi_communicator_t* comm, ompi_request_t** request,
                                     mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_start_call(mine, open_call(&mine->call, W_INPUT, W_OUTPUT), request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ineighbor_alltoallw, status, sbuf, scounts, sdispls, sdtypes,
                               rbuf, rcounts, rdispls, rdtypes, comm, request);
}

int mca_coll_ucg_neighbor_alltoallw_init(const void* sbuf, coll_ucg_counts_t scounts,
                                         coll_ucg_places_t sdispls,
                                         struct ompi_datatype_t* const* sdtypes, void* rbuf,
                                         coll_ucg_counts_t rcounts, coll_ucg_places_t rdispls,
                                         struct ompi_datatype_t* const* rdtypes,
                                         struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                         ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine, open_call(&mine->call, W_INPUT, W_OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, neighbor_alltoallw_init, status, sbuf, scounts, sdispls, sdtypes, rbuf,
                   rcounts, rdispls, rdtypes, comm, info, request);
}
