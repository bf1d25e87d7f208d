/*
 * Collectives of no bytes, which ranks describe by different counts: zero elements of any datatype,
 * or some elements of an empty datatype. For most counts of zero, Open MPI returns without calling
 * a component, on the ranks that have such a count. Each collective runs before its communicator
 * has a group and afterwards, and is followed by a sum that all ranks know. With the argument
 * "vectors" this includes collectives of which no rank knows that they have no bytes. Prints
 * "empties ok" from rank 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { kRanksMax = 8, kCount = 3 };

/** The arguments of this rank: the communicator, and how the rank describes no bytes. */
typedef struct {
    MPI_Comm comm;
    int count;
    MPI_Datatype type;
    int counts[kRanksMax];
    int displs[kRanksMax];
} nothing_t;

static int buffer[4];

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "empties: wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* ------------------------------------------------------------------ within a communicator */

static void broadcast(const nothing_t* n) {
    MPI_Bcast(buffer, n->count, n->type, 0, n->comm);
}

static void start_broadcast(const nothing_t* n) {
    MPI_Request request;
    MPI_Ibcast(buffer, n->count, n->type, 0, n->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void gather(const nothing_t* n) {
    MPI_Gather(buffer, n->count, n->type, buffer + 1, n->count, n->type, 0, n->comm);
}

static void gather_in_place(const nothing_t* n) {
    int rank;
    MPI_Comm_rank(n->comm, &rank);
    MPI_Gather(0 == rank ? MPI_IN_PLACE : buffer, n->count, n->type, buffer + 1, n->count, n->type,
               0, n->comm);
}

static void gather_vectors(const nothing_t* n) {
    MPI_Gatherv(buffer, n->count, n->type, buffer + 1, n->counts, n->displs, n->type, 0, n->comm);
}

static void scatter(const nothing_t* n) {
    MPI_Scatter(buffer, n->count, n->type, buffer + 1, n->count, n->type, 0, n->comm);
}

static void scatter_in_place(const nothing_t* n) {
    int rank;
    MPI_Comm_rank(n->comm, &rank);
    MPI_Scatter(buffer, n->count, n->type, 0 == rank ? MPI_IN_PLACE : buffer + 1, n->count, n->type,
                0, n->comm);
}

static void scatter_vectors(const nothing_t* n) {
    MPI_Scatterv(buffer, n->counts, n->displs, n->type, buffer + 1, n->count, n->type, 0, n->comm);
}

static void gather_everywhere(const nothing_t* n) {
    MPI_Allgather(buffer, n->count, n->type, buffer + 1, n->count, n->type, n->comm);
}

static void gather_vectors_everywhere(const nothing_t* n) {
    MPI_Allgatherv(buffer, n->count, n->type, buffer + 1, n->counts, n->displs, n->type, n->comm);
}

static void exchange(const nothing_t* n) {
    MPI_Alltoall(buffer, n->count, n->type, buffer + 1, n->count, n->type, n->comm);
}

static void exchange_vectors(const nothing_t* n) {
    MPI_Alltoallv(buffer, n->counts, n->displs, n->type, buffer + 1, n->counts, n->displs, n->type,
                  n->comm);
}

static void gather_from_neighbors(const nothing_t* n) {
    MPI_Neighbor_allgather(buffer, n->count, n->type, buffer + 1, n->count, n->type, n->comm);
}

static void exchange_with_neighbors(const nothing_t* n) {
    MPI_Neighbor_alltoall(buffer, n->count, n->type, buffer + 1, n->count, n->type, n->comm);
}

/* ------------------------------------------------------------------ between two sides */

/** The argument `root` of a call between the two sides on this rank. The root is the first
 * process of the side of even ranks. */
static int root_across(MPI_Comm inter) {
    int world;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(inter, &rank);
    return 1 == world % 2 ? 0 : 0 == rank ? MPI_ROOT : MPI_PROC_NULL;
}

static void broadcast_across(const nothing_t* n) {
    MPI_Bcast(buffer, n->count, n->type, root_across(n->comm), n->comm);
}

static void start_broadcast_across(const nothing_t* n) {
    MPI_Request request;
    MPI_Ibcast(buffer, n->count, n->type, root_across(n->comm), n->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void gather_across(const nothing_t* n) {
    MPI_Gather(buffer, n->count, n->type, buffer + 1, n->count, n->type, root_across(n->comm),
               n->comm);
}

static void scatter_across(const nothing_t* n) {
    MPI_Scatter(buffer, n->count, n->type, buffer + 1, n->count, n->type, root_across(n->comm),
                n->comm);
}

static void gather_everywhere_across(const nothing_t* n) {
    MPI_Allgather(buffer, n->count, n->type, buffer + 1, n->count, n->type, n->comm);
}

/* ------------------------------------------------------------------ all of them */

typedef struct {
    const char* name;
    void (*call)(const nothing_t*);
} collective_t;

static const collective_t kWithin[] = {
    {"bcast", broadcast},
    {"ibcast", start_broadcast},
    {"gather", gather},
    {"gather in place", gather_in_place},
    {"scatter", scatter},
    {"scatter in place", scatter_in_place},
    {"allgather", gather_everywhere},
    {"allgatherv", gather_vectors_everywhere},
    {"alltoall", exchange},
};

/** Open MPI's own component does not always survive these. */
static const collective_t kOfVectors[] = {
    {"gatherv", gather_vectors},
    {"scatterv", scatter_vectors},
    {"alltoallv", exchange_vectors},
};

static const collective_t kOnGrid[] = {
    {"neighbor_allgather", gather_from_neighbors},
    {"neighbor_alltoall", exchange_with_neighbors},
};

static const collective_t kAcross[] = {
    {"bcast", broadcast_across}, {"ibcast", start_broadcast_across},      {"gather", gather_across},
    {"scatter", scatter_across}, {"allgather", gather_everywhere_across},
};

static void sum(MPI_Comm comm, const char* name) {
    int others;
    int inter;
    const int one = 1;
    int ones = 0;
    MPI_Comm_test_inter(comm, &inter);
    if (inter) {
        MPI_Comm_remote_size(comm, &others);
    } else {
        MPI_Comm_size(comm, &others);
    }
    MPI_Allreduce(&one, &ones, 1, MPI_INT, MPI_SUM, comm);
    require(ones == others, name);
}

/** Makes a description of no bytes: on rank `odd` of MPI_COMM_WORLD by a count of zero, on
 * others by the empty datatype. */
static nothing_t describe(MPI_Comm comm, MPI_Datatype empty, int odd) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    nothing_t n = {.comm = comm, .count = kCount, .type = empty};
    if (rank == odd) {
        n.count = 0;
        n.type = MPI_INT;
    }
    for (int i = 0; i < kRanksMax; i++) {
        n.counts[i] = n.count;
    }
    return n;
}

/** Runs the collective on a copy of the communicator, which has no group the first time, and has
 * one once it has summed. */
static void check(const collective_t* collective, MPI_Comm comm, MPI_Datatype empty, int odd) {
    MPI_Comm copy;
    MPI_Comm_dup(comm, &copy);
    const nothing_t n = describe(copy, empty, odd);
    for (int i = 0; i < 5; i++) {
        collective->call(&n);
        collective->call(&n);
        sum(copy, collective->name);
    }
    MPI_Comm_free(&copy);
}

static void check_all(const collective_t* collectives, size_t count, MPI_Comm comm,
                      MPI_Datatype empty) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < count; i++) {
        for (int odd = 0; odd < size; odd++) {
            check(&collectives[i], comm, empty, odd);
        }
    }
}

static MPI_Comm make_grid(void) {
    int size;
    const int periodic = 0;
    MPI_Comm grid;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &grid);
    return grid;
}

static MPI_Comm make_inter(void) {
    int rank;
    MPI_Comm side;
    MPI_Comm inter;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &inter);
    MPI_Comm_free(&side);
    return inter;
}

int main(int argc, char** argv) {
    int rank;
    MPI_Datatype empty;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    /* This is the first collective of all: MPI_COMM_WORLD gets its group at once. */
    const nothing_t first = describe(MPI_COMM_WORLD, empty, 1);
    scatter(&first);
    check_all(kWithin, sizeof kWithin / sizeof *kWithin, MPI_COMM_WORLD, empty);
    if (argc > 1 && 0 == strcmp(argv[1], "vectors")) {
        check_all(kOfVectors, sizeof kOfVectors / sizeof *kOfVectors, MPI_COMM_WORLD, empty);
    }
    MPI_Comm grid = make_grid();
    check_all(kOnGrid, sizeof kOnGrid / sizeof *kOnGrid, grid, empty);
    MPI_Comm_free(&grid);
    MPI_Comm inter = make_inter();
    check_all(kAcross, sizeof kAcross / sizeof *kAcross, inter, empty);
    MPI_Comm_free(&inter);
    MPI_Type_free(&empty);
    if (0 == rank) {
        printf("empties ok\n");
    }
    MPI_Finalize();
    return 0;
}
