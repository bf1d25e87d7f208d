/*
 * Inter-communicators: MPI_Allgather(v) and MPI_Alltoall(v,w). Each process sends to all processes
 * of the other side, and receives from them.
 */
#include "coll_ucg_forms.h"
#include "coll_ucg_inter.h"

/** Returns the input; that of an allgather is one block, which all processes of the other side
 *  get. */
static coll_ucg_edge_blocks_t input_of(enum coll_ucg_function function,
                                       const coll_ucg_arguments_t* arguments) {
    const enum coll_ucg_function collective = coll_ucg_collective_of(function);
    coll_ucg_edge_blocks_t input = coll_ucg_edge_input(arguments);
    input.is_one = COLL_UCG_FN_allgather == collective || COLL_UCG_FN_allgatherv == collective;
    return input;
}

ucg_status_t coll_ucg_open_across(coll_ucg_call_t* call, enum coll_ucg_function function,
                                  const coll_ucg_arguments_t* arguments) {
    const coll_ucg_edge_blocks_t input = input_of(function, arguments);
    const coll_ucg_edge_blocks_t output = coll_ucg_edge_output(arguments);
    return coll_ucg_open_edges(call, &call->module->sides->across, &input, &output);
}

static ucg_status_t run(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                        const coll_ucg_arguments_t* arguments,
                        const coll_ucg_latest_t* description) {
    const coll_ucg_edge_blocks_t input = input_of(function, arguments);
    ucg_status_t status = coll_ucg_enter(module);
    if (UCG_OK != status) {
        return status;
    }
    if (input.is_one && coll_ucg_is_on_several_hosts(module->group, &module->sides->hosts)) {
        const coll_ucg_edge_blocks_t output = coll_ucg_edge_output(arguments);
        return coll_ucg_spread_across(module, &input, &output);
    }
    coll_ucg_call_t call;
    coll_ucg_begin_blocking(&call, module);
    status = coll_ucg_run_first(&call, coll_ucg_open_across(&call, function, arguments));
    coll_ucg_remember_call(&call, function, description, status);
    return status;
}

/** Runs a blocking call. `description`: NULL if it is never repeated. */
static COLL_UCG_APART int blocking(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                                   coll_ucg_arguments_t arguments,
                                   const coll_ucg_latest_t* description) {
    const ucg_status_t status = run(module, function, &arguments, description);
    return coll_ucg_leave(module, function, status, &arguments);
}

/** Runs a blocking call again if it is like the latest of its function. Returns whether it has
 *  run. */
static bool repeat(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                   const coll_ucg_latest_t* call, const void* send, void* receive, int* result) {
    return coll_ucg_repeats_described(module, function, call) &&
           coll_ucg_try_to_repeat(module, function, send, receive, result);
}

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
    int result;
    if (alike && repeat(ucg, COLL_UCG_FN_allgather, &call, sbuf, rbuf, &result)) {
        return result;
    }
    /* MPI_Allgather() does not come here where both counts are zero. */
    if (0 == coll_ucg_packed_bytes(sdtype, (size_t)scount) &&
        0 == coll_ucg_packed_bytes(rdtype, (size_t)rcount)) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_allgather);
    }
    return blocking(ucg, COLL_UCG_FN_allgather,
                    (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED}, alike ? &call : NULL);
}

int mca_coll_ucg_inter_iallgather(const void* sbuf, coll_ucg_count_t scount,
                                  struct ompi_datatype_t* sdtype, void* rbuf,
                                  coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                  struct ompi_communicator_t* comm, ompi_request_t** request,
                                  mca_coll_base_module_t* module) {
    return coll_ucg_nonblocking(
        (mca_coll_ucg_module_t*)module, COLL_UCG_FN_iallgather,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .request = request}, NULL);
}

int mca_coll_ucg_inter_allgather_init(const void* sbuf, coll_ucg_count_t scount,
                                      struct ompi_datatype_t* sdtype, void* rbuf,
                                      coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                      struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                      ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(
        module, COLL_UCG_FN_allgather_init,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .info = info, .request = request});
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
    return blocking(ucg, COLL_UCG_FN_allgatherv,
                    (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS},
                    alike ? &call : NULL);
}

int mca_coll_ucg_inter_iallgatherv(const void* sbuf, coll_ucg_count_t scount,
                                   struct ompi_datatype_t* sdtype, void* rbuf,
                                   coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                   struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                   ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_nonblocking(
        (mca_coll_ucg_module_t*)module, COLL_UCG_FN_iallgatherv,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS, .request = request}, NULL);
}

int mca_coll_ucg_inter_allgatherv_init(const void* sbuf, coll_ucg_count_t scount,
                                       struct ompi_datatype_t* sdtype, void* rbuf,
                                       coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                       struct ompi_datatype_t* rdtype,
                                       struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                       ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_allgatherv_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS,
                                                      .info = info, .request = request});
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
    return blocking(ucg, COLL_UCG_FN_alltoall,
                    (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED}, alike ? &call : NULL);
}

int mca_coll_ucg_inter_ialltoall(const void* sbuf, coll_ucg_count_t scount,
                                 struct ompi_datatype_t* sdtype, void* rbuf,
                                 coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                 struct ompi_communicator_t* comm, ompi_request_t** request,
                                 mca_coll_base_module_t* module) {
    return coll_ucg_nonblocking(
        (mca_coll_ucg_module_t*)module, COLL_UCG_FN_ialltoall,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .request = request}, NULL);
}

int mca_coll_ucg_inter_alltoall_init(const void* sbuf, coll_ucg_count_t scount,
                                     struct ompi_datatype_t* sdtype, void* rbuf,
                                     coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                     struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                     ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(
        module, COLL_UCG_FN_alltoall_init,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .info = info, .request = request});
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
    return blocking(ucg, COLL_UCG_FN_alltoallv,
                    (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS, COLL_UCG_RECEIVED_BLOCKS},
                    alike ? &call : NULL);
}

int mca_coll_ucg_inter_ialltoallv(const void* sbuf, coll_ucg_counts_t scounts,
                                  coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                  void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                  struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                  ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_nonblocking(
        (mca_coll_ucg_module_t*)module, COLL_UCG_FN_ialltoallv,
        (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS, COLL_UCG_RECEIVED_BLOCKS, .request = request},
        NULL);
}

int mca_coll_ucg_inter_alltoallv_init(const void* sbuf, coll_ucg_counts_t scounts,
                                      coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                      void* rbuf, coll_ucg_counts_t rcounts,
                                      coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                                      struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                      ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_alltoallv_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS,
                                                      COLL_UCG_RECEIVED_BLOCKS, .info = info,
                                                      .request = request});
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
    return blocking(ucg, COLL_UCG_FN_alltoallw,
                    (coll_ucg_arguments_t){COLL_UCG_SENT_TYPES, COLL_UCG_RECEIVED_TYPES}, &call);
}

int mca_coll_ucg_inter_ialltoallw(const void* sbuf, coll_ucg_counts_t scounts,
                                  coll_ucg_displs_t sdispls, struct ompi_datatype_t* const* sdtypes,
                                  void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                  struct ompi_datatype_t* const* rdtypes,
                                  struct ompi_communicator_t* comm, ompi_request_t** request,
                                  mca_coll_base_module_t* module) {
    return coll_ucg_nonblocking(
        (mca_coll_ucg_module_t*)module, COLL_UCG_FN_ialltoallw,
        (coll_ucg_arguments_t){COLL_UCG_SENT_TYPES, COLL_UCG_RECEIVED_TYPES, .request = request},
        NULL);
}

int mca_coll_ucg_inter_alltoallw_init(const void* sbuf, coll_ucg_counts_t scounts,
                                      coll_ucg_displs_t sdispls,
                                      struct ompi_datatype_t* const* sdtypes, void* rbuf,
                                      coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                      struct ompi_datatype_t* const* rdtypes,
                                      struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                      ompi_request_t** request, mca_coll_base_module_t* module) {
    return coll_ucg_persistent(module, COLL_UCG_FN_alltoallw_init,
                               (coll_ucg_arguments_t){COLL_UCG_SENT_TYPES, COLL_UCG_RECEIVED_TYPES,
                                                      .info = info, .request = request});
}
