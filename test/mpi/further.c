/*
 * MPI functions that the other programs do not call: communicators of groups, attributes of
 * communicators, completions of some requests; and what many edges cost. One part for each
 * argument. Rank 0: "PART ok".
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static int rank;
static int size;

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "further: rank %d: wrong: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/** Calls some collectives whose results are known. */
static void use(MPI_Comm comm) {
    int here;
    int all;
    MPI_Comm_rank(comm, &here);
    MPI_Comm_size(comm, &all);
    for (int i = 0; i < 30; i++) {
        const int mine = here + i;
        int sum = -1;
        int token = 0 == here ? i : -1;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
        MPI_Bcast(&token, 1, MPI_INT, 0, comm);
        MPI_Barrier(comm);
        require(sum == all * (all - 1) / 2 + all * i && token == i, "sum and broadcast");
    }
}

/* ------------------------------------------------------------------ edges */

enum { EDGES = 20000, CALLS = 20 };

/** The vectors of a neighbourhood collective whose blocks are all empty but one. */
typedef struct {
    int counts[EDGES];
    MPI_Aint displs[EDGES];
    MPI_Datatype types[EDGES];
} edges_t;

/** Returns a ring in which each edge is there many times. */
static MPI_Comm make_edges(edges_t* edges) {
    MPI_Comm comm;
    int* to = malloc(EDGES * sizeof *to);
    int* from = malloc(EDGES * sizeof *from);
    for (int i = 0; i < EDGES; i++) {
        to[i] = (rank + 1) % size;
        from[i] = (rank + size - 1) % size;
        edges->counts[i] = 0 == i;
        edges->displs[i] = 0;
        edges->types[i] = MPI_INT;
    }
    /* The weights mean nothing. */
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, EDGES, from, from, EDGES, to, to, MPI_INFO_NULL,
                                   0, &comm);
    free(to);
    free(from);
    return comm;
}

/** Returns the bytes in use after so many calls at a time. */
static size_t call_along(MPI_Comm comm, const edges_t* edges, int calls) {
    int received[CALLS];
    MPI_Request requests[CALLS];
    for (int i = 0; i < calls; i++) {
        MPI_Ineighbor_alltoallw(&rank, edges->counts, edges->displs, edges->types, &received[i],
                                edges->counts, edges->displs, edges->types, comm, &requests[i]);
    }
    MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < calls; i++) {
        require(received[i] == (rank + size - 1) % size, "received along an edge");
    }
    const struct mallinfo2 use = mallinfo2();
    return use.uordblks + use.hblkhd;
}

/** Vectors of calls that have ended take no memory, however many calls there were at a time. */
static void edges(void) {
    /* The vectors of one call take 1.6 MB. A blocking call also leaves its plan and its arguments,
       3 MB, for calls that repeat it. */
    enum { MOST = 1 << 20, MOST_KEPT = 7 << 19 };
    static edges_t vectors;
    int received = -1;
    MPI_Comm comm = make_edges(&vectors);
    const size_t before = call_along(comm, &vectors, 1);
    const size_t after = call_along(comm, &vectors, CALLS);
    MPI_Neighbor_alltoallw(&rank, vectors.counts, vectors.displs, vectors.types, &received,
                           vectors.counts, vectors.displs, vectors.types, comm);
    const size_t at_end = call_along(comm, &vectors, 1);
    if (after > before + MOST || at_end > after + MOST_KEPT) {
        fprintf(stderr, "further: rank %d: %zu bytes in use, then %zu, then %zu\n", rank, before,
                after, at_end);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_free(&comm);
}

/* ------------------------------------------------------------------ halves */

/** Uses a communicator of all ranks but the last. */
static void halves(void) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &half);
    use(half);
    MPI_Comm_free(&half);
}

/* ------------------------------------------------------------------ a parameter */

/** Prints the value that tools see of a parameter. */
static void parameter(void) {
    const char* name = "coll_ucg_setup_after";
    MPI_T_cvar_handle handle;
    int provided;
    int index;
    int count;
    int value = -1;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    require(MPI_SUCCESS == MPI_T_cvar_get_index(name, &index), name);
    require(MPI_SUCCESS == MPI_T_cvar_handle_alloc(index, NULL, &handle, &count), "a handle");
    require(MPI_SUCCESS == MPI_T_cvar_read(handle, &value), "a value");
    MPI_T_cvar_handle_free(&handle);
    MPI_T_finalize();
    if (rank == 0) {
        printf("%s is %d\n", name, value);
    }
}

/* ------------------------------------------------------------------ main */

static const struct {
    const char* name;
    void (*run)(void);
} parts[] = {
    {"edges", edges},
    {"halves", halves},
    {"parameter", parameter},
};

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "";
    int found = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (0 == strcmp(parts[i].name, name)) {
            parts[i].run();
            found = 1;
        }
    }
    require(found, "no such part");
    use(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s ok\n", name);
    }
    MPI_Finalize();
    return 0;
}
