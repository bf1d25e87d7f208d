#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "collbench.h"

enum { LINE = 64, PING_PONGS = 2000, POLLS_BEFORE_PROGRESS = 10000, POLLS_BEFORE_YIELD = 1000 };

struct shared {
    _Alignas(LINE) atomic_int arrived;
    _Alignas(LINE) atomic_int generation;
    _Alignas(LINE) atomic_int ball;
};

struct sync {
    MPI_Win window;
    MPI_Comm comm;
    struct shared* shared;
    int rank;
    int size;
};

struct sync* sync_create(MPI_Comm comm) {
    struct sync* s = calloc(1, sizeof(*s));
    MPI_Aint bytes;
    int unit;

    s->comm = comm;
    MPI_Comm_rank(comm, &s->rank);
    MPI_Comm_size(comm, &s->size);
    bytes = s->rank == 0 ? (MPI_Aint)sizeof(struct shared) : 0;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm, &s->shared, &s->window);
    MPI_Win_shared_query(s->window, 0, &bytes, &unit, &s->shared);
    if (s->rank == 0) {
        atomic_store(&s->shared->arrived, 0);
        atomic_store(&s->shared->generation, 0);
        atomic_store(&s->shared->ball, 0);
    }
    MPI_Barrier(comm);
    return s;
}

void sync_free(struct sync* s) {
    MPI_Win_free(&s->window);
    free(s);
}

/* A rank may still be inside an operation that its peers have left, waiting for what only their
 * calls of MPI bring about (pml ucx with pending sends). So one that waits for long calls MPI. */
static void wait_for_generation(struct sync* s, int left, int yield) {
    int polls = 0;
    int flag;

    while (atomic_load_explicit(&s->shared->generation, memory_order_acquire) == left) {
        if (++polls % POLLS_BEFORE_PROGRESS == 0) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, s->comm, &flag, MPI_STATUS_IGNORE);
        }
        if (yield) {
            sched_yield();
        }
    }
}

void sync_barrier(struct sync* s, int yield) {
    int generation = atomic_load_explicit(&s->shared->generation, memory_order_acquire);

    if (atomic_fetch_add_explicit(&s->shared->arrived, 1, memory_order_acq_rel) == s->size - 1) {
        atomic_store_explicit(&s->shared->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&s->shared->generation, generation + 1, memory_order_release);
        return;
    }
    wait_for_generation(s, generation, yield);
}

/* Two ranks that share a processor would wait for each other's time slice to end: they yield. */
static void wait_for_ball(const struct sync* s, int ball) {
    int polls = 0;

    while (atomic_load_explicit(&s->shared->ball, memory_order_acquire) < ball) {
        if (++polls % POLLS_BEFORE_YIELD == 0) {
            sched_yield();
        }
    }
}

double sync_ping_pong_ns(struct sync* s) {
    int base = atomic_load(&s->shared->ball);
    double start;
    int i;

    sync_barrier(s, 1);
    start = MPI_Wtime();
    for (i = 0; s->rank < 2 && s->size > 1 && i < PING_PONGS; ++i) {
        if (s->rank == i % 2) {
            atomic_store_explicit(&s->shared->ball, base + i + 1, memory_order_release);
        } else {
            wait_for_ball(s, base + i + 1);
        }
    }
    sync_barrier(s, 1);
    return (MPI_Wtime() - start) * 1e9 / PING_PONGS;
}
