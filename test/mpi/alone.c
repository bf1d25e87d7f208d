/*
 * A program that goes on after errors, and a call that fails on rank 0 alone: the other ranks must
 * not take rank 0's next call for it.
 *
 *   alone blocking|nonblocking|persistent|memory|inter
 *
 * In the last two rank 0 gets no memory for what it packs; otherwise its own block has two lengths.
 * Prints "alone ok" from rank 0.
 */
#include "persistent.h"
#include "refused_memory.h"

enum { CALLS = 4, WRONG = 1, LONG = 1 << 20 };

static MPI_Comm comm; /**< A duplicate of MPI_COMM_WORLD. */

/** A scatterv of one int each: `value` + the rank. Rank 0's own part is wrong in one call. */
static int scatter(int value, int wrong, int* part) {
    int values[64];
    int counts[64];
    int displacements[64];
    const int count = wrong ? 2 : 1;
    MPI_Request request = MPI_REQUEST_NULL;
    for (int i = 0; i < size; i++) {
        values[i] = value + i;
        counts[i] = 1;
        displacements[i] = i;
    }
    if (0 == strcmp(way, "blocking")) {
        return MPI_Scatterv(values, counts, displacements, MPI_INT, part, count, MPI_INT, 0, comm);
    }
    int rc;
    if (0 == strcmp(way, "nonblocking")) {
        rc = MPI_Iscatterv(values, counts, displacements, MPI_INT, part, count, MPI_INT, 0, comm,
                           &request);
        return MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
    }
    rc = MPI_Scatterv_init(values, counts, displacements, MPI_INT, part, count, MPI_INT, 0, comm,
                           MPI_INFO_NULL, &request);
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

/** A broadcast of every other int of a vector, for which rank 0 has no memory in one call. */
static int broadcast(int value, int wrong, int* part, MPI_Comm on, int root) {
    static int vector[2 * LONG];
    MPI_Datatype sparse;
    MPI_Type_vector(LONG, 1, 2, MPI_INT, &sparse);
    MPI_Type_commit(&sparse);
    vector[2 * LONG - 2] = 0 == rank ? value + 1 : -1;
    refused_aligned = wrong;
    const int rc = MPI_Bcast(vector, 1, sparse, root, on);
    refused_aligned = 0;
    *part = vector[2 * LONG - 2] - 1 + rank;
    MPI_Type_free(&sparse);
    return rc;
}

/** Makes an inter-communicator of rank 0 and all others. */
static MPI_Comm split(void) {
    MPI_Comm side;
    MPI_Comm inter;
    MPI_Comm_split(MPI_COMM_WORLD, 0 == rank ? 0 : 1, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 0 == rank ? 1 : 0, 0, &inter);
    MPI_Comm_free(&side);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    return inter;
}

static int call(int value, int wrong, int* part, MPI_Comm inter) {
    if (MPI_COMM_NULL != inter) {
        return broadcast(value, wrong, part, inter, 0 == rank ? MPI_ROOT : 0);
    }
    if (0 == strcmp(way, "memory")) {
        return broadcast(value, wrong, part, comm, 0);
    }
    return scatter(value, wrong, part);
}

int main(int argc, char** argv) {
    int part = -1;
    int failures = 0;
    start(argc, argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm inter = 0 == strcmp(way, "inter") ? split() : MPI_COMM_NULL;
    for (int i = 0; i < CALLS; i++) {
        const int wrong = 0 == rank && WRONG == i;
        const int rc = call(100 * i, wrong, &part, inter);
        failures += MPI_SUCCESS != rc;
        require(MPI_SUCCESS != rc || 100 * i + rank == part, "success with wrong data", i);
        require(!wrong || MPI_SUCCESS != rc, "no error", i);
    }
    /* A persistent request has a group of its own: only the request that rank 0 lacks is lost. */
    const int expected = 0 == strcmp(way, "persistent") ? 1 : CALLS - WRONG;
    require(expected == failures, "a wrong number of errors", failures);
    MPI_Comm_free(&comm);
    if (0 == rank) {
        printf("alone ok\n");
    }
    MPI_Finalize();
    return 0;
}
