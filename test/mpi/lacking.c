/*
 * The component gets no memory for the first call of a communicator, on rank 0 alone, before the
 * call has its place among those of the communicator's group. The other ranks must not take rank
 * 0's next call for it: no call succeeds with a wrong result, and all that follow are errors. Each
 * allocation up to a number is refused once: the C library's functions are replaced. (Later ones
 * are those of the exchange by which the group is made: without them the other ranks wait for
 * ever.) Prints "lacking ok" from rank 0.
 *
 * usage: lacking blocking|vectors|persistent NUMBER
 */
#include "persistent.h"
#include "refused_memory.h"

enum { CALLS = 4, RANKS_MAX = 64 };

/* These are the C library's own functions. */
extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);

/** The call of malloc() or calloc() by the component that is refused. */
static int refused_block;

static int is_block_refused(const void* caller) {
    const int refused = is_refused(&refused_block, caller);
    errno = refused ? ENOMEM : errno;
    return refused;
}

void* malloc(size_t bytes) {
    return is_block_refused(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
    return is_block_refused(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

/** Each of these calls gives every rank the sum of what all ranks have given. */
static int add_blocking(MPI_Comm comm, int mine, int* sum) {
    return MPI_Allreduce(&mine, sum, 1, MPI_INT, MPI_SUM, comm);
}

static int add_vectors(MPI_Comm comm, int mine, int* sum) {
    int in[RANKS_MAX];
    int out[RANKS_MAX];
    int counts[RANKS_MAX];
    int places[RANKS_MAX];
    for (int i = 0; i < size; i++) {
        in[i] = mine;
        out[i] = 0;
        counts[i] = 1;
        places[i] = i;
    }
    const int rc = MPI_Alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, comm);
    *sum = 0;
    for (int i = 0; i < size; i++) {
        *sum += out[i];
    }
    return rc;
}

static int add_persistent(MPI_Comm comm, int mine, int* sum) {
    MPI_Request request = MPI_REQUEST_NULL;
    int rc = MPI_Allreduce_init(&mine, sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    if (MPI_SUCCESS == rc) {
        rc = MPI_Start(&request);
    }
    if (MPI_SUCCESS == rc) {
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (MPI_REQUEST_NULL != request) {
        (void)MPI_Request_free(&request);
    }
    return rc;
}

typedef int add_t(MPI_Comm comm, int mine, int* sum);

static void refuse(add_t* add, int number) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < CALLS; i++) {
        int sum = -1;
        refused_block = 0 == rank && 0 == i ? number : 0;
        const int rc = add(comm, 100 * i + rank, &sum);
        require(0 == refused_block, "fewer allocations", number);
        const int right = 100 * i * size + size * (size - 1) / 2;
        require(MPI_SUCCESS != rc || right == sum, "success with a wrong sum", i);
        require(MPI_SUCCESS != rc, "success although rank 0 has left a call out", i);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
    start(argc, argv);
    require(size <= RANKS_MAX, "too many ranks", size);
    add_t* add = 0 == strcmp(way, "vectors")      ? add_vectors
                 : 0 == strcmp(way, "persistent") ? add_persistent
                                                  : add_blocking;
    const int numbers = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    for (int number = 1; number <= numbers; number++) {
        refuse(add, number);
    }
    if (0 == rank) {
        printf("lacking ok\n");
    }
    MPI_Finalize();
    return 0;
}
