/*
 * array_reduction: the sum of one array per worker, by OpenMP threads and by MPI ranks.
 *
 * Section 3.5 of Li, Hoefler, Snir, "NUMA-aware shared-memory collective communication for MPI":
 * MPI_Reduce against OpenMP's reduction clause on one node, as many threads as ranks. MPI first,
 * all lengths; then rank 0 runs the threads, placed as the ranks are, while the other ranks sleep.
 */
#include "array_reduction.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps.h"
#include "perf/option_value.h"

enum { MAX_LENGTHS = 32, MAX_REPETITIONS = 1000 };

struct options {
    long lengths[MAX_LENGTHS];
    int length_count;
    long repetitions;
    double cell_seconds; /* For all repetitions of one cell together. */
    int csv;
};

static const char usage[] =
    "Usage: mpirun ... array_reduction [options]\n"
    "  -s, --sizes LIST       bytes of an array of doubles, 64k, 1M; default "
    "8,64,512,4k,32k,256k,1M\n"
    "  -r, --repetitions N    per cell (default 9); a cell is their median\n"
    "  -t, --time SECONDS     per cell, all repetitions together (default 0.05)\n"
    "      --csv              comma-separated, for perf/apps/run\n"
    "      --smoke            one small size, almost no time\n"
    "  -h, --help\n"
    "All ranks must be on one host; there are as many threads as ranks. Long arrays in the clause "
    "need\n"
    "stacks of that size: OMP_STACKSIZE and ulimit -s. Times are the slowest worker's.\n"
    "Exit status: 0 all results right, 1 a wrong result, 2 wrong usage.\n";

static int parse_lengths(struct options* o, const char* list, int say) {
    char* copy = strdup(list);
    char* state = NULL;
    char* item;
    int bad = 0;

    o->length_count = 0;
    for (item = strtok_r(copy, ",", &state); item != NULL; item = strtok_r(NULL, ",", &state)) {
        long bytes = option_size("--sizes", item, sizeof(double), 1L << 30, say);
        if (bytes < 0 || bytes % (long)sizeof(double) != 0 || o->length_count == MAX_LENGTHS) {
            bad = 1;
            break;
        }
        o->lengths[o->length_count++] = bytes / (long)sizeof(double);
    }
    free(copy);
    return bad || o->length_count == 0;
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char** argv, struct options* o, int rank) {
    static const struct option longs[] = {{"sizes", 1, NULL, 's'}, {"repetitions", 1, NULL, 'r'},
                                          {"time", 1, NULL, 't'},  {"csv", 0, NULL, 'v'},
                                          {"smoke", 0, NULL, 'k'}, {"help", 0, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int c;
    int bad = 0;

    opterr = rank == 0;
    while ((c = getopt_long(argc, argv, "s:r:t:h", longs, NULL)) != -1) {
        switch (c) {
        case 's': bad |= parse_lengths(o, optarg, rank == 0); break;
        case 'r':
            o->repetitions = option_size("--repetitions", optarg, 1, MAX_REPETITIONS, rank == 0);
            break;
        case 't': o->cell_seconds = option_seconds("--time", optarg, rank == 0); break;
        case 'v': o->csv = 1; break;
        case 'k':
            bad |= parse_lengths(o, "1k", 1);
            o->repetitions = 2;
            o->cell_seconds = 0.002;
            break;
        case 'h':
            if (rank == 0) {
                fputs(usage, stdout);
            }
            return 0;
        default: bad = 1;
        }
    }
    if (bad || optind < argc || o->repetitions < 0 || o->cell_seconds < 0) {
        if (rank == 0) {
            fputs(usage, stderr);
        }
        return 2;
    }
    return -1;
}

/* ---- the MPI methods */

static double run_ranks(struct reduction* r, long length, int iterations, int to_all) {
    double start;
    int i;

    MPI_Barrier(r->comm);
    start = MPI_Wtime();
    for (i = 0; i < iterations; ++i) {
        if (to_all) {
            MPI_Allreduce(r->own, r->sum, (int)length, MPI_DOUBLE, MPI_SUM, r->comm);
        } else {
            MPI_Reduce(r->own, r->sum, (int)length, MPI_DOUBLE, MPI_SUM, 0, r->comm);
        }
    }
    return (MPI_Wtime() - start) / iterations;
}

static double run_mpi_reduce(struct reduction* r, long length, int iterations) {
    return run_ranks(r, length, iterations, 0);
}

static double run_mpi_allreduce(struct reduction* r, long length, int iterations) {
    return run_ranks(r, length, iterations, 1);
}

/* ---- measuring */

struct method {
    const char* name;
    int by_threads; /* Whether rank 0 alone runs it. */
    double (*run)(struct reduction* r, long length, int iterations);
};

static const struct method methods[] = {{"mpi_reduce", 0, run_mpi_reduce},
                                        {"mpi_allreduce", 0, run_mpi_allreduce},
                                        {"omp_clause", 1, run_omp_clause},
                                        {"omp_tree", 1, run_omp_tree}};
enum { METHODS = sizeof(methods) / sizeof(methods[0]) };

struct cell {
    double us; /* Median of the repetitions; below 0 if it was not measured. */
    long calls;
    int wrong;
};

static int compare_doubles(const void* a, const void* b) {
    double x = *(const double*)a;
    double y = *(const double*)b;

    return (x > y) - (x < y);
}

/* Returns the slowest worker's mean; threads have agreed on it already. */
static double timed(struct reduction* r, const struct method* m, long length, int iterations) {
    double seconds = m->run(r, length, iterations);

    if (!m->by_threads) {
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, r->comm);
    }
    return seconds;
}

/* Makes one call from a zeroed result, after the measurement. Returns whether the result is
 * wrong on a worker that should have it. */
static int check(struct reduction* r, const struct method* m, long length) {
    int has_sum = r->rank == 0 || m->run == run_mpi_allreduce;
    int wrong = 0;
    long i;

    memset(r->sum, 0, sizeof(double) * (size_t)length);
    m->run(r, length, 1);
    for (i = 0; i < length && has_sum; ++i) {
        wrong |= r->sum[i] != reduction_expected(r->ranks, i);
    }
    if (!m->by_threads) {
        MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, r->comm);
    }
    return wrong;
}

static struct cell measure(struct reduction* r, const struct method* m, long length,
                           const struct options* o) {
    static double times[MAX_REPETITIONS];
    double once, budget;
    int iterations, i;

    if (m->by_threads && length > r->omp_length_max && m->run == run_omp_clause) {
        return (struct cell){-1, 0, 0};
    }
    timed(r, m, length, 2); /* First calls set things up. */
    once = timed(r, m, length, 4);
    budget = o->cell_seconds / (double)o->repetitions;
    /* At least 3, and not more than MPI_Wtime's resolution requires. */
    iterations = budget < once * 3 ? 3 : budget > once * 1e5 ? 100000 : (int)(budget / once);
    for (i = 0; i < o->repetitions; ++i) {
        times[i] = timed(r, m, length, iterations);
    }
    qsort(times, (size_t)o->repetitions, sizeof(double), compare_doubles);
    return (struct cell){times[o->repetitions / 2] * 1e6, o->repetitions * iterations,
                         check(r, m, length)};
}

/* Waits for rank 0 without using its processors, which the threads need. */
static void sleep_until_all(MPI_Comm comm) {
    const struct timespec pause = {0, 1000 * 1000};
    MPI_Request request;
    int done = 0;

    MPI_Ibarrier(comm, &request);
    for (;;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done) {
            return;
        }
        nanosleep(&pause, NULL);
    }
}

static int measure_all(struct reduction* r, const struct options* o,
                       struct cell cells[][MAX_LENGTHS]) {
    int wrong = 0;
    int by_threads, i, k;

    for (by_threads = 0; by_threads < 2; ++by_threads) {
        if (by_threads && r->rank == 0) {
            threads_start(r);
        }
        for (i = 0; i < METHODS; ++i) {
            if (methods[i].by_threads != by_threads || (by_threads && r->rank != 0)) {
                continue;
            }
            for (k = 0; k < o->length_count; ++k) {
                cells[i][k] = measure(r, &methods[i], o->lengths[k], o);
                wrong |= cells[i][k].wrong;
            }
        }
    }
    sleep_until_all(r->comm);
    MPI_Bcast(&wrong, 1, MPI_INT, 0, r->comm);
    return wrong;
}

static void print_csv(const struct options* o, struct cell cells[][MAX_LENGTHS]) {
    int i, k;

    puts(csv_header);
    for (i = 0; i < METHODS; ++i) {
        for (k = 0; k < o->length_count; ++k) {
            const struct cell* c = &cells[i][k];
            if (c->us >= 0) {
                printf("%s,%ld,%ld,%.4f,%s\n", methods[i].name,
                       o->lengths[k] * (long)sizeof(double), c->calls, c->us,
                       c->wrong ? "WRONG" : "ok");
            }
        }
    }
}

static void print_table(const struct options* o, struct cell cells[][MAX_LENGTHS]) {
    int i, k;

    printf("# %-8s", "bytes");
    for (i = 0; i < METHODS; ++i) {
        printf(" %13s us", methods[i].name);
    }
    puts("");
    for (k = 0; k < o->length_count; ++k) {
        printf("%-10ld", o->lengths[k] * (long)sizeof(double));
        for (i = 0; i < METHODS; ++i) {
            const struct cell* c = &cells[i][k];
            if (c->us < 0) {
                printf(" %16s", "-");
            } else {
                printf(" %13.3f%s", c->us, c->wrong ? " !!" : "   ");
            }
        }
        puts("");
    }
}

static int run(const struct options* o, MPI_Comm comm) {
    static struct cell cells[METHODS][MAX_LENGTHS];
    struct reduction r;
    long longest = 0;
    int wrong, k;

    for (k = 0; k < o->length_count; ++k) {
        longest = o->lengths[k] > longest ? o->lengths[k] : longest;
    }
    if (reduction_create(&r, longest, comm) != 0) {
        return 2;
    }
    wrong = measure_all(&r, o, cells);
    if (r.rank == 0) {
        printf("# array_reduction: %d ranks, then %d threads\n", r.ranks, r.ranks);
        if (longest > r.omp_length_max) {
            printf("# omp_clause: the stacks hold %ld bytes; see OMP_STACKSIZE and ulimit -s\n",
                   r.omp_length_max * (long)sizeof(double));
        }
        if (o->csv) {
            print_csv(o, cells);
        } else {
            print_table(o, cells);
            printf("# result %s\n", wrong ? "WRONG" : "ok");
        }
    }
    reduction_free(&r);
    return wrong;
}

int main(int argc, char** argv) {
    struct options o = {{0}, 0, 9, 0.05, 0};
    int rank, status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    parse_lengths(&o, "8,64,512,4k,32k,256k,1M", 1);
    status = parse_options(argc, argv, &o, rank);
    if (status < 0) {
        status = run(&o, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return status;
}
