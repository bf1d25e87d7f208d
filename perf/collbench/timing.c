#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "collbench.h"

static int has_cycle(const struct cell* cell) {
    return cell->mode == MODE_CYC || cell->mode == MODE_MPI;
}

static void cycle_barrier(const struct cell* cell) {
    if (cell->mode == MODE_MPI) {
        MPI_Barrier(cell->buffers->comm);
    } else {
        sync_barrier(cell->sync, 1);
    }
}

/* Writes every line of what this rank sends anew, with the bytes that are there: its cache then has
 * the only copy of each, as after a computation. */
static void write_input(const struct cell* cell) {
    volatile char* data = cell->buffers->send;
    const size_t bytes = send_bytes(cell->buffers, cell->call, cell->bytes);
    size_t i;

    for (i = 0; i < bytes; i += CACHE_LINE) {
        data[i] = data[i];
    }
}

/* Returns the mean time of one operation on this rank, in seconds. */
static double run_iterations(const struct cell* cell, int iterations) {
    double start, timed = 0;
    int i;

    sync_barrier(cell->sync, cell->yield);
    start = MPI_Wtime();
    for (i = 0; i < iterations; ++i) {
        if (cell->rotates) {
            cell->buffers->root = i % cell->buffers->size;
        }
        if (cell->writes_input) {
            write_input(cell);
        }
        if (cell->mode == MODE_SEP) {
            sync_barrier(cell->sync, cell->yield);
            start = MPI_Wtime();
            cell->call->run(cell->buffers, cell->bytes);
            timed += MPI_Wtime() - start;
            continue;
        }
        if (has_cycle(cell)) {
            cycle_barrier(cell);
        }
        cell->call->run(cell->buffers, cell->bytes);
    }
    if (cell->mode != MODE_SEP) {
        timed = MPI_Wtime() - start;
    }
    return timed / iterations;
}

/* Returns the mean time of a cycle's barrier without an operation, in seconds. */
static double run_bare_barriers(const struct cell* cell, int iterations) {
    double start;
    int i;

    sync_barrier(cell->sync, cell->yield);
    start = MPI_Wtime();
    for (i = 0; i < iterations; ++i) {
        cycle_barrier(cell);
    }
    return (MPI_Wtime() - start) / iterations;
}

/* Returns the processor time of all threads of this process, in seconds. */
static double processor_seconds(void) {
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* Returns the processor time of one operation for which rank 0 is late, in seconds; 0 on rank 0. */
static double run_late(const struct cell* cell, double seconds) {
    const struct timespec late = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    double before;

    sync_barrier(cell->sync, cell->yield);
    before = processor_seconds();
    if (cell->buffers->rank == 0) {
        nanosleep(&late, NULL);
    }
    cell->call->run(cell->buffers, cell->bytes);
    return cell->buffers->rank == 0 ? 0 : processor_seconds() - before;
}

static double slowest(double seconds, MPI_Comm comm) {
    double result;

    MPI_Allreduce(&seconds, &result, 1, MPI_DOUBLE, MPI_MAX, comm);
    return result;
}

static int compare_doubles(const void* a, const void* b) {
    double x = *(const double*)a;
    double y = *(const double*)b;

    return (x > y) - (x < y);
}

/* Returns the median of the values, which it sorts. */
static double median(double* values, int count) {
    qsort(values, count, sizeof(double), compare_doubles);
    return values[count / 2];
}

typedef double (*run_function)(const struct cell* cell, int iterations);

/* Returns how many iterations take `budget` seconds. First calls take longer, since they set
 * things up and touch new memory: so it makes longer and longer runs until one is no faster than
 * the one before. */
static int choose_iterations(const struct cell* cell, run_function run, double budget) {
    const int most = 100000;
    int count = 2;
    double before, once = 1e9;

    do {
        before = once;
        count *= 2;
        once = slowest(run(cell, count), cell->buffers->comm);
        once = once > 1e-8 ? once : 1e-8;
    } while (count < most && (once < 0.75 * before || once * count < budget / 4));
    return budget / once < 3 ? 3 : budget / once > most ? most : (int)(budget / once);
}

void time_cell(const struct cell* cell, int repetitions, double seconds, struct timing* result) {
    static double times[MAX_REPETITIONS], bare[MAX_REPETITIONS], alone[MAX_REPETITIONS];
    const double budget = seconds / repetitions;
    MPI_Comm comm = cell->buffers->comm;
    int bare_iterations = 0;
    int i, iterations;

    iterations = choose_iterations(cell, run_iterations, budget);
    if (has_cycle(cell)) {
        bare_iterations = choose_iterations(cell, run_bare_barriers, budget);
    }
    result->ping_before_ns = sync_ping_pong_ns(cell->sync);
    for (i = 0; i < repetitions; ++i) {
        bare[i] = bare_iterations > 0 ? run_bare_barriers(cell, bare_iterations) : 0;
        times[i] =
            cell->mode == MODE_LATE ? run_late(cell, budget) : run_iterations(cell, iterations);
    }
    result->ping_after_ns = sync_ping_pong_ns(cell->sync);
    /* Only now, so that nothing but what is timed is called in between. */
    MPI_Allreduce(MPI_IN_PLACE, bare, repetitions, MPI_DOUBLE, MPI_MAX, comm);
    MPI_Allreduce(MPI_IN_PLACE, times, repetitions, MPI_DOUBLE, MPI_MAX, comm);
    for (i = 0; i < repetitions; ++i) {
        alone[i] = times[i] - bare[i];
    }
    result->median = median(times, repetitions);
    result->least = times[0];
    result->bare = median(bare, repetitions);
    result->alone = median(alone, repetitions);
}
