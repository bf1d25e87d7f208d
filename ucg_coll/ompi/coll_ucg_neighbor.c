/*
 * The neighbourhood collectives. To libucg all five are one: blocks of bytes along edges.
 */
#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"

/** The blocks of one side, as MPI's arguments describe them. */
typedef struct {
    const void* user;
    int count;                            /**< Of each block; they lie one behind the other. */
    const int* counts;                    /**< Of each, or NULL. */
    const int* displs;                    /**< With `counts`, in extents of `type`. */
    const MPI_Aint* places;               /**< With `counts`, in bytes, instead of `displs`. */
    const ompi_datatype_t* type;          /**< Of all blocks, or NULL. */
    struct ompi_datatype_t* const* types; /**< Of each block, or NULL. */
} blocks_t;

/** Vectors with an entry for each edge of one side, in the workspace's. */
typedef struct {
    uint64_t* bytes;
    int64_t* offsets;
    ptrdiff_t* places;
    struct ompi_datatype_t** types;
    int* counts;
} vectors_t;

enum { kVectorCount = 5 };
_Static_assert(sizeof(ptrdiff_t) == sizeof(uint64_t) && sizeof(void*) == sizeof(uint64_t),
               "every entry of a vector has eight bytes of its own");

static vectors_t vectors_at(uint64_t* memory, size_t count) {
    return (vectors_t){memory, (int64_t*)(memory + count), (ptrdiff_t*)(memory + 2 * count),
                       (struct ompi_datatype_t**)(memory + 3 * count), (int*)(memory + 4 * count)};
}

/** Begins a call along the edges of its communicator, with room for the vectors of both sides. */
static ucg_status_t begin(coll_ucg_call_t* call, vectors_t* send, vectors_t* receive) {
    const ucg_status_t status = coll_ucg_find_edges(call->module);
    if (UCG_OK != status) {
        return status;
    }
    const ucg_neighbors_t* ends = &call->module->edges.ends;
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

static ptrdiff_t place_of(const blocks_t* blocks, int block) {
    if (NULL != blocks->places) {
        return blocks->places[block];
    }
    const ptrdiff_t extent = coll_ucg_extent(blocks->type);
    return extent * (NULL != blocks->displs ? (ptrdiff_t)blocks->displs[block]
                                            : (ptrdiff_t)block * blocks->count);
}

/** Opens one side: `indexes` says which block each of its edges has. */
static ucg_status_t open_side(coll_ucg_data_t* data, coll_ucg_scratch_t* scratch,
                              const blocks_t* blocks, const vectors_t* vectors, const int* indexes,
                              uint32_t edges) {
    for (uint32_t i = 0; i < edges; i++) {
        const int block = indexes[i];
        vectors->counts[i] = NULL != blocks->counts ? blocks->counts[block] : blocks->count;
        vectors->places[i] = place_of(blocks, block);
        if (NULL != blocks->types) {
            vectors->types[i] = blocks->types[block];
        }
    }
    data->user = (void*)blocks->user;
    data->in_blocks = true;
    data->type = blocks->type;
    data->types = NULL != blocks->types ? vectors->types : NULL;
    data->counts = vectors->counts;
    data->displs = NULL;
    data->places = vectors->places;
    data->bytes = vectors->bytes;
    data->offsets = vectors->offsets;
    data->size = (int)edges;
    data->load_first = 0;
    return coll_ucg_lay_out_blocks(data, scratch);
}

static ucg_status_t open_output(coll_ucg_call_t* call, const blocks_t* blocks,
                                const vectors_t* vectors) {
    const coll_ucg_edges_t* edges = &call->module->edges;
    const ucg_status_t status = open_side(&call->output, &call->workspace->receive, blocks, vectors,
                                          edges->source_blocks, edges->ends.source_count);
    call->output.load_count = 0;
    call->output.store_count = edges->ends.source_count;
    call->params.recv_buffer = call->output.packed;
    return status;
}

static ucg_status_t open_input(coll_ucg_call_t* call, const blocks_t* blocks,
                               const vectors_t* vectors) {
    const coll_ucg_edges_t* edges = &call->module->edges;
    const ucg_status_t status = open_side(&call->input, &call->workspace->send, blocks, vectors,
                                          edges->destination_blocks, edges->ends.destination_count);
    call->input.load_count = edges->ends.destination_count;
    call->params.send_buffer = call->input.packed;
    return status;
}

/** The one block of an allgather, which goes along all edges. */
static void repeat_block(const coll_ucg_call_t* call, const vectors_t* vectors, size_t bytes) {
    for (uint32_t i = 0; i < call->module->edges.ends.destination_count; i++) {
        vectors->bytes[i] = bytes;
        vectors->offsets[i] = 0;
    }
}

static ucg_status_t open_allgather(coll_ucg_call_t* call, const void* sbuf, int scount,
                                   const ompi_datatype_t* stype, const blocks_t* output) {
    vectors_t send;
    vectors_t receive;
    ucg_status_t status = begin(call, &send, &receive);
    if (UCG_OK != status) {
        return status;
    }
    repeat_block(call, &send, coll_ucg_packed_bytes(stype, (size_t)scount));
    status = coll_ucg_open_send(call, sbuf, (size_t)scount, stype);
    return UCG_OK == status ? open_output(call, output, &receive) : status;
}

static ucg_status_t open_alltoall(coll_ucg_call_t* call, const blocks_t* input,
                                  const blocks_t* output) {
    vectors_t send;
    vectors_t receive;
    ucg_status_t status = begin(call, &send, &receive);
    if (UCG_OK == status) {
        status = open_input(call, input, &send);
    }
    return UCG_OK == status ? open_output(call, output, &receive) : status;
}

/* ------------------------------------------------------------------ the functions */

/** The blocks of the arguments: equal ones, of one type, and of types of their own. */
#define INPUT (&(blocks_t){.user = sbuf, .count = scount, .type = sdtype})
#define OUTPUT (&(blocks_t){.user = rbuf, .count = rcount, .type = rdtype})
#define V_INPUT (&(blocks_t){.user = sbuf, .counts = scounts, .displs = sdispls, .type = sdtype})
#define V_OUTPUT (&(blocks_t){.user = rbuf, .counts = rcounts, .displs = rdispls, .type = rdtype})
#define W_INPUT (&(blocks_t){.user = sbuf, .counts = scounts, .places = sdispls, .types = sdtypes})
#define W_OUTPUT (&(blocks_t){.user = rbuf, .counts = rcounts, .places = rdispls, .types = rdtypes})

/** Vectors with an entry for each block of a side, none before the first call of a communicator. */
#define SENT(vector) COLL_UCG_VECTOR(vector, ucg->edges.sent_blocks)
#define RECEIVED(vector) COLL_UCG_VECTOR(vector, ucg->edges.received_blocks)

static COLL_UCG_APART int allgather_anew(const void* sbuf, int scount,
                                         struct ompi_datatype_t* sdtype, void* rbuf, int rcount,
                                         struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm,
                                         mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_opened(&call, open_allgather(&call, sbuf, scount, sdtype, OUTPUT));
        if (scount == rcount && sdtype == rdtype) {
            const coll_ucg_latest_t latest = {.type = rdtype, .count = rcount};
            coll_ucg_remember_call(&call, COLL_UCG_FN_neighbor_allgather, &latest, status);
        }
    }
    COLL_UCG_LEAVE(ucg, neighbor_allgather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                   comm);
}

int mca_coll_ucg_neighbor_allgather(const void* sbuf, int scount, struct ompi_datatype_t* sdtype,
                                    void* rbuf, int rcount, struct ompi_datatype_t* rdtype,
                                    struct ompi_communicator_t* comm,
                                    mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    int result;
    if (scount == rcount && sdtype == rdtype &&
        coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_neighbor_allgather], rdtype, NULL, rcount,
                         false) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_allgather, sbuf, rbuf, &result)) {
        return result;
    }
    return allgather_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
}

int mca_coll_ucg_ineighbor_allgather(const void* sbuf, int scount, struct ompi_datatype_t* sdtype,
                                     void* rbuf, int rcount, struct ompi_datatype_t* rdtype,
                                     struct ompi_communicator_t* comm, ompi_request_t** request,
                                     mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_start_call(
            mine, open_allgather(&mine->call, sbuf, scount, sdtype, OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, ineighbor_allgather, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                   comm, request);
}

int mca_coll_ucg_neighbor_allgather_init(const void* sbuf, int scount,
                                         struct ompi_datatype_t* sdtype, void* rbuf, int rcount,
                                         struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                         ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine, open_allgather(&mine->call, sbuf, scount, sdtype, OUTPUT),
                                    request);
    }
    COLL_UCG_LEAVE(ucg, neighbor_allgather_init, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                   comm, info, request);
}

static COLL_UCG_APART int
allgatherv_anew(const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf,
                const int* rcounts, const int* rdispls, struct ompi_datatype_t* rdtype,
                struct ompi_communicator_t* comm, mca_coll_base_module_t* module,
                const coll_ucg_latest_t* arguments) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_opened(&call, open_allgather(&call, sbuf, scount, sdtype, V_OUTPUT));
        if (NULL != arguments) {
            coll_ucg_remember_call(&call, COLL_UCG_FN_neighbor_allgatherv, arguments, status);
        }
    }
    COLL_UCG_LEAVE(ucg, neighbor_allgatherv, status, sbuf, scount, sdtype, rbuf, rcounts, rdispls,
                   rdtype, comm);
}

int mca_coll_ucg_neighbor_allgatherv(const void* sbuf, int scount, struct ompi_datatype_t* sdtype,
                                     void* rbuf, const int* rcounts, const int* rdispls,
                                     struct ompi_datatype_t* rdtype,
                                     struct ompi_communicator_t* comm,
                                     mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_vector_t vectors[] = {RECEIVED(rcounts), RECEIVED(rdispls)};
    const coll_ucg_latest_t call = {
        .type = rdtype, .count = scount, .vector_count = 2, .vectors = vectors};
    const bool alike = sdtype == rdtype;
    int result;
    if (alike && coll_ucg_repeats_described(ucg, COLL_UCG_FN_neighbor_allgatherv, &call) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_allgatherv, sbuf, rbuf, &result)) {
        return result;
    }
    return allgatherv_anew(sbuf, scount, sdtype, rbuf, rcounts, rdispls, rdtype, comm, module,
                           alike ? &call : NULL);
}

int mca_coll_ucg_ineighbor_allgatherv(const void* sbuf, int scount, struct ompi_datatype_t* sdtype,
                                      void* rbuf, const int* rcounts, const int* rdispls,
                                      struct ompi_datatype_t* rdtype,
                                      struct ompi_communicator_t* comm, ompi_request_t** request,
                                      mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_start_call(
            mine, open_allgather(&mine->call, sbuf, scount, sdtype, V_OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, ineighbor_allgatherv, status, sbuf, scount, sdtype, rbuf, rcounts, rdispls,
                   rdtype, comm, request);
}

int mca_coll_ucg_neighbor_allgatherv_init(
    const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf, const int* rcounts,
    const int* rdispls, struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
    struct ompi_info_t* info, ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(
            mine, open_allgather(&mine->call, sbuf, scount, sdtype, V_OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, neighbor_allgatherv_init, status, sbuf, scount, sdtype, rbuf, rcounts,
                   rdispls, rdtype, comm, info, request);
}

static COLL_UCG_APART int alltoall_anew(const void* sbuf, int scount,
                                        struct ompi_datatype_t* sdtype, void* rbuf, int rcount,
                                        struct ompi_datatype_t* rdtype,
                                        struct ompi_communicator_t* comm,
                                        mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_opened(&call, open_alltoall(&call, INPUT, OUTPUT));
        if (scount == rcount && sdtype == rdtype) {
            const coll_ucg_latest_t latest = {.type = rdtype, .count = rcount};
            coll_ucg_remember_call(&call, COLL_UCG_FN_neighbor_alltoall, &latest, status);
        }
    }
    COLL_UCG_LEAVE(ucg, neighbor_alltoall, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                   comm);
}

int mca_coll_ucg_neighbor_alltoall(const void* sbuf, int scount, struct ompi_datatype_t* sdtype,
                                   void* rbuf, int rcount, struct ompi_datatype_t* rdtype,
                                   struct ompi_communicator_t* comm,
                                   mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    int result;
    if (scount == rcount && sdtype == rdtype &&
        coll_ucg_repeats(&ucg->latest[COLL_UCG_FN_neighbor_alltoall], rdtype, NULL, rcount,
                         false) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_alltoall, sbuf, rbuf, &result)) {
        return result;
    }
    return alltoall_anew(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
}

int mca_coll_ucg_ineighbor_alltoall(const void* sbuf, int scount, struct ompi_datatype_t* sdtype,
                                    void* rbuf, int rcount, struct ompi_datatype_t* rdtype,
                                    struct ompi_communicator_t* comm, ompi_request_t** request,
                                    mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_start_call(mine, open_alltoall(&mine->call, INPUT, OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, ineighbor_alltoall, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                   comm, request);
}

int mca_coll_ucg_neighbor_alltoall_init(const void* sbuf, int scount,
                                        struct ompi_datatype_t* sdtype, void* rbuf, int rcount,
                                        struct ompi_datatype_t* rdtype,
                                        struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                        ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine, open_alltoall(&mine->call, INPUT, OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, neighbor_alltoall_init, status, sbuf, scount, sdtype, rbuf, rcount, rdtype,
                   comm, info, request);
}

static COLL_UCG_APART int
alltoallv_anew(const void* sbuf, const int* scounts, const int* sdispls,
               struct ompi_datatype_t* sdtype, void* rbuf, const int* rcounts, const int* rdispls,
               struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
               mca_coll_base_module_t* module, const coll_ucg_latest_t* arguments) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_opened(&call, open_alltoall(&call, V_INPUT, V_OUTPUT));
        if (NULL != arguments) {
            coll_ucg_remember_call(&call, COLL_UCG_FN_neighbor_alltoallv, arguments, status);
        }
    }
    COLL_UCG_LEAVE(ucg, neighbor_alltoallv, status, sbuf, scounts, sdispls, sdtype, rbuf, rcounts,
                   rdispls, rdtype, comm);
}

int mca_coll_ucg_neighbor_alltoallv(const void* sbuf, const int* scounts, const int* sdispls,
                                    struct ompi_datatype_t* sdtype, void* rbuf, const int* rcounts,
                                    const int* rdispls, struct ompi_datatype_t* rdtype,
                                    struct ompi_communicator_t* comm,
                                    mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_vector_t vectors[] = {SENT(scounts), SENT(sdispls), RECEIVED(rcounts),
                                         RECEIVED(rdispls)};
    const coll_ucg_latest_t call = {.type = rdtype, .vector_count = 4, .vectors = vectors};
    const bool alike = sdtype == rdtype;
    int result;
    if (alike && coll_ucg_repeats_described(ucg, COLL_UCG_FN_neighbor_alltoallv, &call) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_alltoallv, sbuf, rbuf, &result)) {
        return result;
    }
    return alltoallv_anew(sbuf, scounts, sdispls, sdtype, rbuf, rcounts, rdispls, rdtype, comm,
                          module, alike ? &call : NULL);
}

int mca_coll_ucg_ineighbor_alltoallv(const void* sbuf, const int* scounts, const int* sdispls,
                                     struct ompi_datatype_t* sdtype, void* rbuf, const int* rcounts,
                                     const int* rdispls, struct ompi_datatype_t* rdtype,
                                     struct ompi_communicator_t* comm, ompi_request_t** request,
                                     mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_start_call(mine, open_alltoall(&mine->call, V_INPUT, V_OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, ineighbor_alltoallv, status, sbuf, scounts, sdispls, sdtype, rbuf, rcounts,
                   rdispls, rdtype, comm, request);
}

int mca_coll_ucg_neighbor_alltoallv_init(const void* sbuf, const int* scounts, const int* sdispls,
                                         struct ompi_datatype_t* sdtype, void* rbuf,
                                         const int* rcounts, const int* rdispls,
                                         struct ompi_datatype_t* rdtype,
                                         struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                         ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine, open_alltoall(&mine->call, V_INPUT, V_OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, neighbor_alltoallv_init, status, sbuf, scounts, sdispls, sdtype, rbuf,
                   rcounts, rdispls, rdtype, comm, info, request);
}

static COLL_UCG_APART int
alltoallw_anew(const void* sbuf, const int* scounts, const MPI_Aint* sdispls,
               struct ompi_datatype_t* const* sdtypes, void* rbuf, const int* rcounts,
               const MPI_Aint* rdispls, struct ompi_datatype_t* const* rdtypes,
               struct ompi_communicator_t* comm, mca_coll_base_module_t* module,
               const coll_ucg_latest_t* arguments) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    ucg_status_t status = coll_ucg_enter(ucg);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, ucg);
        status = coll_ucg_run_opened(&call, open_alltoall(&call, W_INPUT, W_OUTPUT));
        if (NULL != arguments) {
            coll_ucg_remember_call(&call, COLL_UCG_FN_neighbor_alltoallw, arguments, status);
        }
    }
    COLL_UCG_LEAVE(ucg, neighbor_alltoallw, status, sbuf, scounts, sdispls, sdtypes, rbuf, rcounts,
                   rdispls, rdtypes, comm);
}

int mca_coll_ucg_neighbor_alltoallw(const void* sbuf, const int* scounts, const MPI_Aint* sdispls,
                                    struct ompi_datatype_t* const* sdtypes, void* rbuf,
                                    const int* rcounts, const MPI_Aint* rdispls,
                                    struct ompi_datatype_t* const* rdtypes,
                                    struct ompi_communicator_t* comm,
                                    mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_vector_t vectors[] = {SENT(scounts),     SENT(sdispls),     SENT(sdtypes),
                                         RECEIVED(rcounts), RECEIVED(rdispls), RECEIVED(rdtypes)};
    const coll_ucg_latest_t call = {.vector_count = 6, .vectors = vectors};
    int result;
    if (coll_ucg_repeats_described(ucg, COLL_UCG_FN_neighbor_alltoallw, &call) &&
        coll_ucg_try_to_repeat(ucg, COLL_UCG_FN_neighbor_alltoallw, sbuf, rbuf, &result)) {
        return result;
    }
    return alltoallw_anew(sbuf, scounts, sdispls, sdtypes, rbuf, rcounts, rdispls, rdtypes, comm,
                          module, &call);
}

int mca_coll_ucg_ineighbor_alltoallw(const void* sbuf, const int* scounts, const MPI_Aint* sdispls,
                                     struct ompi_datatype_t* const* sdtypes, void* rbuf,
                                     const int* rcounts, const MPI_Aint* rdispls,
                                     struct ompi_datatype_t* const* rdtypes,
                                     struct ompi_communicator_t* comm, ompi_request_t** request,
                                     mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_nonblocking(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_start_call(mine, open_alltoall(&mine->call, W_INPUT, W_OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, ineighbor_alltoallw, status, sbuf, scounts, sdispls, sdtypes, rbuf, rcounts,
                   rdispls, rdtypes, comm, request);
}

int mca_coll_ucg_neighbor_alltoallw_init(const void* sbuf, const int* scounts,
                                         const MPI_Aint* sdispls,
                                         struct ompi_datatype_t* const* sdtypes, void* rbuf,
                                         const int* rcounts, const MPI_Aint* rdispls,
                                         struct ompi_datatype_t* const* rdtypes,
                                         struct ompi_communicator_t* comm, struct ompi_info_t* info,
                                         ompi_request_t** request, mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = coll_ucg_keep_call(mine, open_alltoall(&mine->call, W_INPUT, W_OUTPUT), request);
    }
    COLL_UCG_LEAVE(ucg, neighbor_alltoallw_init, status, sbuf, scounts, sdispls, sdtypes, rbuf,
                   rcounts, rdispls, rdtypes, comm, info, request);
}
