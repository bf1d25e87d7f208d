/*
 * MPI_Allgather and MPI_Allgatherv.
 */
#include "coll_ucg.h"

/** What a rank puts in; not used with MPI_IN_PLACE. */
typedef struct {
    const void* buffer;
    size_t count;
    const ompi_datatype_t* type;
} contribution_t;

static ucg_status_t open_contribution(mca_coll_ucg_module_t* ucg, const contribution_t* mine,
                                      ucg_coll_params_t* params) {
    coll_ucg_buffer_t input;
    ucg_status_t status =
        coll_ucg_open_send(&input, &ucg->send, mine->buffer, mine->count, mine->type);
    params->send_buffer = input.packed;
    return status;
}

static ucg_status_t allgather(mca_coll_ucg_module_t* ucg, const contribution_t* mine, void* rbuf,
                              size_t rcount, const ompi_datatype_t* rtype) {
    const size_t size = (size_t)ompi_comm_size(ucg->comm);
    const size_t rank = (size_t)ompi_comm_rank(ucg->comm);
    ucg_coll_params_t params = {
        .type = UCG_COLL_ALLGATHER,
        .count = coll_ucg_packed_bytes(rtype, rcount),
        .element_bytes = 1,
    };
    coll_ucg_buffer_t output;
    if (0 == params.count) {
        return UCG_OK;
    }
    ucg_status_t status = coll_ucg_open_receive(&output, &ucg->receive, rbuf, rcount * size, rtype);
    params.recv_buffer = output.packed;
    if (UCG_OK == status && MPI_IN_PLACE == mine->buffer) {
        params.flags = UCG_COLL_FLAG_IN_PLACE;
        status = coll_ucg_load(&output, rank * rcount, rcount);
    } else if (UCG_OK == status) {
        status = open_contribution(ucg, mine, &params);
    }
    if (UCG_OK == status) {
        status = ucg_coll_run(ucg->group, &params);
    }
    const bool in_place = MPI_IN_PLACE == mine->buffer;
    if (UCG_OK == status && (in_place || (mine->count == rcount && mine->type == rtype))) {
        const coll_ucg_latest_t call = {.type = rtype, .count = rcount, .in_place = in_place};
        coll_ucg_remember(ucg, COLL_UCG_FN_allgather, &call, &params);
    }
    return UCG_OK == status ? coll_ucg_store(&output) : status;
}

static COLL_UCG_APART int allgather_anew(const void* sbuf, int scount,
                                         struct ompi_datatype_t* sdtype, void* rbuf, int rcount,
                                         struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm,
                                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const contribution_t mine = {sbuf, (size_t)scount, sdtype};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = allgather(ucg, &mine, rbuf, (size_t)rcount, rdtype);
    }
    COLL_UCG_LEAVE(ucg, allgather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm);
}

int mca_coll_ucg_allgather(const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf,
                           int rcount, struct ompi_datatype_t* rdtype,
                           struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool alike = in_place || (scount == rcount && sdtype == rdtype);
    if (alike &&
        coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_allgather], rdtype, NULL, rcount, 0, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_allgather, in_place ? NULL : sbuf, rbuf);
    }
    return allgather_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
}

static ucg_status_t allgatherv(mca_coll_ucg_module_t* ucg, const contribution_t* mine,
                               coll_ucg_blocks_t* output) {
    const int rank = ompi_comm_rank(ucg->comm);
    ucg_coll_params_t params = {.type = UCG_COLL_ALLGATHERV};
    coll_ucg_choose_vectors(&params, output, output->type);
    ucg_status_t status = coll_ucg_open_receive_blocks(output, ucg, &params);
    if (UCG_OK != status) {
        return status;
    }
    if (MPI_IN_PLACE == mine->buffer) {
        params.flags = UCG_COLL_FLAG_IN_PLACE;
        status = coll_ucg_load_block(output, rank);
    } else {
        status = open_contribution(ucg, mine, &params);
    }
    if (UCG_OK == status) {
        status = ucg_coll_run(ucg->group, &params);
    }
    return UCG_OK == status ? coll_ucg_store_blocks(output) : status;
}

int mca_coll_ucg_allgatherv(const void* sbuf, int scount, struct ompi_datatype_t* sdtype,
                            void* rbuf, const int* rcounts, const int* displs,
                            struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                            mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const contribution_t mine = {sbuf, (size_t)scount, sdtype};
    coll_ucg_blocks_t output = {.user = rbuf,
                                .counts = rcounts,
                                .displs = displs,
                                .type = rdtype,
                                .size = ompi_comm_size(comm)};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = allgatherv(ucg, &mine, &output);
    }
    COLL_UCG_LEAVE(ucg, allgatherv, status, sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype,
                   comm);
}
