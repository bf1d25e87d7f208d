/*
 * A collective call on its way through libucg, whichever form it has: what the program's buffers
 * and arguments mean to libucg, what has to be packed before the call starts and unpacked after it.
 *
 * Each collective has one function that opens a call from its arguments. A blocking call lives on
 * the stack and works with its module's memory, or with its own if it is nested. A nonblocking or
 * persistent one is part of its request (coll_ucg_request.h), and works with its own memory.
 */
#ifndef MCA_COLL_UCG_CALL_H
#define MCA_COLL_UCG_CALL_H

#include "coll_ucg_arguments.h"

/* ------------------------------------------------------------------ scratch */

/** Returns at least `bytes` bytes with undefined contents; NULL when memory is exhausted. */
void* coll_ucg_scratch_get(coll_ucg_scratch_t* scratch, size_t bytes);

/** Returns the bytes of memory that `count` elements cover, wherever their extent, which may be
 *  negative, places them. */
size_t coll_ucg_covered_bytes(const ompi_datatype_t* type, size_t count);
/** Returns how many bytes coll_ucg_origin_in() needs. */
size_t coll_ucg_bytes_for(const ompi_datatype_t* type, size_t count);
/** Returns the origin of `count` elements in `memory`, which has coll_ucg_bytes_for() bytes. It is
 *  aligned to a cache line, because displacements from it are what the program has aligned. */
unsigned char* coll_ucg_origin_in(void* memory, const ompi_datatype_t* type, size_t count);

enum {
    COLL_UCG_SCRATCH_KEPT = 1 << 18, /**< Longer scratch is freed when its call ends. */
    /** What all workspaces of the process keep between calls. A program may have thousands of
     *  requests outstanding once, and thousands of communicators that are seldom used. */
    COLL_UCG_KEPT_IN_ALL = 1 << 23
};
/** Frees scratch of unusual size, and everything where all workspaces keep too much: then it
 * returns false. Counts what is kept. */
bool coll_ucg_workspace_trim(coll_ucg_workspace_t* workspace);
/** To be called when a call that used the workspace has ended. Returns false if nothing is kept of
 *  it because others keep enough. */
static inline bool coll_ucg_trim(coll_ucg_workspace_t* workspace) {
    const size_t bytes = workspace->send.capacity + workspace->receive.capacity +
                         workspace->left.capacity + workspace->right.capacity +
                         workspace->vectors.capacity;
    return OPAL_LIKELY(bytes == workspace->kept) || coll_ucg_workspace_trim(workspace);
}

/** Returns the workspace for a blocking call: `kept`, or `own`, emptied, if the call is nested,
 * since the call that it is nested in may be using the other. */
static inline coll_ucg_workspace_t* coll_ucg_take_workspace(coll_ucg_workspace_t* kept,
                                                            coll_ucg_workspace_t* own) {
    if (OPAL_LIKELY(!coll_ucg_is_nested())) {
        return kept;
    }
    *own = (coll_ucg_workspace_t){0};
    return own;
}
/** Ends the use of a workspace that coll_ucg_take_workspace() has returned. */
static inline void coll_ucg_leave_workspace(coll_ucg_workspace_t* taken,
                                            coll_ucg_workspace_t* own) {
    if (OPAL_LIKELY(taken != own)) {
        (void)coll_ucg_trim(taken);
    } else {
        coll_ucg_workspace_free(own);
    }
}

/* ------------------------------------------------------------------ datatypes */

/** Returns the bytes of `count` elements as a message carries them; equal on all ranks whose
 *  signatures match. */
static inline size_t coll_ucg_packed_bytes(const ompi_datatype_t* type, size_t count) {
    return type->super.size * count;
}

/**
 * Ends a call of no bytes to a function for which Open MPI itself returns where the count is zero.
 * Another rank may have described the same data by some elements of an empty datatype, or the other
 * way round, and so not have come here: therefore such calls neither make a group nor count towards
 * it, on any rank.
 */
static inline int coll_ucg_leave_empty(mca_coll_ucg_module_t* module,
                                       enum coll_ucg_function function) {
    module->counters.taken[function]++;
    return OMPI_SUCCESS;
}

/** Do `count` elements lie in memory as a message carries them? */
static inline bool coll_ucg_is_dense(const ompi_datatype_t* type, size_t count) {
    const uint32_t flags = type->super.flags;
    return OPAL_LIKELY(0 != (flags & OPAL_DATATYPE_FLAG_NO_GAPS)) || 0 == count ||
           0 == type->super.size || (1 == count && 0 != (flags & OPAL_DATATYPE_FLAG_CONTIGUOUS));
}

static inline ptrdiff_t coll_ucg_extent(const ompi_datatype_t* type) {
    return type->super.ub - type->super.lb;
}

/** Is a displacement in extents also one in packed elements? */
static inline bool coll_ucg_is_gapless(const ompi_datatype_t* type) {
    return 0 != (type->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS) && 0 < type->super.size &&
           coll_ucg_extent(type) == (ptrdiff_t)type->super.size;
}

ucg_status_t coll_ucg_pack(const void* buffer, size_t count, const ompi_datatype_t* type,
                           void* packed);
ucg_status_t coll_ucg_unpack(void* buffer, size_t count, const ompi_datatype_t* type,
                             const void* packed);

/* ------------------------------------------------------------------ calls */

/** The data on one side (input or output) of a call: where it is in the user's memory, and where
 *  its bytes lie as a message carries them. It consists of elements of one type, or of blocks of
 *  sizes of their own, one for each rank. */
typedef struct {
    void* user;
    unsigned char* packed; /**< The user's memory if `direct`, else scratch. */
    bool direct;           /**< Nothing is packed, or there is no data on this side. */
    bool in_blocks;
    const ompi_datatype_t* type; /**< Type of all elements, or NULL. */
    /* Number of elements, or of blocks, that are packed to scratch before the call starts (load),
       and unpacked to the user's memory after it (store), unless direct. */
    size_t load_first;
    size_t load_count;
    size_t store_count; /**< From the first one on. */
    /* Used for blocks: */
    coll_ucg_counts_t counts;
    coll_ucg_displs_t displs;             /**< In extents, or, with `types`, in bytes. */
    const ptrdiff_t* places;              /**< In bytes, instead of `displs`, or NULL. */
    struct ompi_datatype_t* const* types; /**< Type of each block, or NULL. */
    int size;                             /**< Number of blocks. */
    /* Used where libucg gets vectors in bytes: */
    uint64_t* bytes;  /**< Length of each block. */
    int64_t* offsets; /**< Where each block begins, from `packed`. */
} coll_ucg_data_t;

/** An MPI operator on a datatype, as libucg calls it. */
typedef struct {
    coll_ucg_workspace_t* workspace;
    ompi_op_t* op; /**< NULL: the call does not reduce. */
    ompi_datatype_t* type;
    size_t batch; /**< Number of elements that the operator's scratch holds. */
} coll_ucg_reduction_t;

typedef struct {
    mca_coll_ucg_module_t* module;
    ucg_group_h group;
    coll_ucg_workspace_t* workspace; /**< The module's, or: */
    coll_ucg_workspace_t own;        /**< Undefined in a blocking call that is not nested. */
    bool empty;                      /**< There is nothing to do, on any rank. */
    ucg_coll_params_t params;
    coll_ucg_data_t input;
    coll_ucg_data_t output;
    coll_ucg_reduction_t reduction;
} coll_ucg_call_t;

/** Initialises a call that has no data yet, apart from its own workspace. */
static inline void coll_ucg_begin(coll_ucg_call_t* call, mca_coll_ucg_module_t* module,
                                  ucg_group_h group, coll_ucg_workspace_t* workspace) {
    call->module = module;
    call->group = group;
    call->workspace = workspace;
    call->empty = false;
    call->params = (ucg_coll_params_t){.type = UCG_COLL_BARRIER};
    call->input.direct = true;
    call->input.types = NULL;
    call->input.type = NULL;
    call->output.direct = true;
    call->output.types = NULL;
    call->output.type = NULL;
    call->reduction.op = NULL;
}

static inline void coll_ucg_begin_blocking_in(coll_ucg_call_t* call, mca_coll_ucg_module_t* module,
                                              ucg_group_h group) {
    coll_ucg_begin(call, module, group, coll_ucg_take_workspace(&module->workspace, &call->own));
}
static inline void coll_ucg_begin_blocking(coll_ucg_call_t* call, mca_coll_ucg_module_t* module) {
    coll_ucg_begin_blocking_in(call, module, module->group);
}

static inline int coll_ucg_rank(const coll_ucg_call_t* call) {
    return ompi_comm_rank(call->module->comm);
}
static inline size_t coll_ucg_size(const coll_ucg_call_t* call) {
    return (size_t)ompi_comm_size(call->module->comm);
}

/** May MPI's bindings attach arrays to the request of such a nonblocking call? */
static inline bool coll_ucg_takes_arrays(const coll_ucg_call_t* call) {
    const bool types = NULL != call->input.types || NULL != call->output.types;
    const bool vectors = 0 != (call->params.field_mask &
                               (UCG_COLL_PARAM_FIELD_VECTORS | UCG_COLL_PARAM_FIELD_INT_VECTORS));
    return (COLL_UCG_ATTACHES_TYPES && types) || (COLL_UCG_ATTACHES_VECTORS && vectors);
}

/** Load or store data that is not direct. */
ucg_status_t coll_ucg_load_packed(const coll_ucg_data_t* data);
ucg_status_t coll_ucg_store_packed(const coll_ucg_data_t* data);

/** Packs to scratch what libucg is to read there. To be called before each start. */
static inline ucg_status_t coll_ucg_load(const coll_ucg_call_t* call) {
    ucg_status_t status = UCG_OK;
    if (OPAL_UNLIKELY(!call->input.direct)) {
        status = coll_ucg_load_packed(&call->input);
    }
    if (OPAL_UNLIKELY(!call->output.direct) && UCG_OK == status) {
        status = coll_ucg_load_packed(&call->output);
    }
    return status;
}

/** Unpacks the result to the user's memory. Bytes between the datatype's pieces are never
 *  written. */
static inline ucg_status_t coll_ucg_store(const coll_ucg_call_t* call) {
    return OPAL_LIKELY(call->output.direct) ? UCG_OK : coll_ucg_store_packed(&call->output);
}

/** Runs an opened call to its end. */
static inline ucg_status_t coll_ucg_run(coll_ucg_call_t* call) {
    if (call->empty) {
        return UCG_OK;
    }
    ucg_status_t status = coll_ucg_load(call);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = ucg_coll_run(call->group, &call->params);
    }
    return OPAL_LIKELY(UCG_OK == status) ? coll_ucg_store(call) : status;
}

/** Ends the use of a blocking call's workspace. */
static inline void coll_ucg_end_blocking(coll_ucg_call_t* call) {
    coll_ucg_leave_workspace(call->workspace, &call->own);
}

/** Runs a blocking call that has been opened with the status `opened`, and ends it. */
static inline ucg_status_t coll_ucg_run_opened(coll_ucg_call_t* call, ucg_status_t opened) {
    const ucg_status_t status = OPAL_LIKELY(UCG_OK == opened) ? coll_ucg_run(call) : opened;
    coll_ucg_end_blocking(call);
    return status;
}

/** Likewise, but leaves it to coll_ucg_remember_call() to end the call. */
static inline ucg_status_t coll_ucg_run_first(coll_ucg_call_t* call, ucg_status_t opened) {
    return OPAL_LIKELY(UCG_OK == opened) ? coll_ucg_run(call) : opened;
}

/* ------------------------------------------------------------------ buffers */

/** Returns the address `displacement` bytes after `user`. Where the type has absolute addresses
 *  `user` is no pointer into an object, so the sum is one of integers. */
static inline unsigned char* coll_ucg_at(const void* user, ptrdiff_t displacement) {
    return (unsigned char*)((uintptr_t)user + (uintptr_t)displacement);
}

/** Continues coll_ucg_open_buffer() for data that is not direct: takes scratch for it. */
ucg_status_t coll_ucg_open_packed(coll_ucg_data_t* data, coll_ucg_scratch_t* scratch, size_t count);

static inline ucg_status_t coll_ucg_open_buffer(coll_ucg_data_t* data, coll_ucg_scratch_t* scratch,
                                                void* user, size_t count,
                                                const ompi_datatype_t* type) {
    data->user = user;
    data->type = type;
    data->in_blocks = false;
    data->direct = coll_ucg_is_dense(type, count);
    data->packed = coll_ucg_at(user, type->super.true_lb);
    data->load_first = 0;
    return OPAL_LIKELY(data->direct) ? UCG_OK : coll_ucg_open_packed(data, scratch, count);
}

/** Opens the send buffer: `count` elements that the call reads. */
static inline ucg_status_t coll_ucg_open_send(coll_ucg_call_t* call, const void* user, size_t count,
                                              const ompi_datatype_t* type) {
    const ucg_status_t status =
        coll_ucg_open_buffer(&call->input, &call->workspace->send, (void*)user, count, type);
    call->input.load_count = count;
    call->params.send_buffer = call->input.packed;
    return status;
}

/** Opens the receive buffer: `count` elements that the call writes. */
static inline ucg_status_t coll_ucg_open_receive(coll_ucg_call_t* call, void* user, size_t count,
                                                 const ompi_datatype_t* type) {
    const ucg_status_t status =
        coll_ucg_open_buffer(&call->output, &call->workspace->receive, user, count, type);
    call->output.load_count = 0;
    call->output.store_count = count;
    call->params.recv_buffer = call->output.packed;
    return status;
}

/** For MPI_IN_PLACE: makes the call also read `count` elements, or blocks, from `first` on, of what
 *  it writes. */
static inline void coll_ucg_read_in_place(coll_ucg_call_t* call, size_t first, size_t count) {
    call->params.flags |= UCG_COLL_FLAG_IN_PLACE;
    call->output.load_first = first;
    call->output.load_count = count;
}

/* ------------------------------------------------------------------ blocks */

/** The arguments of a v- or w-collective that describe blocks. */
typedef struct {
    const void* user;
    coll_ucg_counts_t counts;
    coll_ucg_displs_t displs;
    const ompi_datatype_t* type;          /**< Type of all blocks, or NULL. */
    struct ompi_datatype_t* const* types; /**< Type of each block, or NULL. */
} coll_ucg_blocks_t;

static inline coll_ucg_blocks_t coll_ucg_sent_blocks(const coll_ucg_arguments_t* arguments) {
    return (coll_ucg_blocks_t){arguments->sbuf, arguments->scounts, arguments->sdispls,
                               arguments->sdtype, arguments->sdtypes};
}
static inline coll_ucg_blocks_t coll_ucg_received_blocks(const coll_ucg_arguments_t* arguments) {
    return (coll_ucg_blocks_t){arguments->rbuf, arguments->rcounts, arguments->rdispls,
                               arguments->rdtype, arguments->rdtypes};
}

/** Are counts and displacements both of int? Open MPI's own components also give displacements of
 *  64 bits with counts of int. */
static inline bool coll_ucg_has_ints(const coll_ucg_blocks_t* blocks) {
    return sizeof(int) == coll_ucg_counts_entries(blocks->counts).width &&
           sizeof(int) == coll_ucg_displs_entries(blocks->displs).width;
}

/**
 * Chooses the unit in which a call counts its blocks and its own part, before the blocks are
 * opened. libucg reads the program's own vectors if they are of int and the blocks and the part
 * have gapless elements of one size; else it gets vectors in bytes. `other`: the blocks of the
 * other side, or NULL; `part`: their type, or that of what is not in blocks.
 */
static inline void coll_ucg_choose_vectors(ucg_coll_params_t* params,
                                           const coll_ucg_blocks_t* blocks,
                                           const coll_ucg_blocks_t* other,
                                           const ompi_datatype_t* part) {
    const ompi_datatype_t* type = blocks->type;
    const bool plain =
        NULL != type && coll_ucg_is_gapless(type) && coll_ucg_has_ints(blocks) &&
        (NULL == other || coll_ucg_has_ints(other)) &&
        (part == type || (coll_ucg_is_gapless(part) && part->super.size == type->super.size));
    params->field_mask =
        OPAL_LIKELY(plain) ? UCG_COLL_PARAM_FIELD_INT_VECTORS : UCG_COLL_PARAM_FIELD_VECTORS;
    params->element_bytes = OPAL_LIKELY(plain) ? type->super.size : 1;
}

static inline bool coll_ucg_has_own_vectors(const ucg_coll_params_t* params) {
    return OPAL_LIKELY(UCG_COLL_PARAM_FIELD_INT_VECTORS == params->field_mask);
}

/** Returns the length of a part of `count` elements in the unit of the call. */
static inline size_t coll_ucg_part(const ucg_coll_params_t* params, const ompi_datatype_t* type,
                                   size_t count) {
    return coll_ucg_has_own_vectors(params) ? count : coll_ucg_packed_bytes(type, count);
}

/** Returns the length of an opened block in the unit of the call. */
static inline size_t coll_ucg_block_length(const ucg_coll_params_t* params,
                                           const coll_ucg_data_t* data, int index) {
    return coll_ucg_has_own_vectors(params) ? coll_ucg_count_at(data->counts, (size_t)index)
                                            : (size_t)data->bytes[index];
}

/** Says that a rank's own block has two lengths. Returns the error of the call. */
ucg_status_t coll_ucg_refuse_own_block(const coll_ucg_call_t* call, size_t sent, size_t received);

/** Checks that a rank's own block has one length, in bytes, on both sides of the call: the plan has
 *  that of one side, and memory is taken for that of the other. */
static inline ucg_status_t coll_ucg_check_own_block(const coll_ucg_call_t* call, size_t sent,
                                                    size_t received) {
    return OPAL_LIKELY(sent == received) ? UCG_OK : coll_ucg_refuse_own_block(call, sent, received);
}

/** Open the blocks that the call reads, or writes. REQUIRES: coll_ucg_choose_vectors(). */
ucg_status_t coll_ucg_open_send_blocks(coll_ucg_call_t* call, const coll_ucg_blocks_t* blocks);
ucg_status_t coll_ucg_open_receive_blocks(coll_ucg_call_t* call, const coll_ucg_blocks_t* blocks);

/** Sets the addresses of the blocks whose counts, places, types and vectors `data` has: in the
 *  user's memory, if they all lie there as messages carry them, else one after the other in
 *  `scratch`. */
ucg_status_t coll_ucg_lay_out_blocks(coll_ucg_data_t* data, coll_ucg_scratch_t* scratch);

/* ------------------------------------------------------------------ operators */

/** Continues coll_ucg_open_reduction() for another operator or datatype than the latest that libucg
 *  combines itself. */
ucg_status_t coll_ucg_open_other_reduction(coll_ucg_call_t* call, ompi_op_t* op,
                                           ompi_datatype_t* type);
/**
 * Fills the reduction fields of the parameters: libucg's own operator where it has one, else a
 * callback to Open MPI's or the user's. Messages carry packed elements, so layouts may differ
 * between ranks.
 */
static inline ucg_status_t coll_ucg_open_reduction(coll_ucg_call_t* call, ompi_op_t* op,
                                                   ompi_datatype_t* type) {
    const coll_ucg_known_reduction_t* known = &call->module->reduction;
    call->params.field_mask |= UCG_COLL_PARAM_FIELD_REDUCE;
    call->params.element_bytes = type->super.size;
    call->reduction.op = op;
    if (OPAL_LIKELY(op == known->op && type == known->type)) {
        call->params.datatype = known->native_type;
        call->params.op = known->native_op;
        return UCG_OK;
    }
    return coll_ucg_open_other_reduction(call, op, type);
}

/* ------------------------------------------------------------------ opening */

/** Open the call of each collective from its arguments, in any form. */
typedef ucg_status_t coll_ucg_open_t(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments);
#define COLL_UCG_DECLARE_OPEN(name) coll_ucg_open_t coll_ucg_open_##name;
COLL_UCG_FOR_EACH_BLOCKING(COLL_UCG_DECLARE_OPEN)
#undef COLL_UCG_DECLARE_OPEN

/** Opens a broadcast from the rank `root` of the call's group. */
ucg_status_t coll_ucg_open_bcast_from(coll_ucg_call_t* call, const coll_ucg_arguments_t* arguments,
                                      uint32_t root, bool is_root);

#endif
