/*
 * Inter-communicators: MPI_Bcast, MPI_Gather(v) and MPI_Scatter(v), between a root of one side and
 * all processes of the other.
 */
#include "coll_ucg_inter.h"
#include "coll_ucg_restart.h"

enum { kRootRank = 0, kFirstOther = 1 };

/** Returns a gather or scatter as this process has it: the root has blocks of all processes of the
 *  other side, and each of these has a part. */
static coll_ucg_rooted_t rooted_of(const coll_ucg_sides_t* sides, enum coll_ucg_function function,
                                   const coll_ucg_arguments_t* arguments) {
    const enum coll_ucg_function collective = coll_ucg_collective_of(function);
    const bool gathers = COLL_UCG_FN_gather == collective || COLL_UCG_FN_gatherv == collective;
    const bool is_root = MPI_ROOT == arguments->root;
    const bool sends = gathers != is_root;
    const int others = is_root ? sides->remote_size : 1;
    return (coll_ucg_rooted_t){
        .function = function,
        .root = arguments->root,
        .edges = coll_ucg_edges_across(sides, is_root ? kFirstOther : kRootRank, 0,
                                       sends ? others : 0, 0, sends ? 0 : others),
        .blocks = sends ? coll_ucg_edge_input(arguments) : coll_ucg_edge_output(arguments),
    };
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

static int blocking(mca_coll_base_module_t* base, enum coll_ucg_function function,
                    coll_ucg_arguments_t arguments) {
    mca_coll_ucg_module_t* module = (mca_coll_ucg_module_t*)base;
    const coll_ucg_rooted_t rooted = rooted_of(module->sides, function, &arguments);
    return coll_ucg_leave(module, function, run(module, &rooted), &arguments);
}

/** Runs a blocking call with equal blocks. MPI_Gather() and MPI_Scatter() do not come here where a
 *  count is zero. */
static int blocking_even(mca_coll_base_module_t* base, enum coll_ucg_function function,
                         coll_ucg_arguments_t arguments) {
    mca_coll_ucg_module_t* module = (mca_coll_ucg_module_t*)base;
    const coll_ucg_rooted_t rooted = rooted_of(module->sides, function, &arguments);
    const coll_ucg_edge_blocks_t* blocks = &rooted.blocks;
    const bool empty = MPI_PROC_NULL != rooted.root &&
                       0 == coll_ucg_packed_bytes(blocks->type, (size_t)blocks->count);
    const ucg_status_t status = empty ? UCG_OK : run(module, &rooted);
    return coll_ucg_leave(module, function, status, &arguments);
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

/** Ends a nonblocking function: counts the call here unless the previous module does. */
static int leave_nonblocking(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                             ucg_status_t status, const coll_ucg_arguments_t* arguments) {
    if (UCG_ERR_UNSUPPORTED != status) {
        coll_ucg_number_call(module->comm);
    }
    return coll_ucg_leave(module, function, status, arguments);
}

/** Starts a nonblocking call, with equal blocks or others. Other processes of the root's side have
 *  nothing to do. */
static int nonblocking(mca_coll_base_module_t* base, enum coll_ucg_function function,
                       coll_ucg_arguments_t arguments) {
    mca_coll_ucg_module_t* module = (mca_coll_ucg_module_t*)base;
    const coll_ucg_rooted_t rooted = rooted_of(module->sides, function, &arguments);
    ucg_status_t status = UCG_OK;
    if (MPI_PROC_NULL == rooted.root) {
        *arguments.request = &ompi_request_empty;
    } else {
        DESCRIBE(call, module, &rooted);
        if (!restart(module, &rooted, &call, arguments.request, &status)) {
            status = start_anew(module, &rooted, &call, arguments.request);
        }
    }
    return leave_nonblocking(module, function, status, &arguments);
}

/* ------------------------------------------------------------------ bcast */

static ucg_status_t run_bcast(mca_coll_ucg_module_t* module,
                              const coll_ucg_arguments_t* arguments) {
    const coll_ucg_latest_t latest = {
        .type = arguments->rdtype, .count = arguments->rcount, .root = arguments->root};
    coll_ucg_part_t* part;
    coll_ucg_call_t call;
    ucg_status_t status = coll_ucg_enter_rooted(module, arguments->root, &part);
    if (UCG_OK != status) {
        return status;
    }
    coll_ucg_begin_blocking_in(&call, module, part->group);
    status = coll_ucg_run_first(
        &call, coll_ucg_open_bcast_from(&call, arguments, kRootRank, MPI_ROOT == arguments->root));
    coll_ucg_remember_call(&call, COLL_UCG_FN_bcast, &latest, status);
    return status;
}

/** Is there nothing to do? That is so in other processes of the root's side. And MPI_Bcast() does
 *  not come here for no elements. */
static bool is_idle(const coll_ucg_arguments_t* arguments) {
    return MPI_PROC_NULL == arguments->root ||
           0 == coll_ucg_packed_bytes(arguments->rdtype, (size_t)arguments->rcount);
}

static COLL_UCG_APART int blocking_bcast(mca_coll_ucg_module_t* module,
                                         coll_ucg_arguments_t arguments) {
    const ucg_status_t status = is_idle(&arguments) ? UCG_OK : run_bcast(module, &arguments);
    return coll_ucg_leave(module, COLL_UCG_FN_bcast, status, &arguments);
}

int mca_coll_ucg_inter_bcast(void* buffer, coll_ucg_count_t count, struct ompi_datatype_t* dtype,
                             int root, struct ompi_communicator_t* comm,
                             mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = &ucg->latest[COLL_UCG_FN_bcast];
    if (coll_ucg_repeats(latest, dtype, NULL, count, false) && latest->root == root) {
        return coll_ucg_repeat(ucg, COLL_UCG_FN_bcast, NULL, buffer);
    }
    return blocking_bcast(ucg, (coll_ucg_arguments_t){
                                   .rbuf = buffer, .rcount = count, .rdtype = dtype, .root = root});
}

static ucg_status_t start_bcast(mca_coll_ucg_module_t* module,
                                const coll_ucg_arguments_t* arguments) {
    const coll_ucg_latest_t latest = {
        .type = arguments->rdtype, .count = arguments->rcount, .root = arguments->root};
    coll_ucg_request_t* mine = NULL;
    const ucg_status_t status = coll_ucg_enter_rooted_nonblocking(module, arguments->root, &mine);
    if (UCG_OK != status) {
        return status;
    }
    const ucg_status_t opened =
        coll_ucg_open_bcast_from(&mine->call, arguments, kRootRank, MPI_ROOT == arguments->root);
    return coll_ucg_start_described(mine, COLL_UCG_FN_ibcast, &latest, opened, arguments->request);
}

static COLL_UCG_APART int nonblocking_bcast(mca_coll_ucg_module_t* module,
                                            coll_ucg_arguments_t arguments) {
    ucg_status_t status = UCG_OK;
    if (is_idle(&arguments)) {
        *arguments.request = &ompi_request_empty;
    } else {
        status = start_bcast(module, &arguments);
    }
    return leave_nonblocking(module, COLL_UCG_FN_ibcast, status, &arguments);
}

int mca_coll_ucg_inter_ibcast(void* buffer, coll_ucg_count_t count, struct ompi_datatype_t* dtype,
                              int root, struct ompi_communicator_t* comm, ompi_request_t** request,
                              mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_latest_t* const latest = coll_ucg_latest_start(ucg, COLL_UCG_FN_ibcast);
    if (coll_ucg_repeats(latest, dtype, NULL, count, false) && latest->root == root) {
        coll_ucg_number_call(comm);
        return coll_ucg_restart(ucg, COLL_UCG_FN_ibcast, NULL, buffer, request);
    }
    return nonblocking_bcast(
        ucg,
        (coll_ucg_arguments_t){
            .rbuf = buffer, .rcount = count, .rdtype = dtype, .root = root, .request = request});
}

/* ------------------------------------------------------------------ gather */

int mca_coll_ucg_inter_gather(const void* sbuf, coll_ucg_count_t scount,
                              struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                              struct ompi_datatype_t* rdtype, int root,
                              struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    return blocking_even(module, COLL_UCG_FN_gather,
                         (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .root = root});
}

int mca_coll_ucg_inter_igather(const void* sbuf, coll_ucg_count_t scount,
                               struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                               struct ompi_datatype_t* rdtype, int root,
                               struct ompi_communicator_t* comm, ompi_request_t** request,
                               mca_coll_base_module_t* module) {
    return nonblocking(
        module, COLL_UCG_FN_igather,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .root = root, .request = request});
}

int mca_coll_ucg_inter_gatherv(const void* sbuf, coll_ucg_count_t scount,
                               struct ompi_datatype_t* sdtype, void* rbuf,
                               coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                               struct ompi_datatype_t* rdtype, int root,
                               struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    return blocking(module, COLL_UCG_FN_gatherv,
                    (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS, .root = root});
}

int mca_coll_ucg_inter_igatherv(const void* sbuf, coll_ucg_count_t scount,
                                struct ompi_datatype_t* sdtype, void* rbuf,
                                coll_ucg_counts_t rcounts, coll_ucg_displs_t rdispls,
                                struct ompi_datatype_t* rdtype, int root,
                                struct ompi_communicator_t* comm, ompi_request_t** request,
                                mca_coll_base_module_t* module) {
    return nonblocking(module, COLL_UCG_FN_igatherv,
                       (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED_BLOCKS, .root = root,
                                              .request = request});
}

/* ------------------------------------------------------------------ scatter */

int mca_coll_ucg_inter_scatter(const void* sbuf, coll_ucg_count_t scount,
                               struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                               struct ompi_datatype_t* rdtype, int root,
                               struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    return blocking_even(module, COLL_UCG_FN_scatter,
                         (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .root = root});
}

int mca_coll_ucg_inter_iscatter(const void* sbuf, coll_ucg_count_t scount,
                                struct ompi_datatype_t* sdtype, void* rbuf, coll_ucg_count_t rcount,
                                struct ompi_datatype_t* rdtype, int root,
                                struct ompi_communicator_t* comm, ompi_request_t** request,
                                mca_coll_base_module_t* module) {
    return nonblocking(
        module, COLL_UCG_FN_iscatter,
        (coll_ucg_arguments_t){COLL_UCG_SENT, COLL_UCG_RECEIVED, .root = root, .request = request});
}

int mca_coll_ucg_inter_scatterv(const void* sbuf, coll_ucg_counts_t scounts,
                                coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                void* rbuf, coll_ucg_count_t rcount, struct ompi_datatype_t* rdtype,
                                int root, struct ompi_communicator_t* comm,
                                mca_coll_base_module_t* module) {
    return blocking(module, COLL_UCG_FN_scatterv,
                    (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS, COLL_UCG_RECEIVED, .root = root});
}

int mca_coll_ucg_inter_iscatterv(const void* sbuf, coll_ucg_counts_t scounts,
                                 coll_ucg_displs_t sdispls, struct ompi_datatype_t* sdtype,
                                 void* rbuf, coll_ucg_count_t rcount,
                                 struct ompi_datatype_t* rdtype, int root,
                                 struct ompi_communicator_t* comm, ompi_request_t** request,
                                 mca_coll_base_module_t* module) {
    return nonblocking(module, COLL_UCG_FN_iscatterv,
                       (coll_ucg_arguments_t){COLL_UCG_SENT_BLOCKS, COLL_UCG_RECEIVED, .root = root,
                                              .request = request});
}
