/*
 * Requests of neighbourhood collectives: many outstanding, communicators and datatypes freed before
 * the end, persistent ones in any order. The ranks form a ring, so with two ranks both neighbours
 * are the same one. Each rank sends data that its neighbours can check.
 */
#include <stdlib.h>

#include <mpi.h>

#include "persistent.h"
#include "requests.h"

typedef enum { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, KINDS } kind_t;

enum { BELOW, ABOVE, SIDES }; /* This is MPI's order. */
enum { LENGTH = 6, STRIDE_MAX = 2 };

/** A call with room for all of its arguments, which nonblocking calls need until they end. */
typedef struct {
    kind_t kind;
    int seed;
    int stride; /**< The distance of elements in memory. */
    int64_t send[SIDES * LENGTH * STRIDE_MAX];
    int64_t receive[SIDES * LENGTH * STRIDE_MAX];
    int counts[SIDES];
    int displs[SIDES];
    MPI_Aint places[SIDES];
    MPI_Datatype types[SIDES];
} cell_t;

static MPI_Comm make_ring(void) {
    MPI_Comm ring;
    const int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &periodic, 0, &ring);
    MPI_Barrier(ring); /* From here on UCG serves the ring. */
    return ring;
}

static int neighbor(int side) {
    return (world_rank + (side == ABOVE ? 1 : world_size - 1)) % world_size;
}

static int64_t value(const cell_t* cell, int rank, int block, int element) {
    return ((int64_t)cell->seed * world_size + rank) * 100 + block * LENGTH + element;
}

/** The place of an element. In the kinds with vectors the blocks lie in the opposite order. */
static int place(const cell_t* cell, int block, int element) {
    const int turned = ALLGATHERV == cell->kind || ALLTOALLV <= cell->kind;
    return ((turned ? 1 - block : block) * LENGTH + element) * cell->stride;
}

static void fill(cell_t* cell, int seed) {
    const int gathers = cell->kind <= ALLGATHERV;
    cell->seed = seed;
    for (int i = 0; i < SIDES * LENGTH * STRIDE_MAX; i++) {
        cell->send[i] = -2;
        cell->receive[i] = -1;
    }
    for (int block = 0; block < (gathers ? 1 : SIDES); block++) {
        for (int i = 0; i < LENGTH; i++) {
            cell->send[gathers ? i * cell->stride : place(cell, block, i)] =
                value(cell, world_rank, block, i);
        }
    }
}

static void describe(cell_t* cell, kind_t kind, int stride, MPI_Datatype type) {
    cell->kind = kind;
    cell->stride = stride;
    for (int block = 0; block < SIDES; block++) {
        cell->counts[block] = LENGTH;
        cell->displs[block] = (1 - block) * LENGTH;
        cell->places[block] = (MPI_Aint)sizeof(int64_t) * place(cell, block, 0);
        cell->types[block] = type;
    }
}

static void start(cell_t* c, MPI_Comm comm, MPI_Request* request) {
    const MPI_Datatype type = c->types[0];
    switch (c->kind) {
    case ALLGATHER:
        MPI_Ineighbor_allgather(c->send, LENGTH, type, c->receive, LENGTH, type, comm, request);
        break;
    case ALLGATHERV:
        MPI_Ineighbor_allgatherv(c->send, LENGTH, type, c->receive, c->counts, c->displs, type,
                                 comm, request);
        break;
    case ALLTOALL:
        MPI_Ineighbor_alltoall(c->send, LENGTH, type, c->receive, LENGTH, type, comm, request);
        break;
    case ALLTOALLV:
        MPI_Ineighbor_alltoallv(c->send, c->counts, c->displs, type, c->receive, c->counts,
                                c->displs, type, comm, request);
        break;
    default:
        MPI_Ineighbor_alltoallw(c->send, c->counts, c->places, c->types, c->receive, c->counts,
                                c->places, c->types, comm, request);
        break;
    }
}

static void keep(cell_t* c, MPI_Comm comm, MPI_Request* request) {
    const MPI_Datatype type = c->types[0];
    const MPI_Info info = MPI_INFO_NULL;
    switch (c->kind) {
    case ALLGATHER:
        MPI_Neighbor_allgather_init(c->send, LENGTH, type, c->receive, LENGTH, type, comm, info,
                                    request);
        break;
    case ALLGATHERV:
        MPI_Neighbor_allgatherv_init(c->send, LENGTH, type, c->receive, c->counts, c->displs, type,
                                     comm, info, request);
        break;
    case ALLTOALL:
        MPI_Neighbor_alltoall_init(c->send, LENGTH, type, c->receive, LENGTH, type, comm, info,
                                   request);
        break;
    case ALLTOALLV:
        MPI_Neighbor_alltoallv_init(c->send, c->counts, c->displs, type, c->receive, c->counts,
                                    c->displs, type, comm, info, request);
        break;
    default:
        MPI_Neighbor_alltoallw_init(c->send, c->counts, c->places, c->types, c->receive, c->counts,
                                    c->places, c->types, comm, info, request);
        break;
    }
}

/** Makes a blocking call of a kind of which others are outstanding. */
static void run_blocking(MPI_Comm comm) {
    const int64_t mine[SIDES] = {2 * world_rank, 2 * world_rank + 1};
    int64_t got[SIDES];
    MPI_Neighbor_alltoall(mine, 1, MPI_INT64_T, got, 1, MPI_INT64_T, comm);
    require(got[BELOW] == 2 * neighbor(BELOW) + 1 && got[ABOVE] == 2 * neighbor(ABOVE),
            "a blocking one among others");
}

/** Sends a message to the process above and receives one from below while collectives are
 * outstanding. */
static void pass_message(MPI_Comm comm, int tag) {
    int got = -1;
    MPI_Sendrecv(&world_rank, 1, MPI_INT, neighbor(ABOVE), tag, &got, 1, MPI_INT, neighbor(BELOW),
                 tag, comm, MPI_STATUS_IGNORE);
    require(got == neighbor(BELOW), "a message among collectives");
}

/** What comes from below was sent up there. Where all neighbours get the same, there is only
 * that block. */
static void check(const cell_t* cell, const char* what) {
    int elements = 0;
    for (int side = 0; side < SIDES; side++) {
        const int block = cell->kind <= ALLGATHERV ? 0 : 1 - side;
        for (int i = 0; i < LENGTH; i++) {
            require(cell->receive[place(cell, side, i)] == value(cell, neighbor(side), block, i),
                    what);
        }
    }
    for (int i = 0; i < SIDES * LENGTH * STRIDE_MAX; i++) {
        elements += cell->receive[i] != -1;
    }
    require(elements == SIDES * LENGTH, what); /* Nothing else may be written. */
}

/* ------------------------------------------------------------------ the parts */

void neighbors_many(void) {
    enum { MANY = 300, ROUNDS = 3 * WAYS };
    cell_t* cells = malloc(MANY * sizeof *cells);
    MPI_Request requests[MANY];
    MPI_Comm ring = make_ring();
    uint64_t random = (uint64_t)world_rank + 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            describe(&cells[i], (kind_t)((i + round) % KINDS), 1, MPI_INT64_T);
            fill(&cells[i], round * MANY + i);
            start(&cells[i], ring, &requests[i]);
            if (i % 29 == 0) {
                run_blocking(ring);
                pass_message(ring, i);
            }
        }
        complete(requests, MANY, round % WAYS, &random);
        for (int i = 0; i < MANY; i++) {
            check(&cells[i], "one of many along edges");
        }
    }
    MPI_Comm_free(&ring);
    free(cells);
}

/** The communicator and the datatype are freed while calls are outstanding, or between their
 * starts. */
void neighbors_freed(void) {
    enum { ROUNDS = 10 };
    static cell_t cells[2 * KINDS];
    MPI_Request requests[2 * KINDS];
    uint64_t random = (uint64_t)world_rank + 5;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm ring = make_ring();
        MPI_Datatype gapped;
        MPI_Type_create_resized(MPI_INT64_T, 0, 2 * (MPI_Aint)sizeof(int64_t), &gapped);
        MPI_Type_commit(&gapped);
        for (int i = 0; i < 2 * KINDS; i++) {
            describe(&cells[i], (kind_t)(i % KINDS), 2, gapped);
            fill(&cells[i], round);
            if (i < KINDS) {
                start(&cells[i], ring, &requests[i]);
            } else {
                keep(&cells[i], ring, &requests[i]);
            }
        }
        MPI_Type_free(&gapped);
        MPI_Comm_free(&ring);
        MPI_Startall(KINDS, requests + KINDS);
        complete(requests, KINDS, round % WAYS, &random);
        MPI_Waitall(KINDS, requests + KINDS, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 2 * KINDS; i++) {
            check(&cells[i], "freed before the end, along edges");
            fill(&cells[i], round + ROUNDS);
        }
        MPI_Startall(KINDS, requests + KINDS);
        for (int i = KINDS; i < 2 * KINDS; i++) {
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            check(&cells[i], "freed between starts, along edges");
            MPI_Request_free(&requests[i]);
        }
    }
}

/** The ranks start requests in different orders, while other collectives go on. */
void neighbors_persistent(void) {
    enum { KEPT = 4 * KINDS, ROUNDS = 30 };
    static cell_t cells[KEPT];
    static cell_t beside;
    MPI_Request requests[KEPT];
    MPI_Comm ring = make_ring();
    uint64_t random = (uint64_t)world_rank + 77;
    for (int i = 0; i < KEPT; i++) {
        describe(&cells[i], (kind_t)(i % KINDS), 1, MPI_INT64_T);
        keep(&cells[i], ring, &requests[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request started[KEPT];
        MPI_Request other;
        for (int i = 0; i < KEPT; i++) {
            fill(&cells[i], round * KEPT + i);
            started[i] = requests[i];
        }
        describe(&beside, (kind_t)(round % KINDS), 1, MPI_INT64_T);
        fill(&beside, -round);
        shuffle(started, KEPT, &random);
        MPI_Startall(KEPT / 2, started);
        start(&beside, ring, &other);
        for (int i = KEPT / 2; i < KEPT; i++) {
            MPI_Start(&started[i]);
        }
        run_blocking(ring);
        shuffle(started, KEPT, &random);
        MPI_Waitall(KEPT, started, MPI_STATUSES_IGNORE);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
        check(&beside, "beside persistent ones");
        for (int i = 0; i < KEPT; i++) {
            check(&cells[i], "persistent along edges");
        }
    }
    MPI_Comm_free(&ring);
    for (int i = 0; i < KEPT; i++) {
        /* Each rank frees them in an order of its own. */
        MPI_Request_free(&requests[(i + world_rank) % KEPT]);
    }
}
