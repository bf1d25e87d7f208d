/*
 * usage: neighbor_rooms CALLS
 *
 * Neighbourhood exchanges over a graph in which some pairs have several edges and some edges lead
 * from a rank to itself. The blocks keep their lengths for some calls and then get other ones:
 * longer, shorter, or none. There are blocking calls, pairs of nonblocking calls, and persistent
 * calls that were made before and in between. Every byte that comes, and the bytes between the
 * blocks, are checked. Rank 0 prints "ok".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "persistent.h"

enum { EDGES = 6, GAP = 3, LENGTH_MAX = 40000, CALLS_ALIKE = 7, OUTSTANDING = 2 };

static int rank, size;
static int distance[EDGES];
static MPI_Comm comm;

/** One exchange. Its blocks lie in their order, with gaps. */
typedef struct {
    int call; /**< The number that determines its lengths and its data. */
    int sent_counts[EDGES], sent_places[EDGES];
    int counts[EDGES], places[EDGES];
    unsigned char* sent;
    unsigned char* received;
    size_t received_bytes;
    MPI_Request request;
} exchange_t;

static uint32_t mix(uint32_t a, uint32_t b) {
    uint32_t x = (a ^ (b * 0x9e3779b9U)) * 0x85ebca6bU;
    x = (x ^ (x >> 15)) * 0xc2b2ae35U;
    return x ^ (x >> 13);
}

/** The length of the block on that edge of rank `from`. Most blocks keep their length for some
 * calls. */
static int length_of(int call, int from, int edge) {
    const uint32_t name = mix(mix((uint32_t)(call / CALLS_ALIKE), (uint32_t)from), (uint32_t)edge);
    switch (name % 8) {
    case 0: return 0;
    case 1: return call % CALLS_ALIKE == 3 ? 600 : 8;
    case 2: return (int)(name >> 8) % LENGTH_MAX;
    default: return (int)(name >> 8) % 600;
    }
}

static unsigned char byte_of(int call, int from, int edge, int i) {
    return (unsigned char)(mix((uint32_t)(call * EDGES + edge), (uint32_t)from) + (uint32_t)i * 7);
}

static int source_of(int edge) {
    return (rank - distance[edge] + size) % size;
}

static void* take(size_t bytes) {
    void* memory = malloc(bytes + 1);
    if (NULL == memory) {
        fprintf(stderr, "rank %d: no memory\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return memory;
}

/** Lays out the blocks and fills them for `call`. */
static void fill(exchange_t* x, int call) {
    x->call = call;
    for (int e = 0; e < EDGES; e++) {
        for (int i = 0; i < x->sent_counts[e]; i++) {
            x->sent[x->sent_places[e] + i] = byte_of(call, rank, e, i);
        }
    }
    memset(x->received, 0xee, x->received_bytes);
}

static void prepare(exchange_t* x, int call) {
    int out = 0, in = 0;
    for (int e = 0; e < EDGES; e++) {
        x->sent_counts[e] = length_of(call, rank, e);
        x->counts[e] = length_of(call, source_of(e), e);
        x->sent_places[e] = out;
        x->places[e] = in;
        out += x->sent_counts[e] + GAP;
        in += x->counts[e] + GAP;
    }
    x->sent = take((size_t)out);
    x->received_bytes = (size_t)in;
    x->received = take((size_t)in);
    fill(x, call);
}

static void check(const exchange_t* x) {
    for (int e = 0; e < EDGES; e++) {
        for (int i = 0; i < x->counts[e] + GAP; i++) {
            const unsigned char must =
                i < x->counts[e] ? byte_of(x->call, source_of(e), e, i) : 0xee;
            if (x->received[x->places[e] + i] != must) {
                fprintf(stderr, "rank %d, call %d, edge %d from %d: byte %d of %d is %d, not %d\n",
                        rank, x->call, e, source_of(e), i, x->counts[e],
                        x->received[x->places[e] + i], must);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
}

static void leave(exchange_t* x) {
    free(x->sent);
    free(x->received);
}

static void run_blocking(int call) {
    exchange_t x;
    prepare(&x, call);
    MPI_Neighbor_alltoallv(x.sent, x.sent_counts, x.sent_places, MPI_BYTE, x.received, x.counts,
                           x.places, MPI_BYTE, comm);
    check(&x);
    leave(&x);
}

static void run_nonblocking(int call) {
    exchange_t all[OUTSTANDING];
    for (int i = 0; i < OUTSTANDING; i++) {
        exchange_t* x = &all[i];
        prepare(x, call + i);
        MPI_Ineighbor_alltoallv(x->sent, x->sent_counts, x->sent_places, MPI_BYTE, x->received,
                                x->counts, x->places, MPI_BYTE, comm, &x->request);
    }
    for (int i = OUTSTANDING - 1; i >= 0; i--) {
        MPI_Wait(&all[i].request, MPI_STATUS_IGNORE);
        check(&all[i]);
        leave(&all[i]);
    }
}

static void init_persistent(exchange_t* x, int call) {
    prepare(x, call);
    MPI_Neighbor_alltoallv_init(x->sent, x->sent_counts, x->sent_places, MPI_BYTE, x->received,
                                x->counts, x->places, MPI_BYTE, comm, MPI_INFO_NULL, &x->request);
}

/** Runs the exchange with other data in blocks of the same lengths. */
static void run_persistent(exchange_t* x) {
    fill(x, x->call);
    MPI_Start(&x->request);
    MPI_Wait(&x->request, MPI_STATUS_IGNORE);
    check(x);
}

static void make_graph(void) {
    const int distances[EDGES] = {1, 2, 0, 1, size / 2, size - 1};
    int sources[EDGES], destinations[EDGES], weights[EDGES];
    for (int e = 0; e < EDGES; e++) {
        weights[e] = 1;
        distance[e] = distances[e] % size;
        destinations[e] = (rank + distance[e]) % size;
    }
    for (int e = 0; e < EDGES; e++) {
        sources[e] = source_of(e);
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, EDGES, sources, weights, EDGES, destinations,
                                   weights, MPI_INFO_NULL, 0, &comm);
}

int main(int argc, char** argv) {
    exchange_t early, late;
    MPI_Init(&argc, &argv);
    const int calls = 2 == argc ? (int)strtol(argv[1], NULL, 10) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    make_graph();
    init_persistent(&early, 0);
    for (int call = 0; call < calls; call++) {
        if (call == calls / 2) {
            init_persistent(&late, call);
        }
        switch (call % 5) {
        case 2: run_nonblocking(call); break;
        case 4: run_persistent(call < calls / 2 ? &early : &late); break;
        default: run_blocking(call);
        }
    }
    run_persistent(&early);
    MPI_Request_free(&early.request);
    leave(&early);
    if (calls > 0) {
        MPI_Request_free(&late.request);
        leave(&late);
    }
    MPI_Comm_free(&comm);
    if (0 == rank) {
        puts("ok");
    }
    MPI_Finalize();
    return 0;
}
