/*
 * Blocking calls that a callback interrupts before they have ended: what the callback waits for
 * comes from ranks for which the interrupted call has to end first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <mpi.h>

#include "callbacks.h"

/* ------------------------------------------------------------------ calls that are interrupted */

static MPI_Op own_sum;

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *count; i++) {
        ((int*)inout)[i] += ((const int*)in)[i];
    }
}

/** Buffers of all processes' elements: each has sent i + its rank. */
typedef struct {
    int count;
    int* mine;
    int* all;
    int* counts;
    int* places;
} buffers_t;

static buffers_t make_buffers(int count) {
    const size_t total = (size_t)count * (size_t)size;
    buffers_t buffers = {count, malloc(sizeof(int) * total), malloc(sizeof(int) * total),
                         malloc(sizeof(int) * (size_t)size), malloc(sizeof(int) * (size_t)size)};
    for (size_t i = 0; i < total; i++) {
        buffers.mine[i] = (int)i % count + rank;
        buffers.all[i] = -1;
    }
    for (int i = 0; i < size; i++) {
        buffers.counts[i] = count;
        buffers.places[i] = i * count;
    }
    return buffers;
}

static void free_buffers(buffers_t* buffers) {
    free(buffers->mine);
    free(buffers->all);
    free(buffers->counts);
    free(buffers->places);
}

static void check_all(const buffers_t* buffers) {
    for (int i = 0; i < buffers->count * size; i++) {
        require(buffers->all[i] == i % buffers->count + i / buffers->count, "gathered");
    }
}

static void check_sums(const buffers_t* buffers) {
    for (int i = 0; i < buffers->count; i++) {
        require(buffers->all[i] == i * size + size * (size - 1) / 2, "summed");
    }
}

static void allgather(MPI_Comm comm, buffers_t* b) {
    MPI_Allgather(b->mine, b->count, MPI_INT, b->all, b->count, MPI_INT, comm);
    check_all(b);
}

static void alltoall(MPI_Comm comm, buffers_t* b) {
    MPI_Alltoall(b->mine, b->count, MPI_INT, b->all, b->count, MPI_INT, comm);
    check_all(b);
}

static void alltoallv(MPI_Comm comm, buffers_t* b) {
    MPI_Alltoallv(b->mine, b->counts, b->places, MPI_INT, b->all, b->counts, b->places, MPI_INT,
                  comm);
    check_all(b);
}

static void allreduce(MPI_Comm comm, buffers_t* b) {
    MPI_Allreduce(b->mine, b->all, b->count, MPI_INT, MPI_SUM, comm);
    check_sums(b);
}

static void reduce(MPI_Comm comm, buffers_t* b) {
    MPI_Reduce(b->mine, b->all, b->count, MPI_INT, MPI_SUM, 0, comm);
    if (rank == 0) {
        check_sums(b);
    }
}

static void own_allreduce(MPI_Comm comm, buffers_t* b) {
    MPI_Allreduce(b->mine, b->all, b->count, MPI_INT, own_sum, comm);
    check_sums(b);
}

static void own_reduce(MPI_Comm comm, buffers_t* b) {
    MPI_Reduce(b->mine, b->all, b->count, MPI_INT, own_sum, 0, comm);
    if (rank == 0) {
        check_sums(b);
    }
}

static const struct {
    const char* name;
    void (*call)(MPI_Comm comm, buffers_t* buffers);
} outers[] = {
    {"allgather", allgather},
    {"alltoall", alltoall},
    {"alltoallv", alltoallv},
    {"allreduce", allreduce},
    {"reduce", reduce},
    {"allreduce by an own operator", own_allreduce},
    {"reduce by an own operator", own_reduce},
};

/* ------------------------------------------------------------------ what interrupts them */

/** What rank 0 waits for within the outer call, and what the others do for it after that call. */
typedef struct {
    const char* name;
    void (*wait)(MPI_Comm outer, MPI_Comm other);
    void (*answer)(MPI_Comm outer, MPI_Comm other);
} inner_t;

static void barrier_on_other(MPI_Comm outer, MPI_Comm other) {
    (void)outer;
    MPI_Barrier(other);
}

static void barrier_on_outer(MPI_Comm outer, MPI_Comm other) {
    (void)other;
    MPI_Barrier(outer);
}

static void nonblocking_on_other(MPI_Comm outer, MPI_Comm other) {
    (void)outer;
    int sum = 0;
    MPI_Request request;
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, other, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(sum == size * (size - 1) / 2, "summed by a nonblocking call");
}

static void receive_all(MPI_Comm outer, MPI_Comm other) {
    (void)other;
    for (int i = 1; i < size; i++) {
        MPI_Recv(NULL, 0, MPI_INT, i, 0, outer, MPI_STATUS_IGNORE);
    }
}

static void send(MPI_Comm outer, MPI_Comm other) {
    (void)other;
    MPI_Send(NULL, 0, MPI_INT, 0, 0, outer);
}

static const inner_t inners[] = {
    {"a barrier of another communicator", barrier_on_other, barrier_on_other},
    {"a barrier of the same", barrier_on_outer, barrier_on_outer},
    {"a nonblocking call", nonblocking_on_other, nonblocking_on_other},
    {"messages", receive_all, send},
};

typedef struct {
    const inner_t* inner;
    MPI_Comm outer;
    MPI_Comm other;
    int inside; /**< Rank 0 is in the outer call. */
    int nested; /**< How often the callback ran then. */
} interruption_t;

static int interrupt(MPI_Datatype type, int keyval, void* value, void* extra) {
    (void)type;
    (void)keyval;
    (void)extra;
    interruption_t* interruption = value;
    interruption->nested += interruption->inside;
    interruption->inner->wait(interruption->outer, interruption->other);
    return MPI_SUCCESS;
}

/** When rank 0 begins the outer call, the call that its type is for has ended, but it has not been
 *  told: that comes with the first look at Open MPI's progress, long before the others begin. */
static void interrupt_call(size_t which, int count, int keyval, MPI_Comm comm,
                           interruption_t* interruption) {
    int* all = malloc(sizeof *all * (size_t)size);
    buffers_t buffers = make_buffers(count);
    MPI_Request request;
    if (rank == 0) {
        MPI_Datatype type;
        MPI_Type_contiguous(1, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Type_set_attr(type, keyval, interruption);
        MPI_Iallgather(&rank, 1, type, all, 1, type, comm, &request);
        MPI_Type_free(&type); /* The call has it: the others come when that is done. */
        for (int i = 1; i < size; i++) {
            MPI_Send(NULL, 0, MPI_INT, i, 0, comm);
        }
        usleep(5000);
        interruption->inside = 1;
        outers[which].call(interruption->outer, &buffers);
        interruption->inside = 0;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
        MPI_Iallgather(&rank, 1, MPI_INT, all, 1, MPI_INT, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        usleep(10000);
        outers[which].call(interruption->outer, &buffers);
        interruption->inner->answer(interruption->outer, interruption->other);
    }
    for (int i = 0; i < size; i++) {
        require(all[i] == i, "gathered beside");
    }
    free_buffers(&buffers);
    free(all);
}

static void interrupt_calls(int keyval, MPI_Comm comm, interruption_t* interruption) {
    enum { TIMES = 2 };
    static const int counts[] = {1, 20000, 500000};
    for (size_t i = 0; i < sizeof outers / sizeof *outers; i++) {
        for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
            for (int k = 0; k < TIMES; k++) {
                interrupt_call(i, counts[j], keyval, comm, interruption);
            }
        }
    }
}

void interrupted(void) {
    int keyval;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, interrupt, &keyval, NULL);
    MPI_Op_create(add, 1, &own_sum);
    for (size_t i = 0; i < sizeof inners / sizeof *inners; i++) {
        MPI_Comm comm;
        interruption_t interruption = {&inners[i], MPI_COMM_NULL, MPI_COMM_NULL, 0, 0};
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_dup(MPI_COMM_WORLD, &interruption.outer);
        MPI_Comm_dup(MPI_COMM_WORLD, &interruption.other);
        for (int j = 0; j < 40; j++) {
            MPI_Barrier(comm);
            MPI_Barrier(interruption.outer);
            MPI_Barrier(interruption.other);
        }
        interrupt_calls(keyval, comm, &interruption);
        require(rank != 0 || interruption.nested > 0, "some callbacks ran within the outer call");
        MPI_Comm_free(&interruption.other);
        MPI_Comm_free(&interruption.outer);
        MPI_Comm_free(&comm);
        if (rank == 0) {
            printf("interrupted by %s: done\n", inners[i].name);
            fflush(stdout);
        }
    }
    MPI_Op_free(&own_sum);
    MPI_Type_free_keyval(&keyval);
}
