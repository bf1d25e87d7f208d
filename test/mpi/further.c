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

/* ------------------------------------------------------------------ communicators */

/** Communicators that their members alone make, of ranks with even and with odd numbers. */
static void create_group(void) {
    MPI_Group world;
    MPI_Group mine;
    MPI_Comm comm;
    int range[1][3] = {{rank % 2, size - 1, 2}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &mine);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_create_group(MPI_COMM_WORLD, mine, i, &comm);
        use(comm);
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&mine);
    MPI_Group_free(&world);
}

static int copies;
static int deletions;

static int copy_attribute(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
    (void)comm;
    (void)keyval;
    (void)extra;
    *(void**)out = in;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

/** Calls collectives on the communicator that ends, and on another. */
static int delete_attribute(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)keyval;
    (void)value;
    (void)extra;
    deletions++;
    use(comm);
    use(MPI_COMM_WORLD);
    return MPI_SUCCESS;
}

static void attributes(void) {
    int keyval;
    MPI_Comm first;
    MPI_Comm second;
    MPI_Comm_create_keyval(copy_attribute, delete_attribute, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_set_attr(first, keyval, &copies);
    MPI_Comm_dup(first, &second);
    use(first);
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
    MPI_Comm_free_keyval(&keyval);
    require(copies == 1 && deletions == 2, "an attribute is copied once and deleted twice");
}

static int use_at_end(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm;
    (void)keyval;
    (void)value;
    (void)extra;
    use(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("used at the end\n");
    }
    return MPI_SUCCESS;
}

/** MPI_Finalize deletes the attributes of MPI_COMM_SELF before anything else. */
static void finalize(void) {
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, use_at_end, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    MPI_Comm_free_keyval(&keyval);
}

/* ------------------------------------------------------------------ completions */

enum { STARTED = 12 };

/** Completes all requests, in whatever numbers one call finds. */
static void complete_by_turns(MPI_Request* requests, int round) {
    int indexes[STARTED];
    int left = STARTED;
    for (int i = 0; 0 < left; i++) {
        int count = 0;
        int index;
        int flag = 0;
        switch ((i + round) % 4) {
        case 0: MPI_Waitsome(STARTED, requests, &count, indexes, MPI_STATUSES_IGNORE); break;
        case 1: MPI_Testany(STARTED, requests, &index, &flag, MPI_STATUS_IGNORE); break;
        case 2: MPI_Testsome(STARTED, requests, &count, indexes, MPI_STATUSES_IGNORE); break;
        default:
            MPI_Waitany(STARTED, requests, &index, MPI_STATUS_IGNORE);
            flag = 1;
            break;
        }
        left -= flag ? 1 : count;
    }
}

static void completions(void) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int round = 0; round < 40; round++) {
        double sums[STARTED];
        const double mine = rank + round;
        MPI_Request requests[STARTED];
        for (int i = 0; i < STARTED; i++) {
            if (i % 3 == 0) {
                MPI_Ibarrier(comm, &requests[i]);
            } else {
                MPI_Iallreduce(&mine, &sums[i], 1, MPI_DOUBLE, MPI_SUM, comm, &requests[i]);
            }
        }
        complete_by_turns(requests, round);
        for (int i = 0; i < STARTED; i++) {
            const int good = i % 3 == 0 || sums[i] == size * (size - 1) / 2 + size * round;
            require(good && requests[i] == MPI_REQUEST_NULL, "completed");
        }
    }
    MPI_Comm_free(&comm);
}

/* ------------------------------------------------------------------ main */

static const struct {
    const char* name;
    void (*run)(void);
} parts[] = {
    {"edges", edges},
    {"halves", halves},
    {"parameter", parameter},
    {"create_group", create_group},
    {"attributes", attributes},
    {"finalize", finalize},
    {"completions", completions},
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
