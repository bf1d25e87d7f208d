/*
 * MPI_Allgather and MPI_Allgatherv.
 */
#include "coll_ucg_background.h"
#include "coll_ucg_call.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"
#include "coll_ucg_restart.h"

static ucg_status_t open_allgather(coll_ucg_call_t* call, const void* sbuf, coll_ucg_count_t scount,
                                   const ompi_datatype_t* stype, void* rbuf,
                                   coll_ucg_count_t rcount, const ompi_datatype_t* rtype) {
    const size_t count = (size_t)rcount;
    call->params = (ucg_coll_params_t){
        .type = UCG_COLL_ALLGATHER,
        .count = coll_ucg_packed_bytes(rtype, count),
        .element_bytes = 1,
    };
    call->empty = 0 == call->params.count;
    ucg_status_t status = coll_ucg_open_receive(call, rbuf, count * coll_ucg_size(call), rtype);
    if (UCG_OK == status && MPI_IN_PLACE == sbuf) {
        coll_ucg_read_in_place(call, (size_t)coll_ucg_rank(call) * count, count);
        return UCG_OK;
    }
    if (UCG_OK == status) {
        status = coll_ucg_check_own_block(call, coll_ucg_packed_bytes(stype, (size_t)scount),
                                          call->params.count);
    }
    return UCG_OK == status ? coll_ucg_open_send(call, sbuf, (size_t)scount, stype) : status;
}

static COLL_UCG_APART int allgather_anew(const void* sbuf, coll_ucg_count_t scount,
                                         struct ompi_datatype_t* sdtype, void* rbuf,
                                         coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm,
                                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    if (0 == coll_ucg_packed_bytes(rdtype, (size_t)rcount)) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_allgather);
    }
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const bool in_place = MPI_IN_PLACE == sbuf;
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(
            &call, open_allgather(&call, sbuf, scount, sdtype, rbuf, rcount, rdtype));
        const bool alike = in_place || (scount == rcount && sdtype == rdtype);
        const coll_ucg_latest_t latest = {.type = rdtype, .count = rcount, .in_place = in_place};
        coll_ucg_remember_call(&call, COLL_UCG_FN_allgather, alike ? &latest : NULL, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, allgather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                            comm);
}

int mca_coll_ucg_allgather(const void* sbuf, coll_ucg_count_t scount,
                           struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                           struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                           mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool alike = in_place || (scount == rcount && sdtype == rdtype);
    if (alike &&
        coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_allgather], rdtype, NULL, rcount, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_allgather, in_place ? NULL : sbuf, rbuf);
    }
    return allgather_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
}

static COLL_UCG_APART int iallgather_anew(const void* sbuf, coll_ucg_count_t scount,
                                          struct ompi_datatype_t* sdtype, void* rbuf,
                                          coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                          struct ompi_communicator_t* comm,
                                          ompi_request_t** request,
                                          mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const bool in_place = MPI_IN_PLACE == sbuf;
        const bool alike = in_place || (scount == rcount && sdtype == rdtype);
        const coll_ucg_latest_t latest = {.type = rdtype, .count = rcount, .in_place = in_place};
        const ucg_status_t opened =
            open_allgather(&mine->call, sbuf, scount, sdtype, rbuf, rcount, rdtype);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_iallgather, alike ? &latest : NULL,
                                          opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, iallgather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                               comm, request);
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
    return iallgather_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, request, module);
}

int mca_coll_ucg_allgather_init(const void* sbuf, coll_ucg_count_t scount,
                                struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                                struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                struct ompi_info_t* info, ompi_request_t** request,
                                mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(
            mine, open_allgather(&mine->call, sbuf, scount, sdtype, rbuf, rcount, rdtype), request);
    }
    COLL_UCG_LEAVE(ucg, allgather_init, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm,
                   info, request);
}

ucg_status_t coll_ucg_open_allgatherv(coll_ucg_call_t* call, const void* sbuf,
                                      coll_ucg_count_t scount, const ompi_datatype_t* stype,
                                      const coll_ucg_blocks_t* output) {
    call->params = (ucg_coll_params_t){.type = UCG_COLL_ALLGATHERV};
    coll_ucg_choose_vectors(&call->params, output, NULL, output->type);
    ucg_status_t status = coll_ucg_open_receive_blocks(call, output);
    if (UCG_OK == status && MPI_IN_PLACE == sbuf) {
        coll_ucg_read_in_place(call, (size_t)coll_ucg_rank(call), 1);
        return UCG_OK;
    }
    if (UCG_OK == status) {
        const size_t own = coll_ucg_count_at(output->counts, (size_t)coll_ucg_rank(call));
        status = coll_ucg_check_own_block(call, coll_ucg_packed_bytes(stype, (size_t)scount),
                                          coll_ucg_packed_bytes(output->type, own));
    }
    return UCG_OK == status ? coll_ucg_open_send(call, sbuf, (size_t)scount, stype) : status;
}

static bool all_are_empty(coll_ucg_counts_t counts, const ompi_datatype_t* type,
                          ompi_communicator_t* comm) {
    bool empty = true;
    for (size_t i = 0; i < (size_t)ompi_comm_size(comm) && empty; i++) {
        empty = 0 == coll_ucg_packed_bytes(type, coll_ucg_count_at(counts, i));
    }
    return empty;
}

/** The blocks that the functions' arguments describe. */
#define OUTPUT (&(coll_ucg_blocks_t){rbuf, rcounts, displs, rdtype, NULL})

static COLL_UCG_APART int allgatherv_anew(const void* sbuf, coll_ucg_count_t scount,
                                          struct ompi_datatype_t* sdtype, void* rbuf,
                                          coll_ucg_counts_t rcounts, coll_ucg_displs_t displs,
                                          struct ompi_datatype_t* rdtype,
                                          struct ompi_communicator_t* comm,
                                          mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    if (all_are_empty(rcounts, rdtype, comm)) {
        return coll_ucg_leave_empty(ucg, COLL_UCG_FN_allgatherv);
    }
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const bool in_place = MPI_IN_PLACE == sbuf;
        const coll_ucg_count_t own = coll_ucg_own_count(rcounts, comm);
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_first(&call,
                                    coll_ucg_open_allgatherv(&call, sbuf, scount, sdtype, OUTPUT));
        const bool alike = in_place || (scount == own && sdtype == rdtype);
        const coll_ucg_vector_t vectors[] = {COLL_UCG_COUNTS(rcounts, ompi_comm_size(comm)),
                                             COLL_UCG_DISPLS(displs, ompi_comm_size(comm))};
        const coll_ucg_latest_t latest = {.type = rdtype,
                                          .count = own,
                                          .in_place = in_place,
                                          .vector_count = 2,
                                          .vectors = vectors};
        coll_ucg_remember_call(&call, COLL_UCG_FN_allgatherv, alike ? &latest : NULL, status);
    }
    COLL_UCG_LEAVE_BLOCKING(ucg, allgatherv, status, sbuf, scount, sdtype, rbuf, rcounts, displs,
                            rdtype, comm);
}

int mca_coll_ucg_allgatherv(const void* sbuf, coll_ucg_count_t scount,
                            struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_counts_t rcounts,
                            coll_ucg_displs_t displs, struct ompi_datatype_t* rdtype,
                            struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_allgatherv];
    const bool in_place = MPI_IN_PLACE == sbuf;
    const coll_ucg_count_t own = coll_ucg_own_count(rcounts, comm);
    const bool alike = in_place || (scount == own && sdtype == rdtype);
    const coll_ucg_vector_t vectors[] = {COLL_UCG_COUNTS(rcounts, ompi_comm_size(comm)),
                                         COLL_UCG_DISPLS(displs, ompi_comm_size(comm))};
    if (alike && coll_ucg_repeats(latest, rdtype, NULL, own, in_place) &&
        coll_ucg_same_vectors(latest, vectors, 2)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_allgatherv, in_place ? NULL : sbuf, rbuf);
    }
    return allgatherv_anew(sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, comm, module);
}

static COLL_UCG_APART int iallgatherv_anew(const void* sbuf, coll_ucg_count_t scount,
                                           struct ompi_datatype_t* sdtype, void* rbuf,
                                           coll_ucg_counts_t rcounts, coll_ucg_displs_t displs,
                                           struct ompi_datatype_t* rdtype,
                                           struct ompi_communicator_t* comm,
                                           ompi_request_t** request, mca_coll_base_module_t* module,
                                           const coll_ucg_latest_t* latest) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const ucg_status_t opened =
            coll_ucg_open_allgatherv(&mine->call, sbuf, scount, sdtype, OUTPUT);
        status = coll_ucg_start_described(mine, COLL_UCG_FN_iallgatherv, latest, opened, request);
    }
    COLL_UCG_LEAVE_NONBLOCKING(ucg, iallgatherv, status, sbuf, scount, sdtype, rbuf, rcounts,
                               displs, rdtype, comm, request);
}

int mca_coll_ucg_iallgatherv(const void* sbuf, coll_ucg_count_t scount,
                             struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_counts_t rcounts,
                             coll_ucg_displs_t displs, struct ompi_datatype_t* rdtype,
                             struct ompi_communicator_t* comm, ompi_request_t** request,
                             mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    const coll_ucg_count_t own = coll_ucg_own_count(rcounts, comm);
    const coll_ucg_vector_t vectors[] = {COLL_UCG_COUNTS(rcounts, ompi_comm_size(comm)),
                                         COLL_UCG_DISPLS(displs, ompi_comm_size(comm))};
    const coll_ucg_latest_t call = {
        .type = rdtype, .count = own, .in_place = in_place, .vector_count = 2, .vectors = vectors};
    const bool alike = in_place || (scount == own && sdtype == rdtype);
    if (alike &&
        coll_ucg_repeats_all_of(coll_ucg_latest_start(ucg, COLL_UCG_FN_iallgatherv), &call)) {
        return coll_ucg_restart(ucg, COLL_UCG_FN_iallgatherv, in_place ? NULL : sbuf, rbuf,
                                request);
    }
    return iallgatherv_anew(sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, comm, request,
                            module, alike ? &call : NULL);
}

int mca_coll_ucg_allgatherv_init(const void* sbuf, coll_ucg_count_t scount,
                                 struct ompi_datatype_t* sdtype, void* rbuf,
                                 coll_ucg_counts_t rcounts, coll_ucg_displs_t displs,
                                 struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                 struct ompi_info_t* info, ompi_request_t** request,
                                 mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(
            mine, coll_ucg_open_allgatherv(&mine->call, sbuf, scount, sdtype, OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, allgatherv_init, status, sbuf, scount, sdtype, rbuf, rcounts, displs,
                   rdtype, comm, info, request);
}
