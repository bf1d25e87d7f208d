/*
 * Converts vectors of int to vectors of MPI_Count and MPI_Aint, in memory that is kept until the
 * program ends, since a nonblocking or persistent call may read it as long as it is in use.
 */
#include "large.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ lengths of vectors */

static int ranks(MPI_Comm comm) {
    int is_inter;
    int size;
    MPI_Comm_test_inter(comm, &is_inter);
    if (is_inter) {
        MPI_Comm_remote_size(comm, &size);
    } else {
        MPI_Comm_size(comm, &size);
    }
    return size;
}

/** The counts of a reduce_scatter are those of this side's processes. */
static int local_ranks(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

static void find_degrees(MPI_Comm comm, int* in, int* out) {
    int kind;
    int rank;
    int weighted;
    MPI_Topo_test(comm, &kind);
    MPI_Comm_rank(comm, &rank);
    switch (kind) {
    case MPI_CART:
        MPI_Cartdim_get(comm, in);
        *in *= 2;
        *out = *in;
        break;
    case MPI_GRAPH:
        MPI_Graph_neighbors_count(comm, rank, in);
        *out = *in;
        break;
    case MPI_DIST_GRAPH: MPI_Dist_graph_neighbors_count(comm, in, out, &weighted); break;
    default:
        *in = 0;
        *out = 0;
        break;
    }
}

static int in_degree(MPI_Comm comm) {
    int in;
    int out;
    find_degrees(comm, &in, &out);
    return in;
}

static int out_degree(MPI_Comm comm) {
    int in;
    int out;
    find_degrees(comm, &in, &out);
    return out;
}

/* ------------------------------------------------------------------ conversions */

static void* memory(size_t bytes) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void** kept;
    static size_t count;
    void* block = malloc(bytes + 1);
    pthread_mutex_lock(&lock);
    void** more = realloc(kept, (count + 1) * sizeof *kept);
    if (NULL == block || NULL == more) {
        fprintf(stderr, "large: no memory\n");
        abort();
    }
    kept = more;
    kept[count++] = block;
    pthread_mutex_unlock(&lock);
    return block;
}

static MPI_Count* counts_of(const int* values, int count) {
    if (NULL == values) {
        return NULL;
    }
    MPI_Count* wide = memory((size_t)count * sizeof *wide);
    for (int i = 0; i < count; i++) {
        wide[i] = values[i];
    }
    return wide;
}

static MPI_Aint* displs_of(const int* values, int count) {
    if (NULL == values) {
        return NULL;
    }
    MPI_Aint* wide = memory((size_t)count * sizeof *wide);
    for (int i = 0; i < count; i++) {
        wide[i] = values[i];
    }
    return wide;
}

/** The vectors of what is sent mean nothing with MPI_IN_PLACE. */
static int sent(const void* sbuf, int count) {
    return MPI_IN_PLACE == sbuf ? 0 : count;
}

/** The length of vectors that mean something only at the root. */
static int at_root(int root, MPI_Comm comm) {
    int is_inter;
    int rank;
    MPI_Comm_test_inter(comm, &is_inter);
    MPI_Comm_rank(comm, &rank);
    return (is_inter ? MPI_ROOT == root : rank == root) ? ranks(comm) : 0;
}

/* ------------------------------------------------------------------ functions */

#define DEFINE(Name, Started, PARAMETERS, ...)                                                     \
    int large_##Name(PARAMETERS) {                                                                 \
        return MPI_##Name##_c(__VA_ARGS__, comm);                                                  \
    }                                                                                              \
    int large_##Started(PARAMETERS, MPI_Request* request) {                                        \
        return MPI_##Started##_c(__VA_ARGS__, comm, request);                                      \
    }                                                                                              \
    int large_##Name##_init(PARAMETERS, MPI_Info info, MPI_Request* request) {                     \
        return MPI_##Name##_init_c(__VA_ARGS__, comm, info, request);                              \
    }

#define BLOCKS(counts, displs, length) counts_of(counts, length), displs_of(displs, length)

DEFINE(Gatherv, Igatherv, LARGE_GATHERV_ARGS, sbuf, scount, stype, rbuf,
       BLOCKS(rcounts, displs, at_root(root, comm)), rtype, root)
DEFINE(Scatterv, Iscatterv, LARGE_SCATTERV_ARGS, sbuf, BLOCKS(scounts, displs, at_root(root, comm)),
       stype, rbuf, rcount, rtype, root)
DEFINE(Allgatherv, Iallgatherv, LARGE_ALLGATHERV_ARGS, sbuf, scount, stype, rbuf,
       BLOCKS(rcounts, displs, ranks(comm)), rtype)
DEFINE(Alltoallv, Ialltoallv, LARGE_ALLTOALLV_ARGS, sbuf,
       BLOCKS(scounts, sdispls, sent(sbuf, ranks(comm))), stype, rbuf,
       BLOCKS(rcounts, rdispls, ranks(comm)), rtype)
DEFINE(Alltoallw, Ialltoallw, LARGE_ALLTOALLW_ARGS, sbuf,
       BLOCKS(scounts, sdispls, sent(sbuf, ranks(comm))), stypes, rbuf,
       BLOCKS(rcounts, rdispls, ranks(comm)), rtypes)
DEFINE(Reduce_scatter, Ireduce_scatter, LARGE_REDUCE_SCATTER_ARGS, sbuf, rbuf,
       counts_of(rcounts, local_ranks(comm)), type, op)
DEFINE(Neighbor_allgatherv, Ineighbor_allgatherv, LARGE_ALLGATHERV_ARGS, sbuf, scount, stype, rbuf,
       BLOCKS(rcounts, displs, in_degree(comm)), rtype)
DEFINE(Neighbor_alltoallv, Ineighbor_alltoallv, LARGE_ALLTOALLV_ARGS, sbuf,
       BLOCKS(scounts, sdispls, out_degree(comm)), stype, rbuf,
       BLOCKS(rcounts, rdispls, in_degree(comm)), rtype)
DEFINE(Neighbor_alltoallw, Ineighbor_alltoallw, LARGE_NEIGHBOR_ALLTOALLW_ARGS, sbuf,
       counts_of(scounts, out_degree(comm)), sdispls, stypes, rbuf,
       counts_of(rcounts, in_degree(comm)), rdispls, rtypes)
