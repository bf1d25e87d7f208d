/*
 * persistbench: what a persistent request costs, with any library and any component.
 *
 * Times an MPI_Allreduce_init of one double and MPI_Request_free, one after the other; both for N
 * requests that are all live before the first one is freed; and a start of each of these and the
 * wait for all, beside the blocking call. It also prints the memory that the N requests hold after
 * each has been started once.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

#include "bench_options.h"
#include "memory.h"

enum { TIMES = 4 };

static const char usage[] = "Usage: mpirun ... persistbench [options]\n"
                            "  -r, --repetitions N   of the timing (default 9)\n"
                            "  -n, --cycles N        requests one after the other, and starts of "
                            "one, per repetition\n"
                            "                        (default 500)\n"
                            "  -l, --live N          requests that are live at once (default 64)\n"
                            "      --smoke           few of everything\n"
                            "  -h, --help\n";

static double one = 1;
static double results[LIVE_MAX];
static MPI_Request requests[LIVE_MAX];

static void init(int i) {
    MPI_Allreduce_init(&one, &results[i], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[i]);
}

static void start_all(int count) {
    MPI_Startall(count, requests);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* Returns the microseconds since `start`, divided by `count`, on the slowest rank. */
static double slowest_since(double start, int count) {
    double mine = (MPI_Wtime() - start) / count * 1e6;
    double slowest;

    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static double begin(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

static void time_once(const struct bench_options* o, double times[TIMES]) {
    double start = begin();
    int i;

    for (i = 0; i < o->cycles; ++i) {
        init(0);
        MPI_Request_free(&requests[0]);
    }
    times[0] = slowest_since(start, o->cycles);
    start = begin();
    for (i = 0; i < o->live; ++i) {
        init(i);
    }
    for (i = 0; i < o->live; ++i) {
        MPI_Request_free(&requests[i]);
    }
    times[1] = slowest_since(start, o->live);
    init(0);
    start = begin();
    for (i = 0; i < o->cycles; ++i) {
        start_all(1);
    }
    times[2] = slowest_since(start, o->cycles);
    MPI_Request_free(&requests[0]);
    start = begin();
    for (i = 0; i < o->cycles; ++i) {
        MPI_Allreduce(&one, &results[0], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    times[3] = slowest_since(start, o->cycles);
}

static void report_times(const struct bench_options* o, int rank, int size) {
    static double times[TIMES][REPETITIONS_MAX];
    int i, j;

    for (i = 0; i < o->repetitions; ++i) {
        double once[TIMES];
        time_once(o, once);
        for (j = 0; j < TIMES; ++j) {
            times[j][i] = once[j];
        }
    }
    for (j = 0; j < TIMES; ++j) {
        qsort(times[j], (size_t)o->repetitions, sizeof(double), compare_doubles);
    }
    if (rank == 0) {
        const int middle = o->repetitions / 2;
        printf("%d ranks: init and free take %.2f us one after the other (least %.2f), %.2f us of "
               "%d live at once (least %.2f)\n",
               size, times[0][middle], times[0][0], times[1][middle], o->live, times[1][0]);
        printf("%d ranks: start and wait take %.3f us (least %.3f), the blocking call %.3f us "
               "(least %.3f)\n",
               size, times[2][middle], times[2][0], times[3][middle], times[3][0]);
    }
}

/* Prints two lines; returns whether all results were right. */
static int report_first(const struct bench_options* o, int rank, int size) {
    double before[MEMORY_KINDS], after[MEMORY_KINDS];
    double start, time;
    int right = 1;
    int i, all;

    measure_memory(before);
    start = begin();
    for (i = 0; i < o->live; ++i) {
        init(i);
    }
    time = slowest_since(start, o->live);
    start_all(o->live);
    measure_memory(after);
    for (i = 0; i < o->live; ++i) {
        right &= results[i] == size;
        MPI_Request_free(&requests[i]);
    }
    if (rank == 0) {
        const double each = 1024.0 * o->live * size;
        printf("%d ranks: the first %d inits take %.2f us each\n", size, o->live, time);
        printf("%d ranks: %.1f KiB of shared files, %.1f KiB of private memory, %.1f KiB of page "
               "tables per rank and request\n",
               size, (after[0] - before[0]) / each, (after[1] - before[1]) / each,
               (after[2] - before[2]) / each);
    }
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char** argv) {
    struct bench_options o = {9, 500, 64};
    int rank, size, status, right;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    status = parse_bench_options(argc, argv, usage, 1, &o, rank);
    if (status >= 0) {
        MPI_Finalize();
        return status;
    }
    MPI_Barrier(MPI_COMM_WORLD); /* First calls set things up. */
    right = report_first(&o, rank, size);
    report_times(&o, rank, size);
    MPI_Finalize();
    return right ? 0 : 1;
}
