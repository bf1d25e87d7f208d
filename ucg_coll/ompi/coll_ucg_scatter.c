/*
 * MPI_Scatter and MPI_Scatterv. The send arguments mean something at the root only; there,
 * MPI_IN_PLACE as receive buffer leaves the root's part where it is.
 */
#include "coll_ucg.h"

/** Opens the receive buffer of a rank that has one. */
static ucg_status_t open_part(mca_coll_ucg_module_t* ucg, void* rbuf, size_t rcount,
                              const ompi_datatype_t* rtype, coll_ucg_buffer_t* output,
                              ucg_coll_params_t* params) {
    ucg_status_t status = coll_ucg_open_receive(output, &ucg->receive, rbuf, rcount, rtype);
    params->recv_buffer = output->packed;
    params->count = coll_ucg_part(params, rtype, rcount);
    return status;
}

/** Runs a call whose send side is ready. */
static ucg_status_t receive_part(mca_coll_ucg_module_t* ucg, void* rbuf, size_t rcount,
                                 const ompi_datatype_t* rtype, ucg_coll_params_t* params) {
    coll_ucg_buffer_t output;
    ucg_status_t status = open_part(ucg, rbuf, rcount, rtype, &output, params);
    if (UCG_OK == status && (0 != params->count || UCG_COLL_SCATTERV == params->type)) {
        status = ucg_coll_run(ucg->group, params);
    }
    return UCG_OK == status ? coll_ucg_store(&output) : status;
}

/* ------------------------------------------------------------------ scatter */

static ucg_status_t scatter_at_root(mca_coll_ucg_module_t* ucg, const void* sbuf, size_t scount,
                                    const ompi_datatype_t* stype, void* rbuf, size_t rcount,
                                    const ompi_datatype_t* rtype, ucg_coll_params_t* params) {
    const size_t size = (size_t)ompi_comm_size(ucg->comm);
    coll_ucg_buffer_t input;
    ucg_status_t status = coll_ucg_open_send(&input, &ucg->send, sbuf, scount * size, stype);
    params->send_buffer = input.packed;
    if (UCG_OK != status || MPI_IN_PLACE != rbuf) {
        return UCG_OK == status ? receive_part(ucg, rbuf, rcount, rtype, params) : status;
    }
    params->flags = UCG_COLL_FLAG_IN_PLACE;
    params->count = coll_ucg_packed_bytes(stype, scount);
    return 0 == params->count ? UCG_OK : ucg_coll_run(ucg->group, params);
}

int mca_coll_ucg_scatter(const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf,
                         int rcount, struct ompi_datatype_t* rdtype, int root,
                         struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_coll_params_t params = {
        .type = UCG_COLL_SCATTER, .root = (uint32_t)root, .element_bytes = 1};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = root == ompi_comm_rank(comm)
                     ? scatter_at_root(ucg, sbuf, (size_t)scount, sdtype, rbuf, (size_t)rcount,
                                       rdtype, &params)
                     : receive_part(ucg, rbuf, (size_t)rcount, rdtype, &params);
    }
    COLL_UCG_LEAVE(ucg, scatter, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, root, comm);
}

/* ------------------------------------------------------------------ scatterv */

static ucg_status_t scatterv_at_root(mca_coll_ucg_module_t* ucg, coll_ucg_blocks_t* input,
                                     void* rbuf, size_t rcount, const ompi_datatype_t* rtype,
                                     ucg_coll_params_t* params) {
    coll_ucg_choose_vectors(params, input, MPI_IN_PLACE == rbuf ? input->type : rtype);
    ucg_status_t status = coll_ucg_open_send_blocks(input, ucg, params);
    if (UCG_OK == status) {
        status = coll_ucg_load_blocks(input);
    }
    if (UCG_OK != status) {
        return status;
    }
    if (MPI_IN_PLACE != rbuf) {
        return receive_part(ucg, rbuf, rcount, rtype, params);
    }
    params->flags = UCG_COLL_FLAG_IN_PLACE;
    params->count = coll_ucg_block_length(params, input, (int)params->root);
    return ucg_coll_run(ucg->group, params);
}

int mca_coll_ucg_scatterv(const void* sbuf, const int* scounts, const int* displs,
                          struct ompi_datatype_t* sdtype, void* rbuf, int rcount,
                          struct ompi_datatype_t* rdtype, int root,
                          struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_blocks_t input = {.user = (void*)sbuf,
                               .counts = scounts,
                               .displs = displs,
                               .type = sdtype,
                               .size = ompi_comm_size(comm)};
    ucg_coll_params_t params = {
        .type = UCG_COLL_SCATTERV, .root = (uint32_t)root, .element_bytes = 1};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = root == ompi_comm_rank(comm)
                     ? scatterv_at_root(ucg, &input, rbuf, (size_t)rcount, rdtype, &params)
                     : receive_part(ucg, rbuf, (size_t)rcount, rdtype, &params);
    }
    COLL_UCG_LEAVE(ucg, scatterv, status, sbuf, scounts, displs, sdtype, rbuf, rcount, rdtype, root,
                   comm);
}
