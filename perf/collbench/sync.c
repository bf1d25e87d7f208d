#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "collbench.h"

enum { LINE = 64, PING_PONGS = 2000 };

struct shared {
    _Alignas(LINE) atomic_int arrived;
    _Alignas(LINE) atomic_int generation;
    _Alignas(LINE) atomic_int ball;
};

struct sync {
    MPI_Win window;
    struct shared* shared;
    int rank;
    int size;
};

struct sync* sync_create(MPI_Comm comm) {
    struct sync* s = calloc(1, sizeof(*s));
    MPI_Aint bytes;
    int unit;

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

void sync_barrier(struct sync* s, int yield) {
    int generation = atomic_load_explicit(&s->shared->generation, memory_order_acquire);

    if (atomic_fetch_add_explicit(&s->shared->arrived, 1, memory_order_acq_rel) == s->size - 1) {
        atomic_store_explicit(&s->shared->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&s->shared->generation, generation + 1, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&s->shared->generation, memory_order_acquire) == generation) {
        if (yield) {
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
            while (atomic_load_explicit(&s->shared->ball, memory_order_acquire) <= base + i) {
            }
        }
    }
    sync_barrier(s, 1);
    return (MPI_Wtime() - start) * 1e9 / PING_PONGS;
}
