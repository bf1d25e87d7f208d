/*
 * allreduce_blocks: times allreduces in blocks, as Ruefenacht, Bull and Booth do (2017, section
 * 5.2). A block is some calls in a row after a barrier; its time is that of the slowest rank, per
 * call. Rank 0 prints one time in microseconds per line, and "ok" or "WRONG" at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "perf/option_value.h"

enum { WARM_UP_BLOCKS = 2 }; /* They connect and plan. */

struct options {
    int count; /* Number of doubles. */
    int calls; /* Calls in a block. */
    int blocks;
};

static int parse(struct options* o, int argc, char** argv, int say) {
    long bytes;

    if (argc != 4) {
        return -1;
    }
    bytes = option_count("BYTES", argv[1], sizeof(double), 1L << 30, say);
    o->count = (int)(bytes / (long)sizeof(double));
    o->calls = (int)option_count("CALLS", argv[2], 1, 1L << 20, say);
    o->blocks = (int)option_count("BLOCKS", argv[3], 1, 1L << 20, say);
    return bytes > 0 && bytes % (long)sizeof(double) == 0 && o->calls > 0 && o->blocks > 0 ? 0 : -1;
}

static double time_block(const struct options* o, const double* in, double* out) {
    double start;
    double mine;
    double slowest = 0;
    int i;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (i = 0; i < o->calls; ++i) {
        MPI_Allreduce(in, out, o->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    mine = (MPI_Wtime() - start) / o->calls * 1e6;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest;
}

static int is_right(const struct options* o, const double* out, int ranks) {
    int i;

    for (i = 0; i < o->count; ++i) {
        if (out[i] != (double)ranks * (ranks + 1) / 2 + (double)ranks * i) {
            return 0;
        }
    }
    return 1;
}

static const char kUsage[] = "Usage: mpirun ... allreduce_blocks BYTES CALLS BLOCKS\n"
                             "BYTES: a multiple of 8. Exit status: 0 right, 1 wrong, 2 usage.\n";

int main(int argc, char** argv) {
    struct options o;
    int wants_help;
    double* in;
    double* out;
    int rank;
    int ranks;
    int right;
    int i;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    wants_help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (wants_help || parse(&o, argc, argv, rank == 0) != 0) {
        if (rank == 0) {
            fputs(kUsage, wants_help ? stdout : stderr);
        }
        MPI_Finalize();
        return wants_help ? 0 : 2;
    }
    in = malloc((size_t)o.count * sizeof(*in));
    out = malloc((size_t)o.count * sizeof(*out));
    for (i = 0; i < o.count; ++i) {
        in[i] = rank + 1 + i;
    }
    for (i = -WARM_UP_BLOCKS; i < o.blocks; ++i) {
        double us = time_block(&o, in, out);
        if (rank == 0 && i >= 0) {
            printf("%.3f\n", us);
        }
    }
    right = is_right(&o, out, ranks);
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0) {
        puts(right ? "ok" : "WRONG");
    }
    free(in);
    free(out);
    MPI_Finalize();
    return right ? 0 : 1;
}
