/*
 * A process's first collectives, which make the context, the groups and the plans, are called by a
 * thread whose stack has as many KiB as the argument says. Prints "small stack ok" from rank 0.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { WORDS = 4096 };

static int rank;
static int size;

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "small_stack: rank %d: wrong: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void* call_first(void* unused) {
    static int64_t input[WORDS];
    static int64_t output[WORDS];
    (void)unused;
    input[0] = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int words = 1; words <= WORDS; words *= 16) {
        MPI_Allreduce(input, output, words, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        require((int64_t)size * (size - 1) / 2 == output[0], "a sum");
        MPI_Reduce(input, output, words, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Scan(input, output, words, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        MPI_Bcast(output, words, MPI_INT64_T, 0, MPI_COMM_WORLD);
        const int part = words / size;
        MPI_Allgather(input, part, MPI_INT64_T, output, part, MPI_INT64_T, MPI_COMM_WORLD);
        MPI_Alltoall(input, part, MPI_INT64_T, output, part, MPI_INT64_T, MPI_COMM_WORLD);
        MPI_Reduce_scatter_block(input, output, part, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    return NULL;
}

int main(int argc, char** argv) {
    int provided;
    pthread_attr_t small;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    require(2 == argc, "usage: small_stack KIB");
    const size_t bytes = (size_t)strtoul(argv[1], NULL, 10) << 10;
    pthread_attr_init(&small);
    require(0 == pthread_attr_setstacksize(&small, bytes), "a small stack");
    require(0 == pthread_create(&thread, &small, call_first, NULL), "a thread");
    pthread_join(thread, NULL);
    pthread_attr_destroy(&small);
    if (0 == rank) {
        printf("small stack ok\n");
    }
    MPI_Finalize();
    return 0;
}
