/*
 * Buffers that the kernel copies for no process: secret memory, which stands for memory that a
 * driver has mapped. Prints "secret ok" from rank 0, or the reason why there is nothing to test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mpi.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

enum { COUNT = 1 << 17, ROUNDS = 3 };

static int rank;
static int size;

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "secret: wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/** Returns secret memory, or NULL if there is none. */
static int* secret_memory(size_t bytes) {
    struct rlimit limit;
    if (0 == getrlimit(RLIMIT_MEMLOCK, &limit)) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_MEMLOCK, &limit);
    }
    const int file = (int)syscall(SYS_memfd_secret, 0);
    if (file < 0 || 0 != ftruncate(file, (off_t)bytes)) {
        return NULL;
    }
    void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return MAP_FAILED == memory ? NULL : memory;
}

static void number(int* data, int first) {
    for (int i = 0; i < COUNT; i++) {
        data[i] = first + i;
    }
}

static void check(const int* data, int first, int step, const char* what) {
    for (int i = 0; i < COUNT; i++) {
        require(data[i] == first + i * step, what);
    }
}

/** `in` and `out` may be of either kind of memory. */
static void exchange(int* in, int* out, int round) {
    const int ranks = size * (size - 1) / 2;
    const int part = COUNT / size;
    MPI_Request request;
    number(in, 0 == rank ? round : -1);
    MPI_Bcast(in, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
    check(in, round, 1, "broadcast");
    number(in, rank + round);
    MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(out, ranks + size * round, size, "sum for all");
    number(out, rank);
    MPI_Allreduce(MPI_IN_PLACE, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(out, ranks, size, "sum for all in place");
    MPI_Alltoall(in, part, MPI_INT, out, part, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < part * size; i++) {
        require(out[i] == i / part + round + rank * part + i % part, "part from everybody");
    }
    MPI_Iallreduce(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(out, ranks + size * round, size, "nonblocking sum for all");
    number(out, rank);
    MPI_Iallreduce(MPI_IN_PLACE, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(out, ranks, size, "nonblocking sum for all in place");
    number(out, -7);
    MPI_Ireduce(in, out, COUNT, MPI_INT, MPI_SUM, size - 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(out, size - 1 == rank ? ranks + size * round : -7, size - 1 == rank ? size : 1,
          "nonblocking sum for one");
    number(out, 0 == rank ? round : -1);
    MPI_Ibcast(out, COUNT, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(out, round, 1, "nonblocking broadcast");
    MPI_Iallgather(in, part, MPI_INT, out, part, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < part * size; i++) {
        require(out[i] == i / part + round + i % part, "nonblocking part from everybody");
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int* secret = secret_memory(2 * COUNT * sizeof *secret);
    int* open = malloc(2 * COUNT * sizeof *open);
    int all = NULL != secret && NULL != open;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!all) {
        if (0 == rank) {
            printf("no secret memory\n");
        }
        MPI_Finalize();
        return 0;
    }
    for (int round = 0; round < ROUNDS; round++) {
        exchange(secret, secret + COUNT, round);
        exchange(secret, open, round);
        exchange(open, secret, round);
        /* Only one rank uses secret memory. */
        exchange(round % size == rank ? secret : open, open + COUNT, round);
        exchange(open, round % size == rank ? secret : open + COUNT, round);
    }
    if (0 == rank) {
        printf("secret ok\n");
    }
    free(open);
    MPI_Finalize();
    return 0;
}
