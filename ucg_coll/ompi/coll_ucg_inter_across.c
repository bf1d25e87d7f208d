/*
 * Inter-communicators: MPI_Allgather(v) and MPI_Alltoall(v,w). Each process sends to all processes
 * of the other side, and receives from them.
 */
#include "coll_ucg_inter.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"

static ucg_status_t open_call(coll_ucg_call_t* call, const coll_ucg_edge_blocks_t* input,
                              const coll_ucg_edge_blocks_t* output) {
    return coll_ucg_open_edges(call, &call->module->sides->across, input, output);
}

/** Runs a blocking call. `arguments` describe it; NULL: it is never repeated. */
static COLL_UCG_APART ucg_status_t run(mca_coll_ucg_module_t* module,
                                       enum coll_ucg_function function,
                                       const coll_ucg_edge_blocks_t* input,
                                       const coll_ucg_edge_blocks_t* output,
                                       const coll_ucg_latest_t* arguments) {
    ucg_status_t status = coll_ucg_enter(module);
    if (UCG_OK != status) {
        return status;
    }
    if (input->is_one && coll_ucg_is_on_several_hosts(module->group, &module->sides->hosts)) {
        return coll_ucg_spread_across(module, input, output);
    }
    coll_ucg_call_t call;
    coll_ucg_begin_blocking(&call, module);
    status = coll_ucg_run_first(&call, open_call(&call, input, output));
    coll_ucg_remember_call(&call, function, arguments, status);
    return status;
}

static ucg_status_t start(mca_coll_ucg_module_t* module, const coll_ucg_edge_blocks_t* input,
                          const coll_ucg_edge_blocks_t* output, ompi_request_t** request) {
    coll_ucg_request_t* mine = NULL;
    const ucg_status_t status = coll_ucg_enter_nonblocking(module, &mine);
    return UCG_OK == status
               ? coll_ucg_start_call(mine, open_call(&mine->call, input, output), request)
               : status;
}

static ucg_status_t keep(mca_coll_ucg_module_t* module, const coll_ucg_edge_blocks_t* input,
                         const coll_ucg_edge_blocks_t* output, ompi_request_t** request) {
    coll_ucg_request_t* mine = NULL;
    const ucg_status_t status = coll_ucg_enter_persistent(module, &mine);
    return UCG_OK == status
               ? coll_ucg_keep_call(mine, open_call(&mine->call, input, output), request)
               : status;
}

/** Runs a blocking call again if it is like the latest of its function. Returns whether it has
 *  run. */
static bool repeat(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                   const coll_ucg_latest_t* call, const void* send, void* receive, int* result) {
    return coll_ucg_repeats_described(module, function, call) &&
           coll_ucg_try_to_repeat(module, function, send, receive, result);
}

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
        .user = sbuf, .counts = scounts, .displs = sdispls, .types = sdtypes})
#define W_OUTPUT                                                                                   \
    (&(coll_ucg_edge_blocks_t){                                                                    \
        .user = rbuf, .counts = rcounts, .displs = rdispls, .types = rdtypes})

/** A vector with an entry for each process of the other side. */
#define VECTOR(KIND, vector) COLL_UCG_##KIND(vector, ucg->sides->remote_size)

/* ------------------------------------------------------------------ allgather */

int mca_coll_ucg_inter_allgather(const void* sbuf, coll_ucg_count_t scount,
                                 struct ompi_datatype_t* sdtype, void* rbuf,
                                 coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                 struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_vector_t sent = {&scount, sizeof scount};
    const coll_ucg_latest_t call = {
        .type = rdtype, .count = rcount, .vector_count = 1, .vectors = &sent};
    const bool alike = sdtype == rdtype;
    ucg_status_t status = UCG_OK;
    int result;
    if (alike && repeat(ucg, COLL_UCG_FN_allgather, &call, sbuf, rbuf, &result)) {
        return result;
    }
    /* MPI_Allgather() does not come here where both counts are zero. */
    if (0 != coll_ucg_packed_bytes(sdtype, (size_t)scount) ||
        0 != coll_ucg_packed_bytes(rdtype, (size_t)rcount)) {
        status = run(ucg, COLL_UCG_FN_allgather, ONE_INPUT, OUTPUT, alike ? &call : NULL);
    }
    COLL_UCG_LEAVE(ucg, allgather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm);
}

int mca_coll_ucg_inter_iallgather(const void* sbuf, coll_ucg_count_t scount,
                                  struct ompi_datatype_t* sdtype, void* rbuf,
                                  coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                  struct ompi_communicator_t* comm, ompi_request_t** request,
                                  mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const ucg_status_t status = start(ucg, ONE_INPUT, OUTPUT, request);
    COLL_UCG_LEAVE(ucg, iallgather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm,
                   request);
}

int mca_coll_ucg_inter_allgather_init(const void* sbuf, coll_ucg_count_t scount,
                                      struct ompi_datatype_t* sdtype, void* rbuf,
                                      coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                      struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                      ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const ucg_status_t status = keep(ucg, ONE_INPUT, OUTPUT, request);
    COLL_UCG_LEAVE(ucg, allgather_init, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm,
                   info, request);
}

int mca_coll_ucg_inter_allgatherv(const void* sbuf, coll_ucg_count_t scount,
                                  struct ompi_datatype_t* sdtype, void* rbuf,
                                  coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                  struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                  mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_vector_t vectors[] = {VECTOR(COUNTS, rcounts), VECTOR(DISPLS, rdispls)};
    const coll_ucg_latest_t call = {
        .type = rdtype, .count = scount, .vector_count = 2, .vectors = vectors};
    const bool alike = sdtype == rdtype;
    int result;
    if (alike && repeat(ucg, COLL_UCG_FN_allgatherv, &call, sbuf, rbuf, &result)) {
        return result;
    }
    const ucg_status_t status =
        run(ucg, COLL_UCG_FN_allgatherv, ONE_INPUT, V_OUTPUT, alike ? &call : NULL);
    COLL_UCG_LEAVE(ucg, allgatherv, status, sbuf, scount, sdtype, rbuf, rcounts, rdispls, rdtype,
                   comm);
}

int mca_coll_ucg_inter_iallgatherv(const void* sbuf, coll_ucg_count_t scount,
                                   struct ompi_datatype_t* sdtype, void* rbuf,
                                   coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                   struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                   ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const ucg_status_t status = start(ucg, ONE_INPUT, V_OUTPUT, request);
    COLL_UCG_LEAVE(ucg, iallgatherv, status, sbuf, scount, sdtype, rbuf, rcounts, rdispls, rdtype,
                   comm, request);
}

int mca_coll_ucg_inter_allgatherv_init(const void* sbuf, coll_ucg_count_t scount,
                                       struct ompi_datatype_t* sdtype, void* rbuf,
                                       coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                       struct ompi_datatype_t* rdtype,
                                       struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                       ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const ucg_status_t status = keep(ucg, ONE_INPUT, V_OUTPUT, request);
    COLL_UCG_LEAVE(ucg, allgatherv_init, status, sbuf, scount, sdtype, rbuf, rcounts, rdispls,
                   rdtype, comm, info, request);
}

/* ------------------------------------------------------------------ alltoall */

int mca_coll_ucg_inter_alltoall(const void* sbuf, coll_ucg_count_t scount,
                                struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                                struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_vector_t sent = {&scount, sizeof scount};
    const coll_ucg_latest_t call = {
        .type = rdtype, .count = rcount, .vector_count = 1, .vectors = &sent};
    const bool alike = sdtype == rdtype;
    int result;
    if (alike && repeat(ucg, COLL_UCG_FN_alltoall, &call, sbuf, rbuf, &result)) {
        return result;
    }
    const ucg_status_t status = run(ucg, COLL_UCG_FN_alltoall, INPUT, OUTPUT, alike ? &call : NULL);
    COLL_UCG_LEAVE(ucg, alltoall, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm);
}

int mca_coll_ucg_inter_ialltoall(const void* sbuf, coll_ucg_count_t scount,
                                 struct ompi_datatype_t* sdtype, void* rbuf,
                                 coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                 struct ompi_communicator_t* comm, ompi_request_t** request,
                                 mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const ucg_status_t status = start(ucg, INPUT, OUTPUT, request);
    COLL_UCG_LEAVE(ucg, ialltoall, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm,
                   request);
}

int mca_coll_ucg_inter_alltoall_init(const void* sbuf, coll_ucg_count_t scount,
                                     struct ompi_datatype_t* sdtype, void* rbuf,
                                     coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                     struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                     ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const ucg_status_t status = keep(ucg, INPUT, OUTPUT, request);
    COLL_UCG_LEAVE(ucg, alltoall_init, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm,
                   info, request);
}

int mca_coll_ucg_inter_alltoallv(const void* sbuf, coll_ucg_counts_t scounts,
                                 coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                 void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                 struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                 mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_vector_t vectors[] = {VECTOR(COUNTS, scounts), VECTOR(DISPLS, sdispls),
                                         VECTOR(COUNTS, rcounts), VECTOR(DISPLS, rdispls)};
    const coll_ucg_latest_t call = {.type = rdtype, .vector_count = 4, .vectors = vectors};
    const bool alike = sdtype == rdtype;
    int result;
    if (alike && repeat(ucg, COLL_UCG_FN_alltoallv, &call, sbuf, rbuf, &result)) {
        return result;
    }
    const ucg_status_t status =
        run(ucg, COLL_UCG_FN_alltoallv, V_INPUT, V_OUTPUT, alike ? &call : NULL);
    COLL_UCG_LEAVE(ucg, alltoallv, status, sbuf, scounts, sdispls, sdtype, rbuf, rcounts, rdispls,
                   rdtype, comm);
}

int mca_coll_ucg_inter_ialltoallv(const void* sbuf, coll_ucg_counts_t scounts,
                                  coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                  void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                  struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                  ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const ucg_status_t status = start(ucg, V_INPUT, V_OUTPUT, request);
    COLL_UCG_LEAVE(ucg, ialltoallv, status, sbuf, scounts, sdispls, sdtype, rbuf, rcounts, rdispls,
                   rdtype, comm, request);
}

int mca_coll_ucg_inter_alltoallv_init(const void* sbuf, coll_ucg_counts_t scounts,
                                      coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                      void* rbuf, coll_ucg_counts_t rcounts,
                                      coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                                      struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                      ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const ucg_status_t status = keep(ucg, V_INPUT, V_OUTPUT, request);
    COLL_UCG_LEAVE(ucg, alltoallv_init, status, sbuf, scounts, sdispls, sdtype, rbuf, rcounts,
                   rdispls, rdtype, comm, info, request);
}

int mca_coll_ucg_inter_alltoallw(const void* sbuf, coll_ucg_counts_t scounts,
                                 coll_ucg_displs_t sdispls, struct ompi_datatype_t* const* sdtypes,
                                 void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                 struct ompi_datatype_t* const* rdtypes,
                                 struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_vector_t vectors[] = {VECTOR(COUNTS, scounts), VECTOR(DISPLS, sdispls),
                                         VECTOR(TYPES, sdtypes),  VECTOR(COUNTS, rcounts),
                                         VECTOR(DISPLS, rdispls), VECTOR(TYPES, rdtypes)};
    const coll_ucg_latest_t call = {.vector_count = 6, .vectors = vectors};
    int result;
    if (repeat(ucg, COLL_UCG_FN_alltoallw, &call, sbuf, rbuf, &result)) {
        return result;
    }
    const ucg_status_t status = run(ucg, COLL_UCG_FN_alltoallw, W_INPUT, W_OUTPUT, &call);
    COLL_UCG_LEAVE(ucg, alltoallw, status, sbuf, scounts, sdispls, sdtypes, rbuf, rcounts, rdispls,
                   rdtypes, comm);
}

int mca_coll_ucg_inter_ialltoallw(const void* sbuf, coll_ucg_counts_t scounts,
                                  coll_ucg_displs_t sdispls, struct ompi_datatype_t* const* sdtypes,
                                  void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                  struct ompi_datatype_t* const* rdtypes,
                                  struct ompi_communicator_t* comm, ompi_request_t** request,
                                  mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const ucg_status_t status = start(ucg, W_INPUT, W_OUTPUT, request);
    COLL_UCG_LEAVE(ucg, ialltoallw, status, sbuf, scounts, sdispls, sdtypes, rbuf, rcounts, rdispls,
                   rdtypes, comm, request);
}

int mca_coll_ucg_inter_alltoallw_init(const void* sbuf, coll_ucg_counts_t scounts,
                                      coll_ucg_displs_t sdispls,
                                      struct ompi_datatype_t* const* sdtypes, void* rbuf,
                                      coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                      struct ompi_datatype_t* const* rdtypes,
                                      struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                      ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const ucg_status_t status = keep(ucg, W_INPUT, W_OUTPUT, request);
    COLL_UCG_LEAVE(ucg, alltoallw_init, status, sbuf, scounts, sdispls, sdtypes, rbuf, rcounts,
                   rdispls, rdtypes, comm, info, request);
}
