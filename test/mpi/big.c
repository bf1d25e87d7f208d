/*
 * More than 2^31 bytes, and blocks that lie beyond them, in every collective and form. There are
 * two ranks, each with one buffer of somewhat more than 2 GiB, which is read and written in place.
 * Rank 0 prints "big ok". usage: big FORM (blocking, nonblocking or persistent).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "forms.h"
#include "persistent.h"

/* The lengths are in words of 8 bytes. */
#define HALF ((1 << 27) + 3)
#define WHOLE (2 * HALF)
#define FAR_AWAY (1 << 28) /* This is beyond 2^31 bytes. */

static int rank;
static form_t wanted;
static MPI_Comm comm;   /* It has both ranks; it is a ring, for neighbourhood collectives. */
static uint64_t* words; /* The buffer has WHOLE words. */

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "big: rank %d: wrong: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/** Makes a call, whose last argument is the communicator, in the form that is wanted. */
#define CALL(name, ...)                                                                            \
    do {                                                                                           \
        MPI_Request request;                                                                       \
        if (BLOCKING == wanted) {                                                                  \
            MPI_##name(__VA_ARGS__, comm);                                                         \
        } else if (NONBLOCKING == wanted) {                                                        \
            MPI_I##name##_(__VA_ARGS__, comm, &request);                                           \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                                 \
        } else {                                                                                   \
            PMPI_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request);                        \
            MPI_Start(&request);                                                                   \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                                 \
            MPI_Request_free(&request);                                                            \
        }                                                                                          \
    } while (0)

/* MPI spells these names with a small letter. */
#define MPI_IAllgather_ MPI_Iallgather
#define MPI_IAllgatherv_ MPI_Iallgatherv
#define MPI_IAllreduce_ MPI_Iallreduce
#define MPI_IAlltoall_ MPI_Ialltoall
#define MPI_IAlltoallv_ MPI_Ialltoallv
#define MPI_IAlltoallw_ MPI_Ialltoallw
#define MPI_IBcast_ MPI_Ibcast
#define MPI_IExscan_ MPI_Iexscan
#define MPI_IGather_ MPI_Igather
#define MPI_IGatherv_ MPI_Igatherv
#define MPI_INeighbor_alltoallv_ MPI_Ineighbor_alltoallv
#define MPI_IReduce_ MPI_Ireduce
#define MPI_IReduce_scatter_ MPI_Ireduce_scatter
#define MPI_IReduce_scatter_block_ MPI_Ireduce_scatter_block
#define MPI_IScan_ MPI_Iscan
#define MPI_IScatter_ MPI_Iscatter
#define MPI_IScatterv_ MPI_Iscatterv

/** The value that a rank contributes at a place; no two places near each other have the same
 * one. */
static uint64_t value(int of, size_t place) {
    return (place + 1) * 0x9e3779b97f4a7c15U + (uint64_t)of;
}

static void fill(size_t first, size_t count, int of) {
    for (size_t i = first; i < first + count; i++) {
        words[i] = value(of, i);
    }
}

/** Do the `count` words from `first` on hold those of rank `of` from `place` on? */
static int holds(size_t first, size_t count, int of, size_t place) {
    for (size_t i = 0; i < count; i++) {
        if (words[first + i] != value(of, place + i)) {
            return 0;
        }
    }
    return 1;
}

static int holds_sums(size_t first, size_t count, size_t place) {
    for (size_t i = 0; i < count; i++) {
        if (words[first + i] != value(0, place + i) + value(1, place + i)) {
            return 0;
        }
    }
    return 1;
}

/* ------------------------------------------------------------------ long vectors */

static void bcast(void) {
    fill(0, WHOLE, rank);
    CALL(Bcast, words, WHOLE, MPI_UINT64_T, 1);
    require(holds(0, WHOLE, 1, 0), "bcast");
}

static void reductions(void) {
    fill(0, WHOLE, rank);
    CALL(Allreduce, MPI_IN_PLACE, words, WHOLE, MPI_UINT64_T, MPI_SUM);
    require(holds_sums(0, WHOLE, 0), "allreduce");
    fill(0, WHOLE, rank);
    CALL(Reduce, 0 == rank ? MPI_IN_PLACE : words, words, WHOLE, MPI_UINT64_T, MPI_SUM, 0);
    require(0 == rank ? holds_sums(0, WHOLE, 0) : holds(0, WHOLE, 1, 0), "reduce");
    fill(0, WHOLE, rank);
    CALL(Reduce_scatter_block, MPI_IN_PLACE, words, HALF, MPI_UINT64_T, MPI_SUM);
    require(holds_sums(0, HALF, (size_t)rank * HALF), "reduce_scatter_block");
    const int counts[2] = {HALF + 5, HALF - 5};
    fill(0, WHOLE, rank);
    CALL(Reduce_scatter, MPI_IN_PLACE, words, counts, MPI_UINT64_T, MPI_SUM);
    require(holds_sums(0, (size_t)counts[rank], 0 == rank ? 0 : (size_t)counts[0]),
            "reduce_scatter");
}

static void scans(void) {
    fill(0, WHOLE, rank);
    CALL(Scan, MPI_IN_PLACE, words, WHOLE, MPI_UINT64_T, MPI_SUM);
    require(0 == rank ? holds(0, WHOLE, 0, 0) : holds_sums(0, WHOLE, 0), "scan");
    fill(0, WHOLE, rank);
    CALL(Exscan, MPI_IN_PLACE, words, WHOLE, MPI_UINT64_T, MPI_SUM);
    require(0 == rank || holds(0, WHOLE, 0, 0), "exscan");
}

static void to_all(void) {
    fill((size_t)rank * HALF, HALF, rank);
    CALL(Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, words, HALF, MPI_UINT64_T);
    require(holds(0, HALF, 0, 0) && holds(HALF, HALF, 1, HALF), "allgather");
    fill(0, WHOLE, rank);
    CALL(Alltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, words, HALF, MPI_UINT64_T);
    require(holds(0, HALF, 0, (size_t)rank * HALF) && holds(HALF, HALF, 1, (size_t)rank * HALF),
            "alltoall");
}

static void at_root(void) {
    fill(0, HALF, rank);
    CALL(Gather, 0 == rank ? MPI_IN_PLACE : words, HALF, MPI_UINT64_T, words, HALF, MPI_UINT64_T,
         0);
    require(0 != rank || (holds(0, HALF, 0, 0) && holds(HALF, HALF, 1, 0)), "gather");
    fill(0, WHOLE, rank);
    CALL(Scatter, words, HALF, MPI_UINT64_T, 0 == rank ? MPI_IN_PLACE : words, HALF, MPI_UINT64_T,
         0);
    require(0 == rank ? holds(0, WHOLE, 0, 0) : holds(0, HALF, 0, HALF), "scatter");
}

/* ------------------------------------------------------------------ blocks beyond 2^31 bytes */

enum { FEW = 5 };

static const int few[2] = {FEW, FEW};
static const int displs[2] = {1, FAR_AWAY};

static void fill_blocks(void) {
    fill((size_t)displs[0], FEW, rank);
    fill((size_t)displs[1], FEW, rank);
}

static void far_blocks(void) {
    uint64_t mine[FEW];
    uint64_t* const own = words + displs[rank];
    fill_blocks();
    CALL(Allgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, words, few, displs, MPI_UINT64_T);
    require(holds((size_t)displs[0], FEW, 0, 1) && holds(FAR_AWAY, FEW, 1, FAR_AWAY), "allgatherv");
    fill_blocks();
    memcpy(mine, own, sizeof mine);
    CALL(Gatherv, mine, FEW, MPI_UINT64_T, words, few, displs, MPI_UINT64_T, 0);
    require(0 != rank || holds(FAR_AWAY, FEW, 1, FAR_AWAY), "gatherv");
    fill_blocks();
    CALL(Scatterv, words, few, displs, MPI_UINT64_T, mine, FEW, MPI_UINT64_T, 0);
    require(mine[FEW - 1] == value(0, (size_t)displs[rank] + FEW - 1), "scatterv");
    fill_blocks();
    CALL(Alltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, words, few, displs, MPI_UINT64_T);
    require(holds(1, FEW, 0, (size_t)displs[rank]) && holds(FAR_AWAY, FEW, 1, (size_t)displs[rank]),
            "alltoallv");
}

/** Each rank is the other rank's neighbour on both sides. */
static void far_neighbors(void) {
    uint64_t mine[2 * FEW];
    fill_blocks();
    memcpy(mine, words + FAR_AWAY, sizeof mine / 2);
    memcpy(mine + FEW, words + 1, sizeof mine / 2);
    CALL(Neighbor_alltoallv, mine, few, (const int[]){0, FEW}, MPI_UINT64_T, words, few, displs,
         MPI_UINT64_T);
    require(holds(1, FEW, 1 - rank, 1) && holds(FAR_AWAY, FEW, 1 - rank, FAR_AWAY),
            "neighbor_alltoallv");
}

/** The displacements of MPI_Alltoallw are ints in bytes, so only extents can reach further. */
static void far_elements(void) {
    enum { STRIDE = 1 << 25, COUNT = 9 }; /* The last one lies at 2^28 words. */
    MPI_Datatype strided;
    MPI_Type_create_resized(MPI_UINT64_T, 0, STRIDE * sizeof(uint64_t), &strided);
    MPI_Type_commit(&strided);
    const MPI_Datatype types[2] = {strided, strided};
    const int counts[2] = {COUNT, COUNT};
    const int places[2] = {0, 64};
    for (size_t i = 0; i < COUNT; i++) {
        fill(i * STRIDE, 1, rank);
        fill(i * STRIDE + 8, 1, rank);
    }
    CALL(Alltoallw, MPI_IN_PLACE, NULL, NULL, NULL, words, counts, places, types);
    for (size_t i = 0; i < COUNT; i++) {
        const size_t theirs = i * STRIDE + (0 == rank ? 0 : 8);
        require(holds(i * STRIDE, 1, 0, theirs) && holds(i * STRIDE + 8, 1, 1, theirs),
                "alltoallw");
    }
    MPI_Type_free(&strided);
}

/* ------------------------------------------------------------------ packing */

/** The elements are a page each. The root's overlap, so that 2 GiB are packed out of little
 * memory. */
static void packed(void) {
    enum { PAGE = 512, PAGES = WHOLE / PAGE };
    MPI_Datatype page, sliding;
    MPI_Type_contiguous(PAGE, MPI_UINT64_T, &page);
    MPI_Type_create_resized(page, 0, sizeof(uint64_t), &sliding);
    MPI_Type_commit(&page);
    MPI_Type_commit(&sliding);
    fill(0, 0 == rank ? PAGES + PAGE : 0, 0);
    CALL(Bcast, words, PAGES, 0 == rank ? sliding : page, 0);
    for (size_t i = 0; 0 != rank && i < PAGES; i++) {
        require(holds(i * PAGE, PAGE, 0, i), "bcast of elements that are packed");
    }
    MPI_Type_free(&sliding);
    MPI_Type_free(&page);
}

/** Broadcasts more than 2^31 elements of MPI_BYTE by a type that has many of them. */
static void bytes(void) {
    MPI_Datatype some;
    MPI_Type_contiguous(1 << 20, MPI_BYTE, &some);
    MPI_Type_commit(&some);
    fill(0, WHOLE, rank);
    CALL(Bcast, words, 2048, some, 0);
    require(holds(0, FAR_AWAY, 0, 0) && holds(FAR_AWAY, 4, rank, FAR_AWAY), "bcast of bytes");
    MPI_Type_free(&some);
}

/* ------------------------------------------------------------------ more than an int counts */

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 6
#define BYTES ((MPI_Count)WHOLE * (MPI_Count)sizeof *words)

#define CALL_LARGE(name, started, ...)                                                             \
    do {                                                                                           \
        MPI_Request request;                                                                       \
        if (BLOCKING == wanted) {                                                                  \
            MPI_##name##_c(__VA_ARGS__, comm);                                                     \
        } else if (NONBLOCKING == wanted) {                                                        \
            MPI_##started##_c(__VA_ARGS__, comm, &request);                                        \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                                 \
        } else {                                                                                   \
            MPI_##name##_init_c(__VA_ARGS__, comm, MPI_INFO_NULL, &request);                       \
            MPI_Start(&request);                                                                   \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                                 \
            MPI_Request_free(&request);                                                            \
        }                                                                                          \
    } while (0)

static int holds_combined(size_t first, size_t count, size_t place) {
    for (size_t i = 0; i < count; i++) {
        if (words[first + i] != (value(0, place + i) ^ value(1, place + i))) {
            return 0;
        }
    }
    return 1;
}

/** Sends more than 2^31 elements of one byte each. */
static void many(void) {
    const MPI_Count counts[2] = {BYTES - (MPI_Count)sizeof *words, sizeof *words};
    const MPI_Aint places[2] = {0, counts[0]};
    fill(0, WHOLE, rank);
    CALL_LARGE(Bcast, Ibcast, words, BYTES, MPI_BYTE, 1);
    require(holds(0, WHOLE, 1, 0), "bcast of many");
    fill(0, WHOLE, rank);
    CALL_LARGE(Allreduce, Iallreduce, MPI_IN_PLACE, words, BYTES, MPI_UINT8_T, MPI_BXOR);
    require(holds_combined(0, WHOLE, 0), "allreduce of many");
    fill(0, WHOLE, rank);
    CALL_LARGE(Reduce_scatter, Ireduce_scatter, MPI_IN_PLACE, words, counts, MPI_UINT8_T, MPI_BXOR);
    require(0 == rank ? holds_combined(0, WHOLE - 1, 0) : holds_combined(0, 1, WHOLE - 1),
            "reduce_scatter of many");
    fill(0, WHOLE, rank);
    CALL_LARGE(Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, words, counts, places,
               MPI_BYTE);
    require(holds(0, WHOLE - 1, 0, 0) && holds(WHOLE - 1, 1, 1, WHOLE - 1), "allgatherv of many");
}
#else
static void many(void) {}
#endif

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char* name = 2 == argc ? argv[1] : "";
    wanted = 0 == strcmp(name, "nonblocking")  ? NONBLOCKING
             : 0 == strcmp(name, "persistent") ? PERSISTENT
                                               : BLOCKING;
    words = mmap(NULL, WHOLE * sizeof *words, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(MAP_FAILED != words, "no memory");
    MPI_Cart_create(MPI_COMM_WORLD, 1, &(int){2}, &(int){1}, 0, &comm);
    MPI_Barrier(comm); /* Nonblocking calls need a group. */
    far_neighbors();
    far_blocks();
    far_elements();
    packed();
    bytes();
    bcast();
    reductions();
    scans();
    to_all();
    at_root();
    many();
    MPI_Comm_free(&comm);
    munmap(words, WHOLE * sizeof *words);
    if (0 == rank) {
        printf("big ok\n");
    }
    MPI_Finalize();
    return 0;
}
