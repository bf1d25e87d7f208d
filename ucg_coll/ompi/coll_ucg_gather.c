/*
 * MPI_Gather and MPI_Gatherv. The receive arguments mean something at the root only.
 */
#include "coll_ucg.h"

static ucg_status_t send_part(mca_coll_ucg_module_t* ucg, const void* sbuf, size_t scount,
                              const ompi_datatype_t* stype, ucg_coll_params_t* params) {
    coll_ucg_buffer_t input;
    ucg_status_t status = coll_ucg_open_send(&input, &ucg->send, sbuf, scount, stype);
    params->send_buffer = input.packed;
    params->count = coll_ucg_part(params, stype, scount);
    return status;
}

/* ------------------------------------------------------------------ gather */

/** The root's side: its own block goes through libucg as well. */
static ucg_status_t gather_at_root(mca_coll_ucg_module_t* ucg, const void* sbuf, size_t scount,
                                   const ompi_datatype_t* stype, void* rbuf, size_t rcount,
                                   const ompi_datatype_t* rtype, ucg_coll_params_t* params) {
    const size_t size = (size_t)ompi_comm_size(ucg->comm);
    coll_ucg_buffer_t output;
    ucg_status_t status = coll_ucg_open_receive(&output, &ucg->receive, rbuf, rcount * size, rtype);
    params->recv_buffer = output.packed;
    if (UCG_OK == status && MPI_IN_PLACE == sbuf) {
        params->flags = UCG_COLL_FLAG_IN_PLACE;
        params->count = coll_ucg_packed_bytes(rtype, rcount);
        status = coll_ucg_load(&output, params->root * rcount, rcount);
    } else if (UCG_OK == status) {
        status = send_part(ucg, sbuf, scount, stype, params);
    }
    if (UCG_OK == status && 0 != params->count) {
        status = ucg_coll_run(ucg->group, params);
    }
    return UCG_OK == status ? coll_ucg_store(&output) : status;
}

static ucg_status_t gather_at_leaf(mca_coll_ucg_module_t* ucg, const void* sbuf, size_t scount,
                                   const ompi_datatype_t* stype, ucg_coll_params_t* params) {
    ucg_status_t status = send_part(ucg, sbuf, scount, stype, params);
    return UCG_OK == status && 0 != params->count ? ucg_coll_run(ucg->group, params) : status;
}

int mca_coll_ucg_gather(const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf,
                        int rcount, struct ompi_datatype_t* rdtype, int root,
                        struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_coll_params_t params = {
        .type = UCG_COLL_GATHER, .root = (uint32_t)root, .element_bytes = 1};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = root == ompi_comm_rank(comm)
                     ? gather_at_root(ucg, sbuf, (size_t)scount, sdtype, rbuf, (size_t)rcount,
                                      rdtype, &params)
                     : gather_at_leaf(ucg, sbuf, (size_t)scount, sdtype, &params);
    }
    COLL_UCG_LEAVE(ucg, gather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, root, comm);
}

/* ------------------------------------------------------------------ gatherv */

static ucg_status_t gatherv_at_root(mca_coll_ucg_module_t* ucg, const void* sbuf, size_t scount,
                                    const ompi_datatype_t* stype, coll_ucg_blocks_t* output,
                                    ucg_coll_params_t* params) {
    const int root = (int)params->root;
    coll_ucg_choose_vectors(params, output, MPI_IN_PLACE == sbuf ? output->type : stype);
    ucg_status_t status = coll_ucg_open_receive_blocks(output, ucg, params);
    if (UCG_OK != status) {
        return status;
    }
    if (MPI_IN_PLACE == sbuf) {
        params->flags = UCG_COLL_FLAG_IN_PLACE;
        params->count = coll_ucg_block_length(params, output, root);
        status = coll_ucg_load_block(output, root);
    } else {
        status = send_part(ucg, sbuf, scount, stype, params);
    }
    if (UCG_OK == status) {
        status = ucg_coll_run(ucg->group, params);
    }
    return UCG_OK == status ? coll_ucg_store_blocks(output) : status;
}

/** A part of zero bytes takes part too: the root alone knows all sizes. */
static ucg_status_t gatherv_at_leaf(mca_coll_ucg_module_t* ucg, const void* sbuf, size_t scount,
                                    const ompi_datatype_t* stype, ucg_coll_params_t* params) {
    ucg_status_t status = send_part(ucg, sbuf, scount, stype, params);
    return UCG_OK == status ? ucg_coll_run(ucg->group, params) : status;
}

int mca_coll_ucg_gatherv(const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf,
                         const int* rcounts, const int* displs, struct ompi_datatype_t* rdtype,
                         int root, struct ompi_communicator_t* comm,
                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_blocks_t output = {.user = rbuf,
                                .counts = rcounts,
                                .displs = displs,
                                .type = rdtype,
                                .size = ompi_comm_size(comm)};
    ucg_coll_params_t params = {
        .type = UCG_COLL_GATHERV, .root = (uint32_t)root, .element_bytes = 1};
    ucg_status_t status = coll_ucg_enter(ucg, comm);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = root == ompi_comm_rank(comm)
                     ? gatherv_at_root(ucg, sbuf, (size_t)scount, sdtype, &output, &params)
                     : gatherv_at_leaf(ucg, sbuf, (size_t)scount, sdtype, &params);
    }
    COLL_UCG_LEAVE(ucg, gatherv, status, sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, root,
                   comm);
}
