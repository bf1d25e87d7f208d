#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "collbench.h"

enum {
    LINE = 64,
    PING_PONGS = 2000,
    POLLS_BEFORE_PROGRESS = 10000,
    POLLS_BEFORE_YIELD = 1000,
    NAP_NS = 1000000
};

/* What a rank does between two polls. */
enum patience { SPINS, YIELDS, SLEEPS };

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

    MPI_Comm_dup(comm, &s->comm); /* Keeps the barrier's messages apart. */
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

/* A dissemination barrier by messages: MPI's point-to-point communication, which no collective
 * component replaces. */
static void barrier_by_messages(const struct sync* s) {
    int distance;

    for (distance = 1; distance < s->size; distance *= 2) {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (s->rank + distance) % s->size, 0, NULL, 0, MPI_BYTE,
                     (s->rank + s->size - distance) % s->size, 0, s->comm, MPI_STATUS_IGNORE);
    }
}

/* Waits for the next generation of the barrier. A peer may still be inside an operation that
 * this rank has left, and wait for progress that only calls of MPI make here (pml ucx with
 * pending sends). So a rank that waits for long calls MPI. */
static void wait_for_generation(struct sync* s, int left, enum patience patience) {
    const struct timespec nap = {0, NAP_NS};
    int polls = 0;
    int flag;

    while (atomic_load_explicit(&s->shared->generation, memory_order_acquire) == left) {
        if (++polls % POLLS_BEFORE_PROGRESS == 0) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, s->comm, &flag, MPI_STATUS_IGNORE);
        }
        if (patience == YIELDS) {
            sched_yield();
        } else if (patience == SLEEPS) {
            nanosleep(&nap, NULL);
        }
    }
}

static void wait_for_all(struct sync* s, enum patience patience) {
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
    wait_for_generation(s, generation, patience);
}

void sync_barrier(struct sync* s, int yield) {
    wait_for_all(s, yield ? YIELDS : SPINS);
}

/* Waits for the ball. Two ranks that share a processor would wait for each other's time slice to
 * end, so they yield. */
static void wait_for_ball(const struct sync* s, int ball) {
    int polls = 0;

    while (atomic_load_explicit(&s->shared->ball, memory_order_acquire) < ball) {
        if (++polls % POLLS_BEFORE_YIELD == 0) {
            sched_yield();
        }
    }
}

/* Binds this rank to one processor if it may run on several, so that the ball goes from one to
 * the other. Stores the previous processors in `before`. Returns false if the rank stays where
 * it is. */
static int go_to_own_processor(int rank, cpu_set_t* before) {
    cpu_set_t one;
    int cpu, seen = 0;

    if (sched_getaffinity(0, sizeof(*before), before) != 0 || CPU_COUNT(before) < 2) {
        return 0;
    }
    CPU_ZERO(&one);
    for (cpu = 0; cpu < CPU_SETSIZE && seen <= rank; ++cpu) {
        if (CPU_ISSET(cpu, before) && seen++ == rank) {
            CPU_SET(cpu, &one);
        }
    }
    return sched_setaffinity(0, sizeof(one), &one) == 0;
}

static void play(const struct sync* s, int base, int count) {
    int i;

    for (i = 0; i < count; ++i) {
        if (s->rank == i % 2) {
            atomic_store_explicit(&s->shared->ball, base + i + 1, memory_order_release);
        } else {
            wait_for_ball(s, base + i + 1);
        }
    }
}

/* Plays on ranks 0 and 1. The first two rounds end when both ranks are on their processors. */
static double play_ns(const struct sync* s, int base) {
    cpu_set_t before;
    int moved = go_to_own_processor(s->rank, &before);
    double start, seconds;

    play(s, base, 2);
    start = MPI_Wtime();
    play(s, base + 2, PING_PONGS);
    seconds = MPI_Wtime() - start;
    if (moved) {
        sched_setaffinity(0, sizeof(before), &before);
    }
    return seconds * 1e9 / PING_PONGS;
}

double sync_ping_pong_ns(struct sync* s) {
    double ns = NAN;
    int base;

    if (s->shared == NULL || s->size < 2) {
        return NAN;
    }
    base = atomic_load(&s->shared->ball);
    wait_for_all(s, YIELDS);
    if (s->rank < 2) {
        ns = play_ns(s, base);
    }
    wait_for_all(s, SLEEPS); /* The others leave the processors to the two. */
    return ns;
}
