/*
 * commbench: what a communicator costs, with any library and any component.
 *
 * Times MPI_Comm_dup, one barrier on the duplicate and MPI_Comm_free. With --live N, it prints the
 * memory that N duplicates hold after a few short collectives on each: pages of the processes'
 * anonymous shared files (memfd) and private memory, per rank and communicator. With
 * coll_ucg_setup_after=0 that includes UCG's groups. It also prints what the duplicates, although
 * nobody uses them, add to a barrier on MPI_COMM_WORLD: to one that all enter at once, and to one
 * that the last rank enters late, so that the others wait.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include "bench_options.h"
#include "memory.h"

enum { BARRIERS = 200 };

static const char usage[] = "Usage: mpirun ... commbench [options]\n"
                            "  -r, --repetitions N   of the timing (default 9)\n"
                            "  -n, --cycles N        duplicates per repetition (default 200)\n"
                            "  -l, --live N          duplicates whose memory is counted, and "
                            "beside which barriers are timed\n"
                            "                        (default 16)\n"
                            "      --smoke           few of everything\n"
                            "  -h, --help\n";

/* Returns the microseconds of one duplicate on the slowest rank. */
static double time_cycles(int cycles) {
    double start, mine, slowest;
    int i;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (i = 0; i < cycles; ++i) {
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Barrier(copy);
        MPI_Comm_free(&copy);
    }
    mine = (MPI_Wtime() - start) / cycles * 1e6;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static void compute(double seconds) {
    const double end = MPI_Wtime() + seconds;

    while (MPI_Wtime() < end) {
    }
}

/* Returns the microseconds, as a median, of a barrier on the slowest rank, where the last rank
 * enters `late_us` later. What the last rank computes does not count. */
static double time_barriers(double late_us, int rank, int size) {
    static double times[BARRIERS];
    int i;

    for (i = 0; i < BARRIERS; ++i) {
        double start, mine;
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        if (rank == size - 1) {
            compute(late_us * 1e-6);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        mine = (MPI_Wtime() - start) * 1e6 - late_us;
        MPI_Allreduce(&mine, &times[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    qsort(times, BARRIERS, sizeof(double), compare_doubles);
    return times[BARRIERS / 2];
}

/* Makes the calls that programs typically make on a communicator for a part of their processes.
 * Returns whether the results are right. */
static int use(MPI_Comm comm) {
    double sum = 0;
    double one = 1;
    int size, root = 17;

    MPI_Comm_size(comm, &size);
    MPI_Barrier(comm);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Bcast(&root, 1, MPI_INT, 0, comm);
    return sum == size && root == 17;
}

/* Prints one line; returns whether all results were right. */
static int report_memory(int live, int rank, int size) {
    static MPI_Comm copies[LIVE_MAX];
    const double late_us = 200;
    double before[MEMORY_KINDS], after[MEMORY_KINDS], alone[2], beside[2];
    int right = use(MPI_COMM_WORLD);
    double start, seconds;
    int all;
    int i;

    alone[0] = time_barriers(0, rank, size);
    alone[1] = time_barriers(late_us, rank, size);
    measure_memory(before);
    start = MPI_Wtime();
    for (i = 0; i < live; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copies[i]);
        right &= use(copies[i]);
    }
    seconds = MPI_Wtime() - start;
    measure_memory(after);
    beside[0] = time_barriers(0, rank, size);
    beside[1] = time_barriers(late_us, rank, size);
    if (rank == 0 && live > 0) {
        const double each = 1024.0 * live * size;
        printf(
            "%d ranks: %.1f KiB of shared files, %.1f KiB of private memory, %.1f KiB of page "
            "tables per rank and communicator; %.0f KiB of shared files before; making and using "
            "one took %.1f us\n",
            size, (after[0] - before[0]) / each, (after[1] - before[1]) / each,
            (after[2] - before[2]) / each, before[0] / 1024, seconds / live * 1e6);
        printf("%d ranks: barrier alone %.1f us, beside %d communicators %.1f us; with the last "
               "rank %.0f us late %.1f and %.1f us more\n",
               size, alone[0], live, beside[0], late_us, alone[1], beside[1]);
    }
    for (i = 0; i < live; ++i) {
        MPI_Comm_free(&copies[i]);
    }
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char** argv) {
    struct bench_options o = {9, 200, 16};
    double times[REPETITIONS_MAX];
    int rank, size, i, status, right;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    status = parse_bench_options(argc, argv, usage, 0, &o, rank);
    if (status >= 0) {
        MPI_Finalize();
        return status;
    }
    time_cycles(2); /* First calls set things up. */
    for (i = 0; i < o.repetitions; ++i) {
        times[i] = time_cycles(o.cycles);
    }
    qsort(times, (size_t)o.repetitions, sizeof(double), compare_doubles);
    if (rank == 0) {
        printf("%d ranks: dup, barrier and free take %.1f us (least %.1f)\n", size,
               times[o.repetitions / 2], times[0]);
    }
    right = report_memory(o.live, rank, size);
    MPI_Finalize();
    return right ? 0 : 1;
}
