#include "collbench.h"

#ifdef COLLBENCH_PERSISTENT
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define PERSISTENT(Name) MPI_##Name##_init
#else
/* This header needs mpi.h before it. */
#include <mpi-ext.h>
#define PERSISTENT(Name) MPIX_##Name##_init
#endif
#endif

/* ---- calls: each collective blocking, nonblocking with the wait for it, and persistent */

static void* root_sends(struct buffers* b) {
    return b->rank == b->root ? b->send : b->recv;
}

/* The send buffer of a collective whose root receives. */
static void* input_to_root(struct buffers* b) {
    return b->in_place && b->rank == b->root ? MPI_IN_PLACE : b->send;
}

/* The receive buffer of a collective whose root sends. */
static void* output_of_root(struct buffers* b) {
    return b->in_place && b->rank == b->root ? MPI_IN_PLACE : b->recv;
}

#define BLOCKING_AND_NONBLOCKING(lower, Name, ...)                                                 \
    static void run_##lower(struct buffers* b, int bytes) {                                        \
        (void)bytes;                                                                               \
        MPI_##Name(__VA_ARGS__);                                                                   \
    }                                                                                              \
                                                                                                   \
    static void run_i##lower(struct buffers* b, int bytes) {                                       \
        MPI_Request request;                                                                       \
                                                                                                   \
        (void)bytes;                                                                               \
        MPI_I##lower(__VA_ARGS__, &request);                                                       \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                     \
    }

#ifdef COLLBENCH_PERSISTENT
#define CALLS(lower, Name, ...)                                                                    \
    BLOCKING_AND_NONBLOCKING(lower, Name, __VA_ARGS__)                                             \
                                                                                                   \
    static void init_##lower(struct buffers* b, int bytes) {                                       \
        (void)bytes;                                                                               \
        PERSISTENT(Name)(__VA_ARGS__, MPI_INFO_NULL, &b->request);                                 \
    }

static void run_started(struct buffers* b, int bytes) {
    (void)bytes;
    MPI_Start(&b->request);
    MPI_Wait(&b->request, MPI_STATUS_IGNORE);
}
#else
#define CALLS BLOCKING_AND_NONBLOCKING
#endif

CALLS(barrier, Barrier, b->comm)
CALLS(bcast, Bcast, root_sends(b), bytes, MPI_BYTE, b->root, b->comm)
CALLS(reduce, Reduce, input_to_root(b), b->recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, b->root,
      b->comm)
CALLS(allreduce, Allreduce, b->input, b->recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, b->comm)
CALLS(allgather, Allgather, b->input, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, b->comm)
CALLS(allgatherv, Allgatherv, b->input, bytes, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE,
      b->comm)
CALLS(alltoall, Alltoall, b->input, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, b->comm)
CALLS(alltoallv, Alltoallv, b->input, b->counts, b->displs, MPI_BYTE, b->recv, b->counts, b->displs,
      MPI_BYTE, b->comm)
CALLS(alltoallw, Alltoallw, b->input, b->counts, b->displs, b->types, b->recv, b->counts, b->displs,
      b->types, b->comm)
CALLS(gather, Gather, input_to_root(b), bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, b->root, b->comm)
CALLS(gatherv, Gatherv, input_to_root(b), bytes, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE,
      b->root, b->comm)
CALLS(scatter, Scatter, b->send, bytes, MPI_BYTE, output_of_root(b), bytes, MPI_BYTE, b->root,
      b->comm)
CALLS(scatterv, Scatterv, b->send, b->counts, b->displs, MPI_BYTE, output_of_root(b), bytes,
      MPI_BYTE, b->root, b->comm)
CALLS(reduce_scatter, Reduce_scatter, b->input, b->recv, b->counts, MPI_DOUBLE, MPI_SUM, b->comm)
CALLS(reduce_scatter_block, Reduce_scatter_block, b->input, b->recv, doubles(bytes), MPI_DOUBLE,
      MPI_SUM, b->comm)
CALLS(scan, Scan, b->input, b->recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, b->comm)
CALLS(exscan, Exscan, b->input, b->recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, b->comm)
CALLS(neighbor_allgather, Neighbor_allgather, b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE,
      b->ring)
CALLS(neighbor_allgatherv, Neighbor_allgatherv, b->send, bytes, MPI_BYTE, b->recv, b->counts,
      b->displs, MPI_BYTE, b->ring)
CALLS(neighbor_alltoall, Neighbor_alltoall, b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE,
      b->ring)
CALLS(neighbor_alltoallv, Neighbor_alltoallv, b->send, b->counts, b->displs, MPI_BYTE, b->recv,
      b->counts, b->displs, MPI_BYTE, b->ring)
CALLS(neighbor_alltoallw, Neighbor_alltoallw, b->send, b->counts, b->byte_displs, b->types, b->recv,
      b->counts, b->byte_displs, b->types, b->ring)

/* X(form, name, traits, send_blocks, recv_blocks, check) */
#define COLLECTIVES(X, form)                                                                       \
    X(form, barrier, NO_SIZE, ONE_BLOCK, ONE_BLOCK, check_nothing)                                 \
    X(form, bcast, ROOTED, ONE_BLOCK, ONE_BLOCK, check_bcast)                                      \
    X(form, reduce, REDUCES | ROOTED | IN_PLACE, ONE_BLOCK, ONE_BLOCK, check_reduce)               \
    X(form, allreduce, REDUCES | IN_PLACE, ONE_BLOCK, ONE_BLOCK, check_allreduce)                  \
    X(form, allgather, IN_PLACE, ONE_BLOCK, ALL_BLOCKS, check_allgather)                           \
    X(form, allgatherv, IN_PLACE | DISPLACED, ONE_BLOCK, ALL_BLOCKS, check_allgather)              \
    X(form, alltoall, IN_PLACE, ALL_BLOCKS, ALL_BLOCKS, check_alltoall)                            \
    X(form, alltoallv, IN_PLACE | DISPLACED, ALL_BLOCKS, ALL_BLOCKS, check_alltoall)               \
    X(form, gather, ROOTED | IN_PLACE, ONE_BLOCK, ALL_BLOCKS, check_gather)                        \
    X(form, gatherv, ROOTED | IN_PLACE | DISPLACED, ONE_BLOCK, ALL_BLOCKS, check_gather)           \
    X(form, scatter, ROOTED | IN_PLACE, ALL_BLOCKS, ONE_BLOCK, check_scatter)                      \
    X(form, scatterv, ROOTED | IN_PLACE | DISPLACED, ALL_BLOCKS, ONE_BLOCK, check_scatter)         \
    X(form, reduce_scatter, REDUCES | IN_PLACE, ALL_BLOCKS, ONE_BLOCK, check_reduce_scatter)       \
    X(form, reduce_scatter_block, REDUCES | IN_PLACE, ALL_BLOCKS, ONE_BLOCK, check_reduce_scatter) \
    X(form, scan, REDUCES | IN_PLACE, ONE_BLOCK, ONE_BLOCK, check_scan)                            \
    X(form, exscan, REDUCES | IN_PLACE, ONE_BLOCK, ONE_BLOCK, check_exscan)
#define OTHERS(X, form)                                                                            \
    X(form, alltoallw, OTHER | IN_PLACE | DISPLACED, ALL_BLOCKS, ALL_BLOCKS, check_alltoall)       \
    X(form, neighbor_allgather, OTHER | RING, ONE_BLOCK, TWO_BLOCKS, check_neighbor_allgather)     \
    X(form, neighbor_allgatherv, OTHER | RING | DISPLACED, ONE_BLOCK, TWO_BLOCKS,                  \
      check_neighbor_allgather)                                                                    \
    X(form, neighbor_alltoall, OTHER | RING, TWO_BLOCKS, TWO_BLOCKS, check_neighbor_alltoall)      \
    X(form, neighbor_alltoallv, OTHER | RING | DISPLACED, TWO_BLOCKS, TWO_BLOCKS,                  \
      check_neighbor_alltoall)                                                                     \
    X(form, neighbor_alltoallw, OTHER | RING, TWO_BLOCKS, TWO_BLOCKS, check_neighbor_alltoall)

#define BLOCKING_ROW(form, name, traits, sends, recvs, check)                                      \
    {#name, traits, sends, recvs, run_##name, check, form, NULL},
#define NONBLOCKING_ROW(form, name, traits, sends, recvs, check)                                   \
    {"i" #name, traits, sends, recvs, run_i##name, check, form, NULL},
#define PERSISTENT_ROW(form, name, traits, sends, recvs, check)                                    \
    {#name "_init", traits, sends, recvs, run_started, check, form, init_##name},

const struct call collbench_calls[] = {
    COLLECTIVES(BLOCKING_ROW, FORM_BLOCKING) COLLECTIVES(NONBLOCKING_ROW, FORM_NONBLOCKING)
        OTHERS(BLOCKING_ROW, FORM_BLOCKING) OTHERS(NONBLOCKING_ROW, FORM_NONBLOCKING)
#ifdef COLLBENCH_PERSISTENT
            COLLECTIVES(PERSISTENT_ROW, FORM_PERSISTENT) OTHERS(PERSISTENT_ROW, FORM_PERSISTENT)
#endif
};
const int collbench_call_count = sizeof(collbench_calls) / sizeof(collbench_calls[0]);

const char* const collbench_form_names[] = {
    [FORM_BLOCKING] = "blocking",
    [FORM_NONBLOCKING] = "nonblocking",
    [FORM_PERSISTENT] = "persistent",
};
