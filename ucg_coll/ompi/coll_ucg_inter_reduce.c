/*
 * Inter-communicators: reductions. On one host few short vectors go across, and the receivers
 * combine them. Else a side combines the vectors of its processes, and then the result goes across.
 * Long vectors are combined in pieces, each by one process, which then go across at the same time.
 */
#include "coll_ucg_inter.h"

enum {
    kShort = 1 << 12,   /**< Most bytes of all vectors of a side that count as short. */
    kInPieces = 1 << 15 /**< From this number of bytes of a vector on a side combines pieces. */
};

/** Some of the elements of a result. */
typedef struct {
    int64_t begin;
    int64_t end;
} range_t;

static coll_ucg_count_t length_of(range_t range) {
    return (coll_ucg_count_t)(range.end - range.begin);
}

static range_t overlap(range_t a, range_t b) {
    const int64_t begin = a.begin > b.begin ? a.begin : b.begin;
    const int64_t end = a.end < b.end ? a.end : b.end;
    return (range_t){begin, end > begin ? end : begin};
}

/** Returns the share of process `i` of a side whose `size` processes share `elements` elements. */
static range_t share(int64_t elements, int size, int i) {
    return (range_t){elements * i / size, elements * (i + 1) / size};
}

/** A reduction and how it is done. */
typedef struct {
    enum coll_ucg_function function;
    mca_coll_ucg_module_t* module;
    coll_ucg_sides_t* sides;
    const void* input;
    int64_t elements;
    ompi_datatype_t* type;
    ompi_op_t* op;
    coll_ucg_workspace_t* memory; /**< What its calls give one another: of the sides, or: */
    coll_ucg_workspace_t own;     /**< Used if it is nested. */
    bool in_pieces; /**< Process i of a side has its share of the result, else all of it. */
    bool in_shares; /**< Process i of the other side gets its share, else all of it. */
} reduction_t;

/** `elements`: those of all processes' parts together. */
static reduction_t reduction_of(enum coll_ucg_function function, mca_coll_ucg_module_t* module,
                                const coll_ucg_arguments_t* arguments, int64_t elements,
                                bool in_shares) {
    return (reduction_t){
        .function = function,
        .module = module,
        .sides = module->sides,
        .input = arguments->sbuf,
        .elements = elements,
        .type = arguments->rdtype,
        .op = arguments->op,
        .in_pieces = coll_ucg_packed_bytes(arguments->rdtype, (size_t)elements) >= kInPieces,
        .in_shares = in_shares,
    };
}

/** Begins the use of a reduction's memory. To be called where the reduction stays. */
static void take_memory(reduction_t* reduction) {
    reduction->memory = coll_ucg_take_workspace(&reduction->sides->memory, &reduction->own);
}

static void leave_memory(reduction_t* reduction) {
    coll_ucg_leave_workspace(reduction->memory, &reduction->own);
}

static range_t all_of(const reduction_t* reduction) {
    return (range_t){0, reduction->elements};
}

/** Returns what process `i` of a side has of the result. */
static range_t held_by(const reduction_t* reduction, int size, int i) {
    return reduction->in_pieces ? share(reduction->elements, size, i) : all_of(reduction);
}

/** Returns what process `i` of a side receives of the other side's result. */
static range_t received_by(const reduction_t* reduction, int size, int i) {
    return reduction->in_shares ? share(reduction->elements, size, i) : all_of(reduction);
}

/** Returns what process `from` of `senders` gives process `to` of `receivers`. Where all senders
 *  have the whole result, each serves some of the receivers. */
static range_t sent(const reduction_t* reduction, int senders, int from, int receivers, int to) {
    const range_t range =
        overlap(held_by(reduction, senders, from), received_by(reduction, receivers, to));
    const bool serves = reduction->in_pieces || (int)((int64_t)to * senders / receivers) == from;
    return serves ? range : (range_t){range.begin, range.begin};
}

/* ------------------------------------------------------------------ memory */

/** Counts and displacements of the blocks of both directions. */
typedef struct {
    coll_ucg_count_t* counts;
    coll_ucg_displ_t* displs;
} vectors_t;

enum { kWordsOfBlock = 2 };

static vectors_t vectors_at(uint64_t* memory, int size) {
    return (vectors_t){(coll_ucg_count_t*)memory, (coll_ucg_displ_t*)(memory + size)};
}

/* ------------------------------------------------------------------ on a side */

static ucg_status_t reduce_whole(const reduction_t* reduction, coll_ucg_open_t* open,
                                 void* result) {
    const coll_ucg_arguments_t arguments = {
        .sbuf = reduction->input,
        .rbuf = result,
        .rcount = (coll_ucg_count_t)reduction->elements,
        .rdtype = reduction->type,
        .op = reduction->op,
    };
    coll_ucg_call_t call;
    coll_ucg_begin_blocking_in(&call, reduction->module, reduction->sides->side.group);
    return coll_ucg_run_opened(&call, open(&call, &arguments));
}

static ucg_status_t reduce_pieces(const reduction_t* reduction, void* result) {
    const int size = reduction->sides->local_size;
    coll_ucg_count_t* counts =
        coll_ucg_scratch_get(&reduction->memory->vectors, (size_t)size * sizeof *counts);
    coll_ucg_call_t call;
    if (NULL == counts) {
        return UCG_ERR_NO_MEMORY;
    }
    for (int i = 0; i < size; i++) {
        counts[i] = length_of(held_by(reduction, size, i));
    }
    coll_ucg_begin_blocking_in(&call, reduction->module, reduction->sides->side.group);
    const coll_ucg_arguments_t arguments = {
        .sbuf = reduction->input,
        .rbuf = result,
        .rcounts = coll_ucg_own_counts(counts),
        .rdtype = reduction->type,
        .op = reduction->op,
    };
    return coll_ucg_run_opened(&call, coll_ucg_open_reduce_scatter(&call, &arguments));
}

/** Combines the vectors of this side, by the collective that `open` opens if it is not done in
 *  pieces. *result_p: where this process has its part of the result. */
static ucg_status_t reduce_on_side(const reduction_t* reduction, coll_ucg_open_t* open,
                                   const void** result_p) {
    coll_ucg_sides_t* sides = reduction->sides;
    const int rank = ompi_comm_rank(reduction->module->comm);
    *result_p = reduction->input;
    if (1 == sides->local_size) {
        return UCG_OK;
    }
    const range_t held = held_by(reduction, sides->local_size, rank);
    void* result =
        coll_ucg_elements_in(&reduction->memory->send, reduction->type, (size_t)length_of(held));
    *result_p = result;
    if (NULL == result) {
        return UCG_ERR_NO_MEMORY;
    }
    return reduction->in_pieces ? reduce_pieces(reduction, result)
                                : reduce_whole(reduction, open, result);
}

/* ------------------------------------------------------------------ across */

/** The place of this process in a call across, and that of the others. */
typedef struct {
    ucg_group_h group;
    int first;             /**< First rank of the other side in the group. */
    int rank;              /**< This process among those of its side that take part. */
    int size;              /**< How many these are. */
    int others;            /**< How many of the other side take part. */
    int root;              /**< The call's root; 0: none. */
    bool on_several_hosts; /**< The group is. */
    bool sends;
    bool receives;
} place_t;

/** Are the operands few and short? All that take part decide alike. */
static bool is_short(const reduction_t* reduction) {
    return coll_ucg_are_few(reduction->sides, kShort,
                            coll_ucg_packed_bytes(reduction->type, (size_t)reduction->elements));
}

/** Takes memory for the vectors of both directions, each of `size` blocks. False: no memory. */
static bool take_vectors(const reduction_t* reduction, int size, vectors_t* out, vectors_t* in) {
    uint64_t* memory = coll_ucg_scratch_get(&reduction->memory->vectors,
                                            2 * kWordsOfBlock * (size_t)size * sizeof *memory);
    if (NULL == memory) {
        return false;
    }
    *out = vectors_at(memory, size);
    *in = vectors_at(memory + kWordsOfBlock * size, size);
    return true;
}

static coll_ucg_edge_blocks_t blocks_of(const reduction_t* reduction, const void* user,
                                        const vectors_t* vectors) {
    return (coll_ucg_edge_blocks_t){.user = user,
                                    .counts = coll_ucg_own_counts(vectors->counts),
                                    .displs = coll_ucg_own_displs(vectors->displs),
                                    .type = reduction->type};
}

/** Sends blocks along edges and receives others. */
static ucg_status_t move_blocks(const reduction_t* reduction, ucg_group_h group,
                                const coll_ucg_edges_t* edges, const coll_ucg_edge_blocks_t* input,
                                const coll_ucg_edge_blocks_t* output) {
    coll_ucg_call_t call;
    coll_ucg_begin_blocking_in(&call, reduction->module, group);
    return coll_ucg_run_opened(&call, coll_ucg_open_edges(&call, edges, input, output));
}

/** Sends what this process has of the result to those that receive it, and receives what is for
 *  this process. */
static ucg_status_t exchange(const reduction_t* reduction, const place_t* place, const void* result,
                             void* target) {
    coll_ucg_sides_t* sides = reduction->sides;
    const int others = place->others;
    vectors_t out;
    vectors_t in;
    if (!take_vectors(reduction, others, &out, &in)) {
        return UCG_ERR_NO_MEMORY;
    }
    const int64_t held = held_by(reduction, place->size, place->rank).begin;
    const int64_t received = received_by(reduction, place->size, place->rank).begin;
    for (int i = 0; i < others; i++) {
        const range_t to = sent(reduction, place->size, place->rank, others, i);
        const range_t from = sent(reduction, others, i, place->size, place->rank);
        out.counts[i] = length_of(to);
        out.displs[i] = (coll_ucg_displ_t)(to.begin - held);
        in.counts[i] = length_of(from);
        in.displs[i] = (coll_ucg_displ_t)(from.begin - received);
    }
    const coll_ucg_edges_t edges = coll_ucg_edges_across(
        sides, place->first, 0, place->sends ? others : 0, 0, place->receives ? others : 0);
    const coll_ucg_edge_blocks_t input = blocks_of(reduction, result, &out);
    const coll_ucg_edge_blocks_t output = blocks_of(reduction, target, &in);
    return move_blocks(reduction, place->group, &edges, &input, &output);
}

static place_t place_in_both(const reduction_t* reduction) {
    coll_ucg_sides_t* sides = reduction->sides;
    const ucg_group_h group = reduction->module->group;
    return (place_t){.group = group,
                     .on_several_hosts = coll_ucg_is_on_several_hosts(group, &sides->hosts),
                     .first = sides->remote_first,
                     .rank = ompi_comm_rank(reduction->module->comm),
                     .size = sides->local_size,
                     .others = sides->remote_size,
                     .sends = true,
                     .receives = true};
}

static place_t place_with_root(const reduction_t* reduction, coll_ucg_part_t* part, int root) {
    const coll_ucg_sides_t* sides = reduction->sides;
    place_t place = {.group = part->group,
                     .root = root,
                     .on_several_hosts = coll_ucg_is_on_several_hosts(part->group, &part->hosts)};
    if (MPI_ROOT == root) {
        place.first = 1;
        place.size = 1;
        place.others = sides->remote_size;
        place.receives = true;
    } else {
        place.rank = ompi_comm_rank(reduction->module->comm);
        place.size = sides->local_size;
        place.others = 1;
        place.sends = true;
    }
    return place;
}

/** Sends all operands of the other side to those that want the result; this process wants `part` of
 *  it. */
static ucg_status_t exchange_short(const reduction_t* reduction, const place_t* place, range_t part,
                                   void* target) {
    const coll_ucg_operands_t operands = {
        .input = reduction->input,
        .elements = (coll_ucg_count_t)reduction->elements,
        .type = reduction->type,
        .op = reduction->op,
        .first = place->first,
        .others = place->others,
        .sends = place->sends,
        .receives = place->receives,
        .begin = (coll_ucg_count_t)part.begin,
        .length = length_of(part),
        .target = target,
    };
    return coll_ucg_exchange_operands(reduction->module, place->group, reduction->function,
                                      place->root, &operands, &reduction->memory->right);
}

/* ------------------------------------------------------------------ reduce */

static ucg_status_t reduce(const reduction_t* reduction, void* target, int root) {
    const void* result = NULL;
    coll_ucg_part_t* part;
    ucg_status_t status = coll_ucg_enter_rooted(reduction->module, root, &part);
    if (UCG_OK != status) {
        return status;
    }
    const place_t place = place_with_root(reduction, part, root);
    /* Between hosts a root takes longer for one more message than its senders' side takes to
       combine. */
    if (!place.on_several_hosts && is_short(reduction)) {
        return exchange_short(reduction, &place, all_of(reduction), target);
    }
    if (MPI_ROOT != root) {
        status = reduce_on_side(reduction, coll_ucg_open_reduce, &result);
    }
    return UCG_OK == status ? exchange(reduction, &place, result, target) : status;
}

int mca_coll_ucg_inter_reduce(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                              struct ompi_datatype_t* dtype, struct ompi_op_t* op, int root,
                              struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_arguments_t arguments = {COLL_UCG_REDUCED, .root = root};
    ucg_status_t status = UCG_OK;
    /* Beside the root there is nothing to do, and MPI_Reduce() does not come here for no elements.
     */
    if (MPI_PROC_NULL != root && 0 != coll_ucg_packed_bytes(dtype, (size_t)count)) {
        reduction_t reduction =
            reduction_of(COLL_UCG_FN_reduce, ucg, &arguments, (int64_t)count, false);
        take_memory(&reduction);
        status = reduce(&reduction, rbuf, root);
        leave_memory(&reduction);
    }
    return coll_ucg_leave(ucg, COLL_UCG_FN_reduce, status, &arguments);
}

/* ------------------------------------------------------------------ allreduce */

/** Gathers the shares of the result on all processes of this side. */
static ucg_status_t gather_shares(const reduction_t* reduction, void* target) {
    coll_ucg_sides_t* sides = reduction->sides;
    const int size = sides->local_size;
    uint64_t* memory = coll_ucg_scratch_get(&reduction->memory->vectors,
                                            kWordsOfBlock * (size_t)size * sizeof *memory);
    if (NULL == memory) {
        return UCG_ERR_NO_MEMORY;
    }
    const vectors_t vectors = vectors_at(memory, size);
    for (int i = 0; i < size; i++) {
        const range_t range = share(reduction->elements, size, i);
        vectors.counts[i] = length_of(range);
        vectors.displs[i] = (coll_ucg_displ_t)range.begin;
    }
    const coll_ucg_arguments_t arguments = {
        .sbuf = MPI_IN_PLACE,
        .rbuf = target,
        .rcounts = coll_ucg_own_counts(vectors.counts),
        .rdispls = coll_ucg_own_displs(vectors.displs),
        .rdtype = reduction->type,
    };
    coll_ucg_call_t call;
    coll_ucg_begin_blocking_in(&call, reduction->module, sides->side.group);
    return coll_ucg_run_opened(&call, coll_ucg_open_allgatherv(&call, &arguments));
}

/** Runs an allreduce that is not short. Between hosts each piece goes across once, as a share for
 *  each process of the other side. */
static ucg_status_t allreduce_long(reduction_t* reduction, const place_t* place, void* target) {
    const void* result = NULL;
    const int rank = place->rank;
    void* mine = target;
    reduction->in_shares = reduction->in_pieces && place->on_several_hosts;
    if (reduction->in_shares) {
        mine = (char*)target + coll_ucg_extent(reduction->type) *
                                   share(reduction->elements, place->size, rank).begin;
    }
    ucg_status_t status = reduce_on_side(reduction, coll_ucg_open_allreduce, &result);
    if (UCG_OK == status) {
        status = exchange(reduction, place, result, mine);
    }
    return UCG_OK == status && reduction->in_shares && 1 < place->size
               ? gather_shares(reduction, target)
               : status;
}

static ucg_status_t allreduce(reduction_t* reduction, void* target) {
    const ucg_status_t status = coll_ucg_enter(reduction->module);
    if (UCG_OK != status) {
        return status;
    }
    const place_t place = place_in_both(reduction);
    return is_short(reduction) ? exchange_short(reduction, &place, all_of(reduction), target)
                               : allreduce_long(reduction, &place, target);
}

int mca_coll_ucg_inter_allreduce(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                 struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                 struct ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_arguments_t arguments = {COLL_UCG_REDUCED};
    ucg_status_t status = UCG_OK;
    if (0 != coll_ucg_packed_bytes(dtype, (size_t)count)) {
        reduction_t reduction =
            reduction_of(COLL_UCG_FN_allreduce, ucg, &arguments, (int64_t)count, false);
        take_memory(&reduction);
        status = allreduce(&reduction, rbuf);
        leave_memory(&reduction);
    }
    return coll_ucg_leave(ucg, COLL_UCG_FN_allreduce, status, &arguments);
}

/* ------------------------------------------------------------------ reduce_scatter */

/** Returns what a process of this side wants of the result, which the other side does not know. */
static range_t wanted_by(coll_ucg_counts_t counts, int rank) {
    range_t range = {0, 0};
    for (size_t i = 0; i < (size_t)rank; i++) {
        range.begin += (int64_t)coll_ucg_count_at(counts, i);
    }
    range.end = range.begin + (int64_t)coll_ucg_count_at(counts, (size_t)rank);
    return range;
}

/** Does each process of this side want its share? */
static bool are_shares(coll_ucg_counts_t counts, int64_t elements, int size) {
    bool same = true;
    for (int i = 0; i < size && same; i++) {
        same = coll_ucg_count_at(counts, (size_t)i) == (size_t)length_of(share(elements, size, i));
    }
    return same;
}

/** Sends elements from the processes that have them as shares to those of this side that want
 *  them. */
static ucg_status_t deal_out(const reduction_t* reduction, coll_ucg_counts_t counts,
                             const void* shares, void* target) {
    coll_ucg_sides_t* sides = reduction->sides;
    const int rank = ompi_comm_rank(reduction->module->comm);
    const int size = sides->local_size;
    vectors_t out;
    vectors_t in;
    if (!take_vectors(reduction, size, &out, &in)) {
        return UCG_ERR_NO_MEMORY;
    }
    const range_t mine = share(reduction->elements, size, rank);
    const range_t wanted = wanted_by(counts, rank);
    range_t theirs = {0, 0};
    for (int i = 0; i < size; i++) {
        theirs = (range_t){theirs.end, theirs.end + (int64_t)coll_ucg_count_at(counts, (size_t)i)};
        const range_t to = overlap(mine, theirs);
        const range_t from = overlap(share(reduction->elements, size, i), wanted);
        out.counts[i] = length_of(to);
        out.displs[i] = (coll_ucg_displ_t)(to.begin - mine.begin);
        in.counts[i] = length_of(from);
        in.displs[i] = (coll_ucg_displ_t)(from.begin - wanted.begin);
    }
    const coll_ucg_edges_t edges = coll_ucg_edges_across(sides, 0, 0, size, 0, size);
    const coll_ucg_edge_blocks_t input = blocks_of(reduction, shares, &out);
    const coll_ucg_edge_blocks_t output = blocks_of(reduction, target, &in);
    return move_blocks(reduction, sides->side.group, &edges, &input, &output);
}

/** Runs a reduce_scatter that is not short. `counts`: none, if each process of this side wants its
 *  share. */
static ucg_status_t reduce_scatter_long(const reduction_t* reduction, const place_t* place,
                                        coll_ucg_counts_t counts, void* target) {
    const range_t mine = share(reduction->elements, place->size, place->rank);
    const void* result = NULL;
    void* shares = target;
    if (coll_ucg_has_counts(counts)) {
        shares = coll_ucg_elements_in(&reduction->memory->receive, reduction->type,
                                      (size_t)length_of(mine));
        if (NULL == shares) {
            return UCG_ERR_NO_MEMORY;
        }
    }
    ucg_status_t status = reduce_on_side(reduction, coll_ucg_open_allreduce, &result);
    if (UCG_OK == status) {
        status = exchange(reduction, place, result, shares);
    }
    return UCG_OK == status && coll_ucg_has_counts(counts)
               ? deal_out(reduction, counts, shares, target)
               : status;
}

static ucg_status_t reduce_scatter(const reduction_t* reduction, coll_ucg_counts_t counts,
                                   void* target) {
    const ucg_status_t status = coll_ucg_enter(reduction->module);
    if (UCG_OK != status) {
        return status;
    }
    const place_t place = place_in_both(reduction);
    if (is_short(reduction)) {
        const range_t part = coll_ucg_has_counts(counts)
                                 ? wanted_by(counts, place.rank)
                                 : share(reduction->elements, place.size, place.rank);
        return exchange_short(reduction, &place, part, target);
    }
    return reduce_scatter_long(reduction, &place, counts, target);
}

/** Runs a reduction whose result is scattered. `elements`: those of all blocks together, equally
 *  many on both sides; if they are more than one count can tell, the previous module serves the
 *  call. `counts`: none, if each process of this side wants its share. */
static ucg_status_t scatter_reduced(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                                    const coll_ucg_arguments_t* arguments, int64_t elements,
                                    coll_ucg_counts_t counts) {
    if (!coll_ucg_is_countable(elements)) {
        return UCG_ERR_UNSUPPORTED;
    }
    if (0 == coll_ucg_packed_bytes(arguments->rdtype, (size_t)elements)) {
        return UCG_OK;
    }
    reduction_t reduction = reduction_of(function, module, arguments, elements, true);
    take_memory(&reduction);
    const ucg_status_t status = reduce_scatter(&reduction, counts, arguments->rbuf);
    leave_memory(&reduction);
    return status;
}

int mca_coll_ucg_inter_reduce_scatter(const void* sbuf, void* rbuf, coll_ucg_counts_t rcounts,
                                      struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                      struct ompi_communicator_t* comm,
                                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_arguments_t arguments = {
        .sbuf = sbuf, .rbuf = rbuf, .rcounts = rcounts, .rdtype = dtype, .op = op};
    const int size = ompi_comm_size(comm);
    int64_t elements = 0;
    for (int i = 0; i < size; i++) {
        elements += (int64_t)coll_ucg_count_at(rcounts, (size_t)i);
    }
    const coll_ucg_counts_t counts =
        are_shares(rcounts, elements, size) ? COLL_UCG_NO_COUNTS : rcounts;
    const ucg_status_t status =
        scatter_reduced(ucg, COLL_UCG_FN_reduce_scatter, &arguments, elements, counts);
    return coll_ucg_leave(ucg, COLL_UCG_FN_reduce_scatter, status, &arguments);
}

int mca_coll_ucg_inter_reduce_scatter_block(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                            struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                            struct ompi_communicator_t* comm,
                                            mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_arguments_t arguments = {COLL_UCG_REDUCED};
    const int64_t elements = (int64_t)count * ompi_comm_size(comm);
    const ucg_status_t status = scatter_reduced(ucg, COLL_UCG_FN_reduce_scatter_block, &arguments,
                                                elements, COLL_UCG_NO_COUNTS);
    return coll_ucg_leave(ucg, COLL_UCG_FN_reduce_scatter_block, status, &arguments);
}
