#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "array_reduction.h"

enum { LINE = 64 };

/* How far a thread has come in the tree; written by that thread alone. */
struct flag {
    _Alignas(LINE) atomic_long step;
};

/* Returns the bytes of this thread's stack, used or not. */
static size_t stack_size(void) {
    pthread_attr_t attributes;
    size_t size = 0;

    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &size);
        pthread_attr_destroy(&attributes);
    }
    return size;
}

void threads_start(struct reduction* r) {
    size_t bytes = sizeof(double) * (size_t)r->length;
    size_t least = (size_t)1 << 40;

    r->rows = allocate(sizeof(*r->rows) * (size_t)r->ranks);
    r->scratch = allocate(sizeof(*r->scratch) * (size_t)r->ranks);
    r->flags = allocate(sizeof(*r->flags) * (size_t)r->ranks);
    omp_set_dynamic(0);
#pragma omp parallel num_threads(r->ranks) reduction(min : least)
    {
        int thread = omp_get_thread_num();
        long i;

        pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), &r->places[thread]);
        least = stack_size();
        r->rows[thread] = allocate(bytes);
        r->scratch[thread] = allocate(bytes);
        for (i = 0; i < r->length; ++i) {
            r->rows[thread][i] = reduction_element(thread, i);
        }
    }
    /* The clause gives every thread a copy of the array on its stack; half is left for the rest. */
    r->omp_length_max = (long)(least / 2 / sizeof(double));
}

void threads_free(struct reduction* r) {
    int thread;

    for (thread = 0; r->rows != NULL && thread < r->ranks; ++thread) {
        free(r->rows[thread]);
        free(r->scratch[thread]);
    }
    free(r->rows);
    free(r->scratch);
    free(r->flags);
}

/* The list of a reduction clause must be shared by the threads, also where the loop is in a
 * separate function. The loop is in one because gcc frees the threads' copies when the function
 * returns. */
static double* clause_sum;

static void __attribute__((noinline)) add_rows(const struct reduction* r, long length) {
    long i;
    int row;

#pragma omp for reduction(+ : clause_sum[:length]) schedule(static, 1)
    for (row = 0; row < r->ranks; ++row) {
        const double* from = r->rows[row];
        for (i = 0; i < length; ++i) {
            clause_sum[i] += from[i];
        }
    }
}

double run_omp_clause(struct reduction* r, long length, int iterations) {
    double slowest = 0;

    clause_sum = r->sum;
#pragma omp parallel num_threads(r->ranks) reduction(max : slowest)
    {
        double start;
        int k;

#pragma omp barrier
        start = omp_get_wtime();
        for (k = 0; k < iterations; ++k) {
            add_rows(r, length);
        }
        slowest = omp_get_wtime() - start;
    }
    return slowest / iterations;
}

static void wait_for(struct flag* flag, long step, int yield) {
    while (atomic_load_explicit(&flag->step, memory_order_acquire) < step) {
        if (yield) {
            sched_yield();
        }
    }
}

/* Adds two arrays. `to` may be `a`. */
static void add(double* to, const double* a, const double* b, long length) {
    long i;

#pragma omp simd
    for (i = 0; i < length; ++i) {
        to[i] = a[i] + b[i];
    }
}

/* Computes one sum up the binary tree. A thread's flag tells that its subtree is in its scratch
 * array, or that it has no children, so that its row serves. Returns the sum of this thread's
 * subtree. */
static const double* climb(struct reduction* r, int thread, long length, long step, int yield) {
    const double* sum = r->rows[thread];
    int distance;

    for (distance = 1; (thread & distance) == 0 && thread + distance < r->ranks; distance *= 2) {
        int child = thread + distance;
        int child_has_children = distance > 1 && child + 1 < r->ranks;
        double* to = thread == 0 && 2 * distance >= r->ranks ? r->sum : r->scratch[thread];
        wait_for(&r->flags[child], step, yield);
        add(to, sum, child_has_children ? r->scratch[child] : r->rows[child], length);
        sum = to;
    }
    atomic_store_explicit(&r->flags[thread].step, step, memory_order_release);
    return sum;
}

static int allowed_processors(const struct reduction* r) {
    cpu_set_t all;
    int thread;

    CPU_ZERO(&all);
    for (thread = 0; thread < r->ranks; ++thread) {
        CPU_OR(&all, &all, &r->places[thread]);
    }
    return CPU_COUNT(&all);
}

double run_omp_tree(struct reduction* r, long length, int iterations) {
    int yield = r->ranks > allowed_processors(r);
    double slowest = 0;
    long base = r->step;

#pragma omp parallel num_threads(r->ranks) reduction(max : slowest)
    {
        int thread = omp_get_thread_num();
        double start;
        long i;
        int k;

#pragma omp barrier
        start = omp_get_wtime();
        for (k = 0; k < iterations; ++k) {
            const double* sum = climb(r, thread, length, base + k + 1, yield);
            for (i = 0; r->ranks == 1 && i < length; ++i) {
                r->sum[i] = sum[i];
            }
            /* The root's flag is raised last. Then all may read the result, and nobody reads the
             * scratch arrays of this sum any more, so that the next may begin. */
            wait_for(&r->flags[0], base + k + 1, yield);
        }
        slowest = omp_get_wtime() - start;
    }
    r->step = base + iterations;
    return slowest / iterations;
}
