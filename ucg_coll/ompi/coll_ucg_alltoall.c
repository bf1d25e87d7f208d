/*
 * MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw. To libucg the last two are one: blocks of bytes.
 */
#include "coll_ucg.h"

static ucg_status_t alltoall(mca_coll_ucg_module_t* ucg, const void* sbuf, size_t scount,
                             const ompi_datatype_t* stype, void* rbuf, size_t rcount,
                             const ompi_datatype_t* rtype) {
    const size_t size = (size_t)ompi_comm_size(ucg->comm);
    ucg_coll_params_t params = {
        .type = UCG_COLL_ALLTOALL,
        .count = coll_ucg_packed_bytes(rtype, rcount),
        .element_bytes = 1,
    };
    coll_ucg_buffer_t input;
    coll_ucg_buffer_t output;
    if (0 == params.count) {
        return UCG_OK;
    }
    ucg_status_t status = coll_ucg_open_receive(&output, &ucg->receive, rbuf, rcount * size, rtype);
    params.recv_buffer = output.packed;
    if (UCG_OK == status && MPI_IN_PLACE == sbuf) {
        params.flags = UCG_COLL_FLAG_IN_PLACE;
        status = coll_ucg_load(&output, 0, rcount * size);
    } else if (UCG_OK == status) {
        status = coll_ucg_open_send(&input, &ucg->send, sbuf, scount * size, stype);
        params.send_buffer = input.packed;
    }
    if (UCG_OK == status) {
        status = ucg_coll_run(ucg->group, &params);
    }
    const bool in_place = MPI_IN_PLACE == sbuf;
    if (UCG_OK == status && (in_place || (scount == rcount && stype == rtype))) {
        const coll_ucg_latest_t call = {.type = rtype, .count = rcount, .in_place = in_place};
        coll_ucg_remember(ucg, COLL_UCG_FN_alltoall, &call, &params);
    }
    return UCG_OK == status ? coll_ucg_store(&output) : status;
}

static COLL_UCG_APART int alltoall_anew(const void* sbuf, int scount,
                                        struct ompi_datatype_t* sdtype, void* rbuf, int rcount,
                                        struct ompi_datatype_t* rdtype,
                                        struct ompi_communicator_t* comm,
                                        mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = alltoall(ucg, sbuf, (size_t)scount, sdtype, rbuf, (size_t)rcount, rdtype);
    }
    COLL_UCG_LEAVE(ucg, alltoall, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm);
}

int mca_coll_ucg_alltoall(const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf,
                          int rcount, struct ompi_datatype_t* rdtype,
                          struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool alike = in_place || (scount == rcount && sdtype == rdtype);
    if (alike &&
        coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_alltoall], rdtype, NULL, rcount, 0, in_place)) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_alltoall, in_place ? NULL : sbuf, rbuf);
    }
    return alltoall_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
}

static ucg_status_t open_input(mca_coll_ucg_module_t* ucg, coll_ucg_blocks_t* input,
                               ucg_coll_params_t* params) {
    const ucg_status_t status = coll_ucg_open_send_blocks(input, ucg, params);
    return UCG_OK == status ? coll_ucg_load_blocks(input) : status;
}

/** Blocks with sizes of their own, each of one type or of types of their own. */
static ucg_status_t alltoall_blocks(mca_coll_ucg_module_t* ucg, coll_ucg_blocks_t* input,
                                    coll_ucg_blocks_t* output) {
    const bool in_place = MPI_IN_PLACE == input->user;
    ucg_coll_params_t params = {.type = UCG_COLL_ALLTOALLV};
    coll_ucg_choose_vectors(&params, output, in_place ? output->type : input->type);
    ucg_status_t status = coll_ucg_open_receive_blocks(output, ucg, &params);
    if (UCG_OK != status) {
        return status;
    }
    if (in_place) {
        params.flags = UCG_COLL_FLAG_IN_PLACE;
        status = coll_ucg_load_blocks(output);
    } else {
        status = open_input(ucg, input, &params);
    }
    if (UCG_OK == status) {
        status = ucg_coll_run(ucg->group, &params);
    }
    return UCG_OK == status ? coll_ucg_store_blocks(output) : status;
}

int mca_coll_ucg_alltoallv(const void* sbuf, const int* scounts, const int* sdispls,
                           struct ompi_datatype_t* sdtype, void* rbuf, const int* rcounts,
                           const int* rdispls, struct ompi_datatype_t* rdtype,
                           struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const int size = ompi_comm_size(comm);
    coll_ucg_blocks_t input = {
        .user = (void*)sbuf, .counts = scounts, .displs = sdispls, .type = sdtype, .size = size};
    coll_ucg_blocks_t output = {
        .user = rbuf, .counts = rcounts, .displs = rdispls, .type = rdtype, .size = size};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = alltoall_blocks(ucg, &input, &output);
    }
    COLL_UCG_LEAVE(ucg, alltoallv, status, sbuf, scounts, sdispls, sdtype, rbuf, rcounts, rdispls,
                   rdtype, comm);
}

int mca_coll_ucg_alltoallw(const void* sbuf, const int* scounts, const int* sdispls,
                           struct ompi_datatype_t* const* sdtypes, void* rbuf, const int* rcounts,
                           const int* rdispls, struct ompi_datatype_t* const* rdtypes,
                           struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const int size = ompi_comm_size(comm);
    coll_ucg_blocks_t input = {
        .user = (void*)sbuf, .counts = scounts, .displs = sdispls, .types = sdtypes, .size = size};
    coll_ucg_blocks_t output = {
        .user = rbuf, .counts = rcounts, .displs = rdispls, .types = rdtypes, .size = size};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = alltoall_blocks(ucg, &input, &output);
    }
    COLL_UCG_LEAVE(ucg, alltoallw, status, sbuf, scounts, sdispls, sdtypes, rbuf, rcounts, rdispls,
                   rdtypes, comm);
}
