/*
 * Opens calls with blocks along edges: MPI's arguments become vectors in bytes, with an entry for
 * each edge.
 */
#include "coll_ucg_edges.h"

/** Vectors with an entry for each edge of one side, in the workspace's memory. */
typedef struct {
    uint64_t* bytes;
    int64_t* offsets;
    ptrdiff_t* places;
    struct ompi_datatype_t** types;
    coll_ucg_count_t* counts;
} vectors_t;

enum { kVectorCount = 5 };
_Static_assert(sizeof(ptrdiff_t) == sizeof(uint64_t) && sizeof(void*) == sizeof(uint64_t),
               "every entry of a vector has eight bytes of its own");

static vectors_t vectors_at(uint64_t* memory, size_t count) {
    return (vectors_t){memory, (int64_t*)(memory + count), (ptrdiff_t*)(memory + 2 * count),
                       (struct ompi_datatype_t**)(memory + 3 * count),
                       (coll_ucg_count_t*)(memory + 4 * count)};
}

/** Begins a call along these edges, with room for the vectors of both sides. */
static ucg_status_t begin(coll_ucg_call_t* call, const ucg_neighbors_t* ends, vectors_t* send,
                          vectors_t* receive) {
    const size_t out = ends->destination_count;
    const size_t in = ends->source_count;
    uint64_t* memory =
        coll_ucg_scratch_get(&call->workspace->vectors, kVectorCount * (out + in) * sizeof *memory);
    if (NULL == memory) {
        return UCG_ERR_NO_MEMORY;
    }
    *send = vectors_at(memory, out);
    *receive = vectors_at(memory + kVectorCount * out, in);
    call->params = (ucg_coll_params_t){
        .field_mask = UCG_COLL_PARAM_FIELD_VECTORS | UCG_COLL_PARAM_FIELD_NEIGHBORS,
        .type = UCG_COLL_NEIGHBOR_ALLTOALLV,
        .element_bytes = 1,
        .neighbors = ends,
        .send_counts = send->bytes,
        .send_displs = send->offsets,
        .recv_counts = receive->bytes,
        .recv_displs = receive->offsets,
    };
    return UCG_OK;
}

static ptrdiff_t place_of(const coll_ucg_edge_blocks_t* blocks, size_t block) {
    if (coll_ucg_has_places(blocks->places)) {
        return coll_ucg_place_at(blocks->places, block);
    }
    if (0 != blocks->stride) {
        return (ptrdiff_t)block * blocks->stride;
    }
    const ptrdiff_t unit = NULL != blocks->types ? 1 : coll_ucg_extent(blocks->type);
    return unit * (coll_ucg_has_displs(blocks->displs)
                       ? coll_ucg_displ_at(blocks->displs, block)
                       : (ptrdiff_t)(block * (size_t)blocks->count));
}

/** Opens one side of the call: `indexes` says which block belongs to each of its edges. */
static ucg_status_t open_side(coll_ucg_data_t* data, coll_ucg_scratch_t* scratch,
                              const coll_ucg_edge_blocks_t* blocks, const vectors_t* vectors,
                              const int* indexes, uint32_t edges) {
    for (uint32_t i = 0; i < edges; i++) {
        const size_t block = (size_t)indexes[i];
        vectors->counts[i] = coll_ucg_has_counts(blocks->counts)
                                 ? (coll_ucg_count_t)coll_ucg_count_at(blocks->counts, block)
                                 : blocks->count;
        vectors->places[i] = place_of(blocks, block);
        if (NULL != blocks->types) {
            vectors->types[i] = blocks->types[block];
        }
    }
    data->user = (void*)blocks->user;
    data->in_blocks = true;
    data->type = blocks->type;
    data->types = NULL != blocks->types ? vectors->types : NULL;
    data->counts = coll_ucg_own_counts(vectors->counts);
    data->displs = COLL_UCG_NO_DISPLS;
    data->places = vectors->places;
    data->bytes = vectors->bytes;
    data->offsets = vectors->offsets;
    data->size = (int)edges;
    data->load_first = 0;
    return coll_ucg_lay_out_blocks(data, scratch);
}

static ucg_status_t open_output(coll_ucg_call_t* call, const coll_ucg_edges_t* edges,
                                const coll_ucg_edge_blocks_t* blocks, const vectors_t* vectors) {
    const ucg_status_t status = open_side(&call->output, &call->workspace->receive, blocks, vectors,
                                          edges->source_blocks, edges->ends.source_count);
    call->output.load_count = 0;
    call->output.store_count = edges->ends.source_count;
    call->params.recv_buffer = call->output.packed;
    return status;
}

static ucg_status_t open_blocks(coll_ucg_call_t* call, const coll_ucg_edges_t* edges,
                                const coll_ucg_edge_blocks_t* blocks, const vectors_t* vectors) {
    const ucg_status_t status = open_side(&call->input, &call->workspace->send, blocks, vectors,
                                          edges->destination_blocks, edges->ends.destination_count);
    call->input.load_count = edges->ends.destination_count;
    call->params.send_buffer = call->input.packed;
    return status;
}

/** Opens the input if one block goes along all edges; it is packed once. */
static ucg_status_t open_one(coll_ucg_call_t* call, const coll_ucg_edges_t* edges,
                             const coll_ucg_edge_blocks_t* block, const vectors_t* vectors) {
    const size_t count = 0 == edges->ends.destination_count ? 0 : (size_t)block->count;
    for (uint32_t i = 0; i < edges->ends.destination_count; i++) {
        vectors->bytes[i] = coll_ucg_packed_bytes(block->type, count);
        vectors->offsets[i] = 0;
    }
    return coll_ucg_open_send(call, block->user, count, block->type);
}

ucg_status_t coll_ucg_open_edges(coll_ucg_call_t* call, const coll_ucg_edges_t* edges,
                                 const coll_ucg_edge_blocks_t* input,
                                 const coll_ucg_edge_blocks_t* output) {
    vectors_t send;
    vectors_t receive;
    ucg_status_t status = begin(call, &edges->ends, &send, &receive);
    if (UCG_OK == status) {
        status = input->is_one ? open_one(call, edges, input, &send)
                               : open_blocks(call, edges, input, &send);
    }
    return UCG_OK == status ? open_output(call, edges, output, &receive) : status;
}
