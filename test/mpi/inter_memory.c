/*
 * The component gets no memory for a reduction on an inter-communicator, on all processes alike.
 * The call then ends with an error, as does every later one of the communicator: no process knows
 * that the others have failed as well. Other communicators are not affected. Each allocation that
 * the first call of a new communicator makes is refused once: the C library's function is replaced.
 * Prints "inter_memory ok: N refused" from rank 0.
 *
 * usage: inter_memory, with an even number of processes, half of them on each side
 */
#include "refused_memory.h"

enum { COUNT = 1 << 13, ALLOCATIONS_MAX = 16 }; /* This is long enough to be combined in pieces. */

static MPI_Comm connect_sides(void) {
    const int second = rank >= size / 2;
    MPI_Comm side;
    MPI_Comm both;
    MPI_Comm_split(MPI_COMM_WORLD, second, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, second ? 0 : size / 2, 1, &both);
    MPI_Comm_free(&side);
    MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
    return both;
}

/** Each side receives the sum of the other side. */
static int reduce(MPI_Comm both, int* is_right) {
    static long in[COUNT];
    static long out[COUNT];
    const int first = rank >= size / 2 ? 0 : size / 2;
    long ranks = 0;
    for (int i = 0; i < COUNT; i++) {
        in[i] = (long)i * (rank + 1);
        out[i] = -1;
    }
    const int status = MPI_Allreduce(in, out, COUNT, MPI_LONG, MPI_SUM, both);
    for (int i = 0; i < size / 2; i++) {
        ranks += first + i + 1;
    }
    *is_right = 1;
    for (int i = 0; i < COUNT; i++) {
        *is_right &= out[i] == i * ranks;
    }
    return status;
}

/** Refuses the allocation of that number in the first reduction. Returns 1 if it was refused, 0
 * if there are not that many, -1 if something was wrong. */
static int try_without(int number) {
    MPI_Comm both = connect_sides();
    int is_right;
    MPI_Barrier(both); /* This makes the group. */
    refused_aligned = number;
    const int status = reduce(both, &is_right);
    const int was_refused = 0 == refused_aligned;
    refused_aligned = 0;
    int good = was_refused ? MPI_SUCCESS != status : MPI_SUCCESS == status && is_right;
    if (!good) {
        fprintf(stderr, "inter_memory: rank %d: allocation %d %s: status %d\n", rank, number,
                was_refused ? "refused" : "not there", status);
    }
    const int later = reduce(both, &is_right);
    good &= was_refused ? MPI_SUCCESS != later : MPI_SUCCESS == later && is_right;
    MPI_Comm_free(&both);
    return good ? was_refused : -1;
}

int main(int argc, char** argv) {
    int refused = 0;
    int least = 1;
    start(argc, argv);
    while (1 == least && refused < ALLOCATIONS_MAX) {
        const int mine = try_without(refused + 1);
        MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        refused += 1 == least;
    }
    if (0 == rank && 0 == least) {
        printf("inter_memory ok: %d refused\n", refused);
    }
    MPI_Finalize();
    return 0 != least;
}
