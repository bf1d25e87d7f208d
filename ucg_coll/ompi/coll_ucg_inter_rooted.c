/*
 * Inter-communicators: MPI_Bcast, MPI_Gather(v) and MPI_Scatter(v), between a root of one side and
 * all processes of the other.
 */
#include "coll_ucg_inter.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_restart.h"

enum { kRootRank = 0, kFirstOther = 1 };

/** Return the edges of a gather, and those of a scatter, at the root and at the others. */
static coll_ucg_edges_t edges_to_root(const coll_ucg_sides_t* sides, bool is_root) {
    return is_root ? coll_ucg_edges_across(sides, kFirstOther, 0, 0, 0, sides->remote_size)
                   : coll_ucg_edges_across(sides, kRootRank, 0, 1, 0, 0);
}

static coll_ucg_edges_t edges_from_root(const coll_ucg_sides_t* sides, bool is_root) {
    return is_root ? coll_ucg_edges_across(sides, kFirstOther, 0, sides->remote_size, 0, 0)
                   : coll_ucg_edges_across(sides, kRootRank, 0, 0, 0, 1);
}

static bool sends(const coll_ucg_rooted_t* rooted) {
    return 0 != rooted->edges.ends.destination_count;
}

static COLL_UCG_APART ucg_status_t run_anew(mca_coll_ucg_module_t* module,
                                            const coll_ucg_rooted_t* rooted,
                                            const coll_ucg_latest_t* arguments) {
    const coll_ucg_edge_blocks_t none = {.user = NULL};
    coll_ucg_part_t* part;
    coll_ucg_call_t call;
    ucg_status_t status = coll_ucg_enter_rooted(module, rooted->root, &part);
    if (UCG_OK != status) {
        return status;
    }
    if (coll_ucg_goes_by_first(module->sides, part, rooted)) {
        return coll_ucg_run_by_first(module, part->group, rooted);
    }
    coll_ucg_begin_blocking_in(&call, module, part->group);
    status = coll_ucg_run_first(
        &call, coll_ucg_open_edges(&call, &rooted->edges, sends(rooted) ? &rooted->blocks : &none,
                                   sends(rooted) ? &none : &rooted->blocks));
    coll_ucg_remember_call(&call, rooted->function, arguments, status);
    return status;
}

/** Declares `call`, the description of a call's arguments. */
#define DESCRIBE(call, module, rooted)                                                             \
    const coll_ucg_vector_t vectors[] = {                                                          \
        COLL_UCG_COUNTS((rooted)->blocks.counts, (module)->sides->remote_size),                    \
        COLL_UCG_DISPLS((rooted)->blocks.displs, (module)->sides->remote_size)};                   \
    const coll_ucg_latest_t call = {.type = (rooted)->blocks.type,                                 \
                                    .count = (rooted)->blocks.count,                               \
                                    .root = (rooted)->root,                                        \
                                    .vector_count =                                                \
                                        coll_ucg_has_counts((rooted)->blocks.counts) ? 2 : 0,      \
                                    .vectors = vectors}

/** Runs a blocking call. Other processes of the root's side have nothing to do, and their blocks
 *  mean nothing. */
static ucg_status_t run(mca_coll_ucg_module_t* module, const coll_ucg_rooted_t* rooted) {
    const coll_ucg_edge_blocks_t* blocks = &rooted->blocks;
    if (MPI_PROC_NULL == rooted->root) {
        return UCG_OK;
    }
    DESCRIBE(call, module, rooted);
    if (coll_ucg_repeats_described(module, rooted->function, &call)) {
        const ucg_status_t status = ucg_coll_repeat(module->latest[rooted->function].coll,
                                                    sends(rooted) ? blocks->user : NULL,
                                                    sends(rooted) ? NULL : (void*)blocks->user);
        if (UCG_ERR_UNSUPPORTED != status) {
            return status;
        }
    }
    return run_anew(module, rooted, &call);
}

/** Runs a blocking call with equal blocks. MPI_Gather() and MPI_Scatter() do not come here where a
 *  count is zero. */
static ucg_status_t run_even(mca_coll_ucg_module_t* module, const coll_ucg_rooted_t* rooted) {
    const coll_ucg_edge_blocks_t* blocks = &rooted->blocks;
    const bool empty = MPI_PROC_NULL != rooted->root &&
                       0 == coll_ucg_packed_bytes(blocks->type, (size_t)blocks->count);
    return empty ? UCG_OK : run(module, rooted);
}

/* ------------------------------------------------------------------ nonblocking */

static COLL_UCG_APART ucg_status_t start_anew(mca_coll_ucg_module_t* module,
                                              const coll_ucg_rooted_t* rooted,
                                              const coll_ucg_latest_t* arguments,
                                              ompi_request_t** request) {
    const coll_ucg_edge_blocks_t none = {.user = NULL};
    coll_ucg_request_t* mine = NULL;
    const ucg_status_t status = coll_ucg_enter_rooted_nonblocking(module, rooted->root, &mine);
    if (UCG_OK != status) {
        return status;
    }
    const ucg_status_t opened =
        coll_ucg_open_edges(&mine->call, &rooted->edges, sends(rooted) ? &rooted->blocks : &none,
                            sends(rooted) ? &none : &rooted->blocks);
    return coll_ucg_start_described(mine, rooted->function, arguments, opened, request);
}

/** Starts the call again, if it is like the one before and may be started again. Returns whether it
 *  was started. */
static bool restart(mca_coll_ucg_module_t* module, const coll_ucg_rooted_t* rooted,
                    const coll_ucg_latest_t* call, ompi_request_t** request, ucg_status_t* status) {
    void* user = (void*)rooted->blocks.user;
    return coll_ucg_repeats_all_of(coll_ucg_latest_start(module, rooted->function), call) &&
           coll_ucg_try_to_restart(module, rooted->function, sends(rooted) ? user : NULL,
                                   sends(rooted) ? NULL : user, request, status);
}

/** Starts a nonblocking call, with equal blocks or others. Other processes of the root's side have
 *  nothing to do. */
static ucg_status_t start(mca_coll_ucg_module_t* module, const coll_ucg_rooted_t* rooted,
                          ompi_request_t** request) {
    ucg_status_t status = UCG_OK;
    if (MPI_PROC_NULL == rooted->root) {
        *request = &ompi_request_empty;
    } else {
        DESCRIBE(call, module, rooted);
        if (!restart(module, rooted, &call, request, &status)) {
            status = start_anew(module, rooted, &call, request);
        }
    }
    if (UCG_ERR_UNSUPPORTED != status) {
        coll_ucg_number_call(module->comm);
    }
    return status;
}

/* ------------------------------------------------------------------ bcast */

static COLL_UCG_APART ucg_status_t bcast_anew(mca_coll_ucg_module_t* module, void* buffer,
                                              coll_ucg_count_t count, struct ompi_datatype_t* dtype,
                                              int root) {
    coll_ucg_part_t* part;
    coll_ucg_call_t call;
    /* Other processes of the root's side have nothing to do, and MPI_Bcast() does not come here for
       no elements. */
    if (MPI_PROC_NULL == root || 0 == coll_ucg_packed_bytes(dtype, (size_t)count)) {
        return UCG_OK;
    }
    ucg_status_t status = coll_ucg_enter_rooted(module, root, &part);
    if (UCG_OK != status) {
        return status;
    }
    const coll_ucg_arguments_t arguments = {.rbuf = buffer, .rcount = count, .rdtype = dtype};
    coll_ucg_begin_blocking_in(&call, module, part->group);
    status = coll_ucg_run_first(
        &call, coll_ucg_open_bcast_from(&call, &arguments, kRootRank, MPI_ROOT == root));
    const coll_ucg_latest_t latest = {.type = dtype, .count = count, .root = root};
    coll_ucg_remember_call(&call, COLL_UCG_FN_bcast, &latest, status);
    return status;
}

int mca_coll_ucg_inter_bcast(void* buffer, coll_ucg_count_t count, struct ompi_datatype_t* dtype,
                             int root, struct ompi_communicator_t* comm,
                             mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_bcast];
    if (coll_ucg_repeats(latest, dtype, NULL, count, false) && latest->root == root) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_bcast, NULL, buffer);
    }
    const ucg_status_t status = bcast_anew(ucg, buffer, count, dtype, root);
    COLL_UCG_LEAVE(ucg, bcast, status, buffer, count, dtype, root, comm);
}

static COLL_UCG_APART ucg_status_t ibcast_anew(mca_coll_ucg_module_t* module, void* buffer,
                                               coll_ucg_count_t count,
                                               struct ompi_datatype_t* dtype, int root,
                                               ompi_request_t** request) {
    coll_ucg_request_t* mine = NULL;
    const ucg_status_t status = coll_ucg_enter_rooted_nonblocking(module, root, &mine);
    if (UCG_OK != status) {
        return status;
    }
    const coll_ucg_latest_t latest = {.type = dtype, .count = count, .root = root};
    const coll_ucg_arguments_t arguments = {.rbuf = buffer, .rcount = count, .rdtype = dtype};
    const ucg_status_t opened =
        coll_ucg_open_bcast_from(&mine->call, &arguments, kRootRank, MPI_ROOT == root);
    return coll_ucg_start_described(mine, COLL_UCG_FN_ibcast, &latest, opened, request);
}

int mca_coll_ucg_inter_ibcast(void* buffer, coll_ucg_count_t count, struct ompi_datatype_t* dtype,
                              int root, struct ompi_communicator_t* comm, ompi_request_t** request,
                              mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_ibcast);
    ucg_status_t status = UCG_OK;
    if (coll_ucg_repeats(latest, dtype, NULL, count, false) && latest->root == root) {
        coll_ucg_number_call(comm);
        return coll_ucg_restart(ucg, COLL_UCG_FN_ibcast, NULL, buffer, request);
    }
    if (MPI_PROC_NULL == root || 0 == coll_ucg_packed_bytes(dtype, (size_t)count)) {
        *request = &ompi_request_empty;
    } else {
        status = ibcast_anew(ucg, buffer, count, dtype, root, request);
    }
    if (UCG_ERR_UNSUPPORTED != status) {
        coll_ucg_number_call(comm);
    }
    COLL_UCG_LEAVE(ucg, ibcast, status, buffer, count, dtype, root, comm, request);
}

/* ------------------------------------------------------------------ gather */

/** Returns the description of a gather or scatter, where the root has the blocks `whole` and each
 *  of the others `part`. */
#define ROOTED(name, edges, whole, part)                                                           \
    (&(coll_ucg_rooted_t){COLL_UCG_FN_##name, root, edges(ucg->sides, MPI_ROOT == root),           \
                          MPI_ROOT == root ? (whole) : (part)})

int mca_coll_ucg_inter_gather(const void* sbuf, coll_ucg_count_t scount,
                              struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                              struct ompi_datatype_t* rdtype, int root,
                              struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_edge_blocks_t part = {.user = sbuf, .count = scount, .type = sdtype};
    const coll_ucg_edge_blocks_t whole = {.user = rbuf, .count = rcount, .type = rdtype};
    const ucg_status_t status = run_even(ucg, ROOTED(gather, edges_to_root, whole, part));
    COLL_UCG_LEAVE(ucg, gather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, root, comm);
}

int mca_coll_ucg_inter_igather(const void* sbuf, coll_ucg_count_t scount,
                               struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                               struct ompi_datatype_t* rdtype, int root,
                               struct ompi_communicator_t* comm, ompi_request_t** request,
                               mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_edge_blocks_t part = {.user = sbuf, .count = scount, .type = sdtype};
    const coll_ucg_edge_blocks_t whole = {.user = rbuf, .count = rcount, .type = rdtype};
    const ucg_status_t status = start(ucg, ROOTED(igather, edges_to_root, whole, part), request);
    COLL_UCG_LEAVE(ucg, igather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, root, comm,
                   request);
}

int mca_coll_ucg_inter_gatherv(const void* sbuf, coll_ucg_count_t scount,
                               struct ompi_datatype_t* sdtype, void* rbuf,
                               coll_ucg_counts_t rcounts, coll_ucg_displs_t displs,
                               struct ompi_datatype_t* rdtype, int root,
                               struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_edge_blocks_t part = {.user = sbuf, .count = scount, .type = sdtype};
    const coll_ucg_edge_blocks_t whole = {
        .user = rbuf, .counts = rcounts, .displs = displs, .type = rdtype};
    const ucg_status_t status = run(ucg, ROOTED(gatherv, edges_to_root, whole, part));
    COLL_UCG_LEAVE(ucg, gatherv, status, sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, root,
                   comm);
}

int mca_coll_ucg_inter_igatherv(const void* sbuf, coll_ucg_count_t scount,
                                struct ompi_datatype_t* sdtype, void* rbuf,
                                coll_ucg_counts_t rcounts, coll_ucg_displs_t displs,
                                struct ompi_datatype_t* rdtype, int root,
                                struct ompi_communicator_t* comm, ompi_request_t** request,
                                mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_edge_blocks_t part = {.user = sbuf, .count = scount, .type = sdtype};
    const coll_ucg_edge_blocks_t whole = {
        .user = rbuf, .counts = rcounts, .displs = displs, .type = rdtype};
    const ucg_status_t status = start(ucg, ROOTED(igatherv, edges_to_root, whole, part), request);
    COLL_UCG_LEAVE(ucg, igatherv, status, sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, root,
                   comm, request);
}

/* ------------------------------------------------------------------ scatter */

int mca_coll_ucg_inter_scatter(const void* sbuf, coll_ucg_count_t scount,
                               struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                               struct ompi_datatype_t* rdtype, int root,
                               struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_edge_blocks_t whole = {.user = sbuf, .count = scount, .type = sdtype};
    const coll_ucg_edge_blocks_t part = {.user = rbuf, .count = rcount, .type = rdtype};
    const ucg_status_t status = run_even(ucg, ROOTED(scatter, edges_from_root, whole, part));
    COLL_UCG_LEAVE(ucg, scatter, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, root, comm);
}

int mca_coll_ucg_inter_iscatter(const void* sbuf, coll_ucg_count_t scount,
                                struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                                struct ompi_datatype_t* rdtype, int root,
                                struct ompi_communicator_t* comm, ompi_request_t** request,
                                mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_edge_blocks_t whole = {.user = sbuf, .count = scount, .type = sdtype};
    const coll_ucg_edge_blocks_t part = {.user = rbuf, .count = rcount, .type = rdtype};
    const ucg_status_t status = start(ucg, ROOTED(iscatter, edges_from_root, whole, part), request);
    COLL_UCG_LEAVE(ucg, iscatter, status, sbuf, scount, sdtype, rbuf, rcount, rdtype, root, comm,
                   request);
}

int mca_coll_ucg_inter_scatterv(const void* sbuf, coll_ucg_counts_t scounts,
                                coll_ucg_displs_t displs, struct ompi_datatype_t* sdtype,
                                void* rbuf, coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                int root, struct ompi_communicator_t* comm,
                                mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_edge_blocks_t whole = {
        .user = sbuf, .counts = scounts, .displs = displs, .type = sdtype};
    const coll_ucg_edge_blocks_t part = {.user = rbuf, .count = rcount, .type = rdtype};
    const ucg_status_t status = run(ucg, ROOTED(scatterv, edges_from_root, whole, part));
    COLL_UCG_LEAVE(ucg, scatterv, status, sbuf, scounts, displs, sdtype, rbuf, rcount, rdtype, root,
                   comm);
}

int mca_coll_ucg_inter_iscatterv(const void* sbuf, coll_ucg_counts_t scounts,
                                 coll_ucg_displs_t displs, struct ompi_datatype_t* sdtype,
                                 void* rbuf, coll_ucg_count_t rcount,
                                 struct ompi_datatype_t* rdtype, int root,
                                 struct ompi_communicator_t* comm, ompi_request_t** request,
                                 mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_edge_blocks_t whole = {
        .user = sbuf, .counts = scounts, .displs = displs, .type = sdtype};
    const coll_ucg_edge_blocks_t part = {.user = rbuf, .count = rcount, .type = rdtype};
    const ucg_status_t status =
        start(ucg, ROOTED(iscatterv, edges_from_root, whole, part), request);
    COLL_UCG_LEAVE(ucg, iscatterv, status, sbuf, scounts, displs, sdtype, rbuf, rcount, rdtype,
                   root, comm, request);
}
