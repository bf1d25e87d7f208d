#include <math.h>
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
    struct shared* shared; /* NULL: the ranks do not all share memory. */
    int rank;
    int size;
};

static int all_share_memory(MPI_Comm comm) {
    MPI_Comm host;
    int size, host_size;

    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(comm, &size);
    MPI_Comm_size(host, &host_size);
    MPI_Comm_free(&host);
    MPI_Allreduce(MPI_IN_PLACE, &host_size, 1, MPI_INT, MPI_MIN, comm);
    return host_size == size;
}

static void create_window(struct sync* s) {
    MPI_Aint bytes = s->rank == 0 ? (MPI_Aint)sizeof(struct shared) : 0;
    int unit;

    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, s->comm, &s->shared, &s->window);
    MPI_Win_shared_query(s->window, 0, &bytes, &unit, &s->shared);
    if (s->rank == 0) {
        atomic_store(&s->shared->arrived, 0);
        atomic_store(&s->shared->generation, 0);
        atomic_store(&s->shared->ball, 0);
    }
    MPI_Barrier(s->comm);
}

struct sync* sync_create(MPI_Comm comm) {
    struct sync* s = calloc(1, sizeof(*s));

    MPI_Comm_dup(comm, &s->comm); /* Messages of its barrier meet no others. */
    MPI_Comm_rank(comm, &s->rank);
    MPI_Comm_size(comm, &s->size);
    if (all_share_memory(comm)) {
        create_window(s);
    }
    return s;
}

void sync_free(struct sync* s) {
    if (s->shared != NULL) {
        MPI_Win_free(&s->window);
    }
    MPI_Comm_free(&s->comm);
    free(s);
}

/* Dissemination by messages: MPI's point-to-point communication, which no collective component
 * replaces. */
static void barrier_by_messages(const struct sync* s) {
    int distance;

    for (distance = 1; distance < s->size; distance *= 2) {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (s->rank + distance) % s->size, 0, NULL, 0, MPI_BYTE,
                     (s->rank + s->size - distance) % s->size, 0, s->comm, MPI_STATUS_IGNORE);
    }
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
    int generation;

    if (s->shared == NULL) {
        barrier_by_messages(s);
        return;
    }
    generation = atomic_load_explicit(&s->shared->generation, memory_order_acquire);
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
    double start;
    int base, i;

    if (s->shared == NULL) {
        return NAN;
    }
    base = atomic_load(&s->shared->ball);
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
