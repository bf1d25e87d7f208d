/*
 * Inter-communicators on several hosts: allgathers in which each block goes across once. The
 * processes of a side send theirs evenly to those of the other side, in order, and the processes
 * there pass them on to one another.
 */
#include "coll_ucg_inter.h"

/** Returns the first of `senders` that sends to process `to` of `receivers`. */
static int first_sender(int senders, int receivers, int to) {
    return (int)(((int64_t)to * senders + receivers - 1) / receivers);
}

/** Returns which of `receivers` receives from process `from` of `senders`. */
static int receiver_of(int senders, int receivers, int from) {
    return (int)((int64_t)from * receivers / senders);
}

/** The blocks of the other side as messages carry them, one after the other. */
typedef struct {
    coll_ucg_workspace_t* memory;
    const coll_ucg_edge_blocks_t* user;
    int count;
    uint64_t* bytes;  /**< Length of each block, */
    int64_t* offsets; /**< and where it begins. */
    uint64_t* parts;  /**< For each process of this side: bytes of the blocks that it receives, */
    int64_t* begins;
    unsigned char* base;
    bool direct; /**< The blocks lie so in the user's memory. */
} packed_t;

static size_t count_of(const coll_ucg_edge_blocks_t* blocks, size_t i) {
    return coll_ucg_has_counts(blocks->counts) ? coll_ucg_count_at(blocks->counts, i)
                                               : (size_t)blocks->count;
}

static ptrdiff_t place_of(const coll_ucg_edge_blocks_t* blocks, size_t i) {
    const ptrdiff_t extents = coll_ucg_has_displs(blocks->displs)
                                  ? coll_ucg_displ_at(blocks->displs, i)
                                  : (ptrdiff_t)(i * (size_t)blocks->count);
    return extents * coll_ucg_extent(blocks->type);
}

/** Computes the blocks' lengths and offsets. Returns the length of all in bytes. */
static uint64_t lay_out(packed_t* packed) {
    uint64_t sum = 0;
    packed->direct = coll_ucg_is_gapless(packed->user->type);
    for (size_t i = 0; i < (size_t)packed->count; i++) {
        packed->bytes[i] = coll_ucg_packed_bytes(packed->user->type, count_of(packed->user, i));
        packed->offsets[i] = (int64_t)sum;
        packed->direct = packed->direct &&
                         (0 == packed->bytes[i] || place_of(packed->user, i) == (ptrdiff_t)sum);
        sum += packed->bytes[i];
    }
    return sum;
}

/** Computes the part of the blocks that each process of this side receives. */
static void add_up_parts(packed_t* packed, int size, uint64_t sum) {
    for (int i = 0; i < size; i++) {
        const int first = first_sender(packed->count, size, i);
        const int last = first_sender(packed->count, size, i + 1);
        const uint64_t begin = first < packed->count ? (uint64_t)packed->offsets[first] : sum;
        const uint64_t end = last < packed->count ? (uint64_t)packed->offsets[last] : sum;
        packed->parts[i] = end - begin;
        packed->begins[i] = (int64_t)begin;
    }
}

static ucg_status_t open_packed(packed_t* packed, const coll_ucg_sides_t* sides) {
    const size_t others = (size_t)sides->remote_size;
    const size_t size = (size_t)sides->local_size;
    packed->bytes =
        coll_ucg_scratch_get(&packed->memory->vectors, 2 * (others + size) * sizeof *packed->bytes);
    if (NULL == packed->bytes) {
        return UCG_ERR_NO_MEMORY;
    }
    packed->offsets = (int64_t*)packed->bytes + others;
    packed->parts = (uint64_t*)packed->offsets + others;
    packed->begins = (int64_t*)packed->parts + size;
    const uint64_t sum = lay_out(packed);
    add_up_parts(packed, sides->local_size, sum);
    packed->base = packed->direct
                       ? coll_ucg_at(packed->user->user, packed->user->type->super.true_lb)
                       : coll_ucg_scratch_get(&packed->memory->receive, sum);
    return NULL != packed->base || 0 == sum ? UCG_OK : UCG_ERR_NO_MEMORY;
}

/** Sends this process's block to one process of the other side, and receives those that come
 *  here. */
static ucg_status_t send_across(mca_coll_ucg_module_t* module, const coll_ucg_edge_blocks_t* input,
                                const packed_t* packed) {
    const coll_ucg_sides_t* sides = module->sides;
    const int rank = ompi_comm_rank(module->comm);
    const int first = first_sender(sides->remote_size, sides->local_size, rank);
    const int last = first_sender(sides->remote_size, sides->local_size, rank + 1);
    const coll_ucg_edge_blocks_t none = {.user = NULL};
    const coll_ucg_edges_t out =
        coll_ucg_edges_across(sides, sides->remote_first,
                              receiver_of(sides->local_size, sides->remote_size, rank), 1, 0, 0);
    coll_ucg_edges_t both = out;
    coll_ucg_call_t call;
    coll_ucg_begin_blocking(&call, module);
    const ucg_status_t status = coll_ucg_open_edges(&call, &out, input, &none);
    both.ends.sources = sides->numbers + sides->remote_first + first;
    both.ends.source_count = (uint32_t)(last - first);
    call.params.neighbors = &both.ends;
    call.params.recv_buffer = packed->base;
    call.params.recv_counts = packed->bytes + first;
    call.params.recv_displs = packed->offsets + first;
    return coll_ucg_run_opened(&call, status);
}

/** Passes what each process has received on to the others of its side. */
static ucg_status_t spread(mca_coll_ucg_module_t* module, const packed_t* packed) {
    coll_ucg_call_t call;
    coll_ucg_begin_blocking_in(&call, module, module->sides->side.group);
    call.params = (ucg_coll_params_t){
        .field_mask = UCG_COLL_PARAM_FIELD_VECTORS,
        .type = UCG_COLL_ALLGATHERV,
        .flags = UCG_COLL_FLAG_IN_PLACE,
        .element_bytes = 1,
        .recv_buffer = packed->base,
        .recv_counts = packed->parts,
        .recv_displs = packed->begins,
    };
    return coll_ucg_run_opened(&call, UCG_OK);
}

static ucg_status_t unpack(const packed_t* packed) {
    ucg_status_t status = UCG_OK;
    for (size_t i = 0; i < (size_t)packed->count && UCG_OK == status && !packed->direct; i++) {
        if (0 != packed->bytes[i]) {
            status = coll_ucg_unpack(coll_ucg_at(packed->user->user, place_of(packed->user, i)),
                                     count_of(packed->user, i), packed->user->type,
                                     packed->base + packed->offsets[i]);
        }
    }
    return status;
}

ucg_status_t coll_ucg_spread_across(mca_coll_ucg_module_t* module,
                                    const coll_ucg_edge_blocks_t* input,
                                    const coll_ucg_edge_blocks_t* output) {
    coll_ucg_sides_t* sides = module->sides;
    coll_ucg_workspace_t own;
    coll_ucg_workspace_t* const memory = coll_ucg_take_workspace(&sides->memory, &own);
    packed_t packed = {.memory = memory, .user = output, .count = sides->remote_size};
    ucg_status_t status = open_packed(&packed, sides);
    if (UCG_OK == status) {
        status = send_across(module, input, &packed);
    }
    if (UCG_OK == status && 1 < sides->local_size) {
        status = spread(module, &packed);
    }
    if (UCG_OK == status) {
        status = unpack(&packed);
    }
    coll_ucg_leave_workspace(memory, &own);
    return status;
}
