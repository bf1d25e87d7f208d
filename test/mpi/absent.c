/*
 * absent: a rank that computes between the start of a nonblocking collective and its wait, and
 * calls no function of MPI meanwhile, keeps no other rank waiting, and finds its result there.
 *
 * Ranks tell one another where they are by numbers in a shared window, not by messages: the rank
 * that is elsewhere looks only at these numbers, until the others have their results, for 60 s at
 * most.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { LENGTH = 30000, FUNCTIONS = 5, PATIENCE_S = 60 };

static const char* const names[FUNCTIONS] = {"ibcast", "ireduce", "iallreduce", "iallgather",
                                             "ialltoall"};

static int rank;
static int size;
static long* ours;   /* This rank's input. */
static long* theirs; /* This rank's result. */
/* In the window: how many ranks have begun, and how many have ended. */
static _Atomic int* arrived;

static void start(int which, MPI_Request* request) {
    const MPI_Comm comm = MPI_COMM_WORLD;
    long* vector = rank == 0 ? ours : theirs;

    switch (which) {
    case 0: MPI_Ibcast(vector, LENGTH, MPI_LONG, 0, comm, request); break;
    case 1: MPI_Ireduce(ours, theirs, LENGTH, MPI_LONG, MPI_SUM, 0, comm, request); break;
    case 2: MPI_Iallreduce(ours, theirs, LENGTH, MPI_LONG, MPI_SUM, comm, request); break;
    case 3: MPI_Iallgather(ours, LENGTH, MPI_LONG, theirs, LENGTH, MPI_LONG, comm, request); break;
    default: MPI_Ialltoall(ours, LENGTH, MPI_LONG, theirs, LENGTH, MPI_LONG, comm, request);
    }
}

static long expected(int which, long i) {
    switch (which) {
    case 0: return i;
    case 1:
    case 2: return size * (size - 1) / 2 * 7L + size * i;
    case 3: return i / LENGTH * 7 + i % LENGTH;
    default: return i / LENGTH * 7 + (long)rank * LENGTH + i % LENGTH;
    }
}

static int is_right(int which) {
    const long count = which >= 3 ? (long)size * LENGTH : LENGTH;

    for (long i = 0; (which > 1 || (which == 0) == (rank != 0)) && i < count; i++) {
        if (theirs[i] != expected(which, i)) {
            return 0;
        }
    }
    return 1;
}

static int wait_until(_Atomic int* count, int wanted) {
    const double begin = MPI_Wtime();

    while (atomic_load(count) < wanted) {
        if (MPI_Wtime() - begin > PATIENCE_S) {
            return 0;
        }
    }
    return 1;
}

/* Returns what is wrong, or NULL. */
static const char* try(int which, int absent) {
    const char* wrong = NULL;
    MPI_Request request;
    int done = 0;

    memset(theirs, 0, sizeof(long) * LENGTH * (size_t)size);
    MPI_Barrier(MPI_COMM_WORLD);
    start(which, &request);
    atomic_fetch_add(&arrived[0], 1);
    if (rank == absent) {
        wrong = wait_until(&arrived[1], size - 1) ? NULL : "others wait for a rank that computes";
        if (wrong == NULL) {
            wrong = is_right(which) ? NULL : "the result is not there";
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            wrong = wrong == NULL && !done ? "the first look does not find the end" : wrong;
        }
    } else if (!wait_until(&arrived[0], size)) {
        wrong = "a start does not return";
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong = wrong == NULL && !is_right(which) ? "a wrong result" : wrong;
    if (rank != absent) {
        atomic_fetch_add(&arrived[1], 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        atomic_store(&arrived[0], 0);
        atomic_store(&arrived[1], 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return wrong;
}

int main(int argc, char** argv) {
    MPI_Win window;
    MPI_Aint bytes;
    int unit;
    int failures = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate_shared(rank == 0 ? 2 * sizeof(int) : 0, sizeof(int), MPI_INFO_NULL,
                            MPI_COMM_WORLD, &arrived, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &arrived);
    ours = malloc(sizeof(long) * LENGTH * (size_t)size);
    theirs = malloc(sizeof(long) * LENGTH * (size_t)size);
    for (long i = 0; i < (long)LENGTH * size; i++) {
        ours[i] = rank * 7L + i;
    }
    if (rank == 0) {
        atomic_store(&arrived[0], 0);
        atomic_store(&arrived[1], 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int which = 0; which < FUNCTIONS; which++) {
        for (int absent = 0; absent < size; absent++) {
            const char* wrong = try(which, absent);
            if (wrong != NULL) {
                printf("rank %d of %d, %s, rank %d is elsewhere: %s\n", rank, size, names[which],
                       absent, wrong);
                failures++;
            }
        }
    }
    MPI_Win_free(&window);
    free(ours);
    free(theirs);
    if (failures > 0) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    if (rank == 0) {
        puts("absent ok");
    }
    return 0;
}
