/*
 * MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw. To libucg the last two are one: blocks of bytes.
 */
#include "coll_ucg_background.h"
#include "coll_ucg_call.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"
#include "coll_ucg_restart.h"

static ucg_status_t open_alltoall(coll_ucg_call_t* call, const void* sbuf, coll_ucg_count_t scount,
                                  const ompi_datatype_t* stype, void* rbuf, coll_ucg_count_t rcount,
                                  const ompi_datatype_t* rtype) {
    const size_t size = coll_ucg_size(call);
    const size_t received = (size_t)rcount * size;
    call->params = (ucg_coll_params_t){
        .type = UCG_COLL_ALLTOALL,
        .count = coll_ucg_packed_bytes(rtype, (size_t)rcount),
        .element_bytes = 1,
    };
    call->empty = 0 == call->params.count;
    ucg_status_t status = coll_ucg_open_receive(call, rbuf, received, rtype);
    if (UCG_OK == status && MPI_IN_PLACE == sbuf) {
        coll_ucg_read_in_place(call, 0, received);
        return UCG_OK;
    }
    if (UCG_OK == status) {
        status = coll_ucg_check_own_block(call, coll_ucg_packed_bytes(stype, (size_t)scount),
                                          call->params.count);
    }
    return UCG_OK == status ? coll_ucg_open_send(call, sbuf, (size_t)scount * size, stype) : status;
}

static COLL_UCG_APART int alltoall_anew(const void* sbuf, coll_ucg_count_t scount,
                                        struct ompi_datatype_t* sdtype, void* rbuf,
                                        coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                        struct ompi_communicator_t* comm,
                                        mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const bool in_place = MPI_IN_PLACE == sbuf;
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(
            &call, open_alltoall(&call, sbuf, scount, sdtype, rbuf, rcount, rdtype));
        const bool alike = in_place || (scount == rcount && sdtype == rdtype);
        const coll_ucg_latest_t latest = {.type = rdtype, .count = rcount, .in_place = in_place};
        coll_ucg_remember_call(&call, COLL_UCG_FN_alltoall, alike ? &latest : NULL, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, alltoall, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                            comm);
}

int mca_coll_ucg_alltoall(const void* sbuf, coll_ucg_count_t scount, struct ompi_datatype_t* sdtype,
                          void* rbuf, coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                          struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool alike = in_place || (scount == rcount && sdtype == rdtype);
    if (alike &&
        coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_alltoall], rdtype, NULL, rcount, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_alltoall, in_place ? NULL : sbuf, rbuf);
    }
    return alltoall_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
}

static COLL_UCG_APART int ialltoall_anew(const void* sbuf, coll_ucg_count_t scount,
                                         struct ompi_datatype_t* sdtype, void* rbuf,
                                         coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm, ompi_request_t** request,
                                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const bool in_place = MPI_IN_PLACE == sbuf;
        const bool alike = in_place || (scount == rcount && sdtype == rdtype);
        const coll_ucg_latest_t latest = {.type = rdtype, .count = rcount, .in_place = in_place};
        const ucg_status_t opened =
            open_alltoall(&mine->call, sbuf, scount, sdtype, rbuf, rcount, rdtype);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_ialltoall, alike ? &latest : NULL,
                                          opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ialltoall, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                               comm, request);
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
    return ialltoall_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, request, module);
}

int mca_coll_ucg_alltoall_init(const void* sbuf, coll_ucg_count_t scount,
                               struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                               struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                               struct ompi_info_t* info, ompi_request_t** request,
                               mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(
            mine, open_alltoall(&mine->call, sbuf, scount, sdtype, rbuf, rcount, rdtype), request);
    }
    COLL_UCG_LEAVE(ucg, alltoall_init, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm,
                   info, request);
}

/** Opens a call with blocks of sizes of their own, all of one type or each of a type of its own. */
static ucg_status_t open_alltoall_blocks(coll_ucg_call_t* call, const coll_ucg_blocks_t* input,
                                         const coll_ucg_blocks_t* output) {
    const bool in_place = MPI_IN_PLACE == input->user;
    call->params = (ucg_coll_params_t){.type = UCG_COLL_ALLTOALLV};
    coll_ucg_choose_vectors(&call->params, output, in_place ? NULL : input,
                            in_place ? output->type : input->type);
    const ucg_status_t status = coll_ucg_open_receive_blocks(call, output);
    if (UCG_OK == status && in_place) {
        coll_ucg_read_in_place(call, 0, coll_ucg_size(call));
        return UCG_OK;
    }
    return UCG_OK == status ? coll_ucg_open_send_blocks(call, input) : status;
}

/** The blocks that the functions' arguments describe. */
#define V_INPUT (&(coll_ucg_blocks_t){sbuf, scounts, sdispls, sdtype, NULL})
#define V_OUTPUT (&(coll_ucg_blocks_t){rbuf, rcounts, rdispls, rdtype, NULL})
#define W_INPUT (&(coll_ucg_blocks_t){sbuf, scounts, sdispls, NULL, sdtypes})
#define W_OUTPUT (&(coll_ucg_blocks_t){rbuf, rcounts, rdispls, NULL, rdtypes})

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
        status = coll_ucg_run_first(&call, open_alltoall_blocks(&call, V_INPUT, V_OUTPUT));
        coll_ucg_remember_call(&call, COLL_UCG_FN_alltoallv, arguments, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, alltoallv, status, sbuf, scounts, sdispls, sdtype, rbuf, rcounts,
                            rdispls, rdtype, comm);
}

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
    return alltoallv_anew(sbuf, scounts, sdispls, sdtype, rbuf, rcounts, rdispls, rdtype, comm,
                          module, alike ? &call : NULL);
}

static COLL_UCG_APART int ialltoallv_anew(const void* sbuf, coll_ucg_counts_t scounts,
                                          coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                          void* rbuf, coll_ucg_counts_t rcounts,
                                          coll_ucg_displs_t rdispls, struct ompi_datatype_t* rdtype,
                                          struct ompi_communicator_t* comm,
                                          ompi_request_t** request, mca_coll_base_module_t* module,
                                          const coll_ucg_latest_t* latest) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const ucg_status_t opened = open_alltoall_blocks(&mine->call, V_INPUT, V_OUTPUT);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_ialltoallv, latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ialltoallv, status, sbuf, scounts, sdispls, sdtype, rbuf,
                               rcounts, rdispls, rdtype, comm, request);
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
    return ialltoallv_anew(sbuf, scounts, sdispls, sdtype, rbuf, rcounts, rdispls, rdtype, comm,
                           request, module, alike ? &call : NULL);
}

int mca_coll_ucg_alltoallv_init(const void* sbuf, coll_ucg_counts_t scounts,
                                coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                struct ompi_info_t* info, ompi_request_t** request,
                                mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status =
            coll_ucg_keep_call(mine, open_alltoall_blocks(&mine->call, V_INPUT, V_OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, alltoallv_init, status, sbuf, scounts, sdispls, sdtype, rbuf, rcounts,
                   rdispls, rdtype, comm, info, request);
}

static COLL_UCG_APART int
alltoallw_anew(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_displs_t sdispls,
               struct ompi_datatype_t* const* sdtypes, void* rbuf, coll_ucg_counts_t rcounts,
               coll_ucg_displs_t rdispls, struct ompi_datatype_t* const* rdtypes,
               struct ompi_communicator_t* comm, mca_coll_base_module_t* module,
               const coll_ucg_latest_t* arguments) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(&call, open_alltoall_blocks(&call, W_INPUT, W_OUTPUT));
        coll_ucg_remember_call(&call, COLL_UCG_FN_alltoallw, arguments, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, alltoallw, status, sbuf, scounts, sdispls, sdtypes, rbuf, rcounts,
                            rdispls, rdtypes, comm);
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
    return alltoallw_anew(sbuf, scounts, sdispls, sdtypes, rbuf, rcounts, rdispls, rdtypes, comm,
                          module, &call);
}

static COLL_UCG_APART int
ialltoallw_anew(const void* sbuf, coll_ucg_counts_t scounts, coll_ucg_displs_t sdispls,
                struct ompi_datatype_t* const* sdtypes, void* rbuf, coll_ucg_counts_t rcounts,
                coll_ucg_displs_t rdispls, struct ompi_datatype_t* const* rdtypes,
                struct ompi_communicator_t* comm, ompi_request_t** request,
                mca_coll_base_module_t* module, const coll_ucg_latest_t* latest) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const ucg_status_t opened = open_alltoall_blocks(&mine->call, W_INPUT, W_OUTPUT);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_ialltoallw, latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, ialltoallw, status, sbuf, scounts, sdispls, sdtypes, rbuf,
                               rcounts, rdispls, rdtypes, comm, request);
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
    return ialltoallw_anew(sbuf, scounts, sdispls, sdtypes, rbuf, rcounts, rdispls, rdtypes, comm,
                           request, module, &call);
}

int mca_coll_ucg_alltoallw_init(const void* sbuf, coll_ucg_counts_t scounts,
                                coll_ucg_displs_t sdispls, struct ompi_datatype_t* const* sdtypes,
                                void* rbuf, coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                struct ompi_datatype_t* const* rdtypes,
                                struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status =
            coll_ucg_keep_call(mine, open_alltoall_blocks(&mine->call, W_INPUT, W_OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, alltoallw_init, status, sbuf, scounts, sdispls, sdtypes, rbuf, rcounts,
                   rdispls, rdtypes, comm, info, request);
}
