/*
 * matvec: dense matrix-vector multiplication, the matrix partitioned by columns.
 *
 * Section 3.7 of Li, Hoefler, Snir, "NUMA-aware shared-memory collective communication for MPI":
 * the columns are scattered, the vector is broadcast, and every iteration sums the ranks' partial
 * products at the root.
 */
#include <float.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps.h"
#include "perf/option_value.h"

struct options {
    long size;
    long iterations;
    int power;
    int check;
    int csv;
};

static const char usage[] =
    "Usage: mpirun ... matvec [options]\n"
    "  -n, --size N         rows and columns (default 2048); rank 0 holds the whole matrix\n"
    "  -i, --iterations N   products (default 128)\n"
    "  -p, --power          power iteration: every product is normalized and broadcast as the "
    "next\n"
    "                       vector, one MPI_Bcast per iteration (default: one vector, broadcast "
    "once)\n"
    "      --no-check       do not compare the last product with a serial one\n"
    "      --csv            comma-separated, for perf/apps/run\n"
    "      --smoke          a small matrix, a few iterations\n"
    "  -h, --help\n"
    "Times are the slowest rank's. Exit status: 0 the result is right, 1 it is wrong, 2 wrong "
    "usage.\n";

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char** argv, struct options* o, int rank) {
    static const struct option longs[] = {{"size", 1, NULL, 'n'},  {"iterations", 1, NULL, 'i'},
                                          {"power", 0, NULL, 'p'}, {"no-check", 0, NULL, 'x'},
                                          {"csv", 0, NULL, 'v'},   {"smoke", 0, NULL, 'k'},
                                          {"help", 0, NULL, 'h'},  {NULL, 0, NULL, 0}};
    int c;
    int bad = 0;

    opterr = rank == 0;
    while ((c = getopt_long(argc, argv, "n:i:ph", longs, NULL)) != -1) {
        switch (c) {
        case 'n': o->size = option_size("--size", optarg, 1, 1L << 20, rank == 0); break;
        case 'i':
            o->iterations = option_size("--iterations", optarg, 1, 1L << 30, rank == 0);
            break;
        case 'p': o->power = 1; break;
        case 'x': o->check = 0; break;
        case 'v': o->csv = 1; break;
        case 'k':
            o->size = 67; /* Not divisible by any usual number of ranks. */
            o->iterations = 5;
            break;
        case 'h':
            if (rank == 0) {
                fputs(usage, stdout);
            }
            return 0;
        default: bad = 1;
        }
    }
    if (bad || optind < argc || o->size < 0 || o->iterations < 0) {
        if (rank == 0) {
            fputs(usage, stderr);
        }
        return 2;
    }
    return -1;
}

struct product {
    long rows;
    long columns;   /* Of each rank; columns beyond the matrix are zero. */
    double* matrix; /* On rank 0: all columns, one after the other. */
    double* block;  /* This rank's columns. */
    double* vector;
    double* partial;
    double* result; /* On rank 0. */
    MPI_Datatype column;
    MPI_Comm comm;
    int rank;
    int size;
};

/* Elements are small whole numbers, so that every order of summation gives the same product. */
static double element(long row, long column) {
    return (double)((row * 31 + column * 17 + row * column % 13) % 17 - 8);
}

static void create(struct product* p, long size, MPI_Comm comm) {
    long all, i, k;

    p->comm = comm;
    MPI_Comm_rank(comm, &p->rank);
    MPI_Comm_size(comm, &p->size);
    p->rows = size;
    p->columns = (size + p->size - 1) / p->size;
    all = p->columns * p->size;
    p->block = allocate(sizeof(double) * (size_t)(p->rows * p->columns));
    p->vector = allocate(sizeof(double) * (size_t)all);
    p->partial = allocate(sizeof(double) * (size_t)p->rows);
    p->result = allocate(sizeof(double) * (size_t)p->rows);
    p->matrix = NULL;
    if (p->rank == 0) {
        p->matrix = allocate(sizeof(double) * (size_t)(p->rows * all));
        for (k = 0; k < size; ++k) {
            p->vector[k] = (double)(k % 15 - 7);
            for (i = 0; i < p->rows; ++i) {
                p->matrix[k * p->rows + i] = element(i, k);
            }
        }
    }
    /* Counts are numbers of columns, so that a block may have more than INT_MAX elements. */
    MPI_Type_contiguous((int)p->rows, MPI_DOUBLE, &p->column);
    MPI_Type_commit(&p->column);
}

static void destroy(struct product* p) {
    MPI_Type_free(&p->column);
    free(p->matrix);
    free(p->block);
    free(p->vector);
    free(p->partial);
    free(p->result);
}

static void multiply(struct product* p) {
    const double* x = p->vector + p->columns * p->rank;
    long i, k;

    memset(p->partial, 0, sizeof(double) * (size_t)p->rows);
    for (k = 0; k < p->columns; ++k) {
        const double* restrict column = p->block + k * p->rows;
        double* restrict sum = p->partial;
        for (i = 0; i < p->rows; ++i) {
            sum[i] += column[i] * x[k];
        }
    }
}

/* Makes the next vector of the power iteration: the product divided by its largest element. */
static void normalize(struct product* p) {
    double largest = 0;
    long i;

    for (i = 0; i < p->rows; ++i) {
        largest = fmax(largest, fabs(p->result[i]));
    }
    for (i = 0; i < p->rows && largest > 0; ++i) {
        p->vector[i] = p->result[i] / largest;
    }
}

static double broadcast(struct product* p, struct phases* phases, double start) {
    long all = p->columns * p->size;
    double now;

    MPI_Bcast(p->vector, (int)all, MPI_DOUBLE, 0, p->comm);
    now = MPI_Wtime();
    phases_add(phases, "bcast", all * (long)sizeof(double), now - start);
    return now;
}

static double iterate(struct product* p, const struct options* o, struct phases* phases,
                      double start) {
    double now;
    long i;

    for (i = 0; i < o->iterations; ++i) {
        if (o->power && i > 0) {
            if (p->rank == 0) {
                normalize(p);
            }
            start = broadcast(p, phases, start);
        }
        multiply(p);
        now = MPI_Wtime();
        phases_add(phases, "compute", 0, now - start);
        MPI_Reduce(p->partial, p->result, (int)p->rows, MPI_DOUBLE, MPI_SUM, 0, p->comm);
        start = MPI_Wtime();
        phases_add(phases, "reduce", p->rows * (long)sizeof(double), start - now);
    }
    return start;
}

/* Returns, on rank 0, whether the last product differs from a serial one by more than rounding. */
static int is_wrong(const struct product* p) {
    double* sum = allocate(sizeof(double) * (size_t)p->rows);
    double* magnitude = allocate(sizeof(double) * (size_t)p->rows);
    int wrong = 0;
    long i, k;

    for (k = 0; k < p->rows; ++k) {
        for (i = 0; i < p->rows; ++i) {
            double term = p->matrix[k * p->rows + i] * p->vector[k];
            sum[i] += term;
            magnitude[i] += fabs(term);
        }
    }
    for (i = 0; i < p->rows; ++i) {
        double bound = (double)p->rows * DBL_EPSILON * magnitude[i];
        wrong |= !(fabs(p->result[i] - sum[i]) <= bound);
    }
    free(sum);
    free(magnitude);
    return wrong;
}

static int run(const struct options* o, MPI_Comm comm) {
    struct phases phases = {0};
    struct product p;
    double start, now;
    int wrong = 0;

    create(&p, o->size, comm);
    if (p.rank == 0) {
        printf("# matvec: %ld x %ld, %d ranks of %ld columns, %ld iterations%s\n", p.rows, p.rows,
               p.size, p.columns, o->iterations, o->power ? ", power iteration" : "");
    }
    MPI_Barrier(comm);
    start = MPI_Wtime();
    MPI_Scatter(p.matrix, (int)p.columns, p.column, p.block, (int)p.columns, p.column, 0, comm);
    now = MPI_Wtime();
    phases_add(&phases, "scatter", p.rows * p.columns * (long)sizeof(double), now - start);
    now = broadcast(&p, &phases, now);
    now = iterate(&p, o, &phases, now);
    phases_add(&phases, "total", 0, now - start);
    if (p.rank == 0 && o->check) {
        wrong = is_wrong(&p);
    }
    MPI_Bcast(&wrong, 1, MPI_INT, 0, comm);
    phases_print(&phases, "total", o->csv, wrong, comm);
    destroy(&p);
    return wrong;
}

int main(int argc, char** argv) {
    struct options o = {2048, 128, 0, 1, 0};
    int rank, status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    status = parse_options(argc, argv, &o, rank);
    if (status < 0) {
        status = run(&o, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return status;
}
