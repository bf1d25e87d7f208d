/*
 * A job that does not end by itself: its ranks have shared memory and messages in flight when the
 * job is ended from outside. The argument says what rank 0 does.
 *
 *   wait      sleeps, while the others wait for it in MPI_Allreduce
 *   allocate  takes memory, 1 GiB in all, while the others wait for it
 *   leave     ends its process without a word, while the others wait for it
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

enum { COUNT = 1 << 17, ROUNDS = 20, PIECE = 16 << 20, PIECES = 64 };

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "endless: wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/** Runs short and long reductions, so that a job takes all the shared memory that it ever takes. */
static void reduce(int count, double* mine, double* sum) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(mine, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) {
        require(sum[i] == (double)size * (size - 1) / 2 + (double)size * i, "sum");
    }
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double* mine = malloc(COUNT * sizeof *mine);
    double* sum = malloc(COUNT * sizeof *sum);
    require(2 == argc && NULL != mine && NULL != sum, "arguments or memory");
    for (int i = 0; i < COUNT; ++i) {
        mine[i] = rank + i;
    }
    for (int round = 0; round < ROUNDS; ++round) {
        reduce(1, mine, sum);
        reduce(COUNT, mine, sum);
    }
    if (0 == rank) {
        puts("all have reduced");
        fflush(stdout);
        if (0 == strcmp(argv[1], "leave")) {
            _exit(3);
        }
        for (int i = 0; i < PIECES && 0 == strcmp(argv[1], "allocate"); ++i) {
            char* piece = malloc(PIECE);
            require(NULL != piece, "memory");
            memset(piece, 1, PIECE);
            usleep(10000);
        }
        sleep(600);
    }
    reduce(COUNT, mine, sum);
    MPI_Finalize();
    return 0;
}
