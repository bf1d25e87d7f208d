/*
 * How much memory UCG keeps after the program has had many requests outstanding at once, or has
 * called something once on each of many communicators: not more than some times what a few of them
 * need, however many there were. What malloc has given out is counted. Prints "kept memory ok" from
 * rank 0.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum {
    OUTSTANDING = 600,
    COMMUNICATORS = 200,
    GAPPED = 4000, /* Elements of 16 bytes, whose packed blocks are kept one by one. */
    DOUBLES = 1 << 17,
    KEPT_MAX = 32 << 20
};

static size_t allocated(void) {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

typedef struct {
    MPI_Datatype gapped;
    char* send;
    char* receive;
} buffers_t;

static void gather_gapped(buffers_t* b, int index, MPI_Request* request) {
    (void)index;
    MPI_Iallgather(b->send, GAPPED, b->gapped, b->receive, GAPPED, b->gapped, MPI_COMM_WORLD,
                   request);
}

static void reduce_long(buffers_t* b, int index, MPI_Request* request) {
    (void)index;
    MPI_Iallreduce(b->send, b->receive, DOUBLES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
}

/** Returns whether a burst of requests leaves more than it may. */
static int burst(const char* what, buffers_t* b,
                 void (*start)(buffers_t* b, int index, MPI_Request* request)) {
    MPI_Request requests[OUTSTANDING];
    start(b, 0, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    const size_t before = allocated();
    for (int i = 0; i < OUTSTANDING; i++) {
        start(b, i, &requests[i]);
    }
    MPI_Waitall(OUTSTANDING, requests, MPI_STATUSES_IGNORE);
    const size_t after = allocated();
    if (after > before + KEPT_MAX) {
        fprintf(stderr, "%d of %s: %zu KiB before, %zu KiB after\n", OUTSTANDING, what,
                before >> 10, after >> 10);
        return 1;
    }
    return 0;
}

/** Broadcasts gapped elements once on each of many communicators. */
static int once_each(buffers_t* b) {
    MPI_Comm comms[COMMUNICATORS];
    for (int i = 0; i < COMMUNICATORS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        MPI_Barrier(comms[i]);
    }
    const size_t before = allocated();
    for (int i = 0; i < COMMUNICATORS; i++) {
        MPI_Allgather(b->send, GAPPED, b->gapped, b->receive, GAPPED, b->gapped, comms[i]);
    }
    const size_t after = allocated();
    for (int i = 0; i < COMMUNICATORS; i++) {
        MPI_Comm_free(&comms[i]);
    }
    if (after > before + KEPT_MAX) {
        fprintf(stderr, "%d communicators: %zu KiB before, %zu KiB after\n", COMMUNICATORS,
                before >> 10, after >> 10);
        return 1;
    }
    return 0;
}

int main(int argc, char** argv) {
    buffers_t b;
    MPI_Datatype two;
    int rank;
    int size;
    int wrong;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &two);
    MPI_Type_create_resized(two, 0, 4 * sizeof(double), &b.gapped);
    MPI_Type_commit(&b.gapped);
    b.send = calloc(DOUBLES, sizeof(double));
    b.receive = calloc((size_t)size * DOUBLES, sizeof(double));
    wrong =
        burst("allgather", &b, gather_gapped) + burst("allreduce", &b, reduce_long) + once_each(&b);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank && 0 == wrong) {
        printf("kept memory ok\n");
    }
    free(b.receive);
    free(b.send);
    MPI_Type_free(&b.gapped);
    MPI_Type_free(&two);
    MPI_Finalize();
    return wrong > 0;
}
