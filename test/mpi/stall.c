/*
 * Rank 1 stays away from an allreduce until a file exists: stall.py makes it once another rank has
 * said for whom it waits.
 *
 * usage: stall FILE blocking|nonblocking|persistent|slow
 * slow: a nonblocking allreduce whose end the ranks ask for now and then.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#if OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define Allreduce_init MPIX_Allreduce_init
#else
#define Allreduce_init MPI_Allreduce_init
#endif

enum { LATE = 1, SECONDS_MAX = 100, TRIES_PER_SECOND = 100, TESTS_PER_SECOND = 40 };

static void await_file(const char* path) {
    for (int i = 0; i < SECONDS_MAX * TRIES_PER_SECOND && 0 != access(path, F_OK); i++) {
        usleep(1000000 / TRIES_PER_SECOND);
    }
}

static int one = 1;
static int sum;

/** Makes the request of a persistent allreduce. */
static void make_request(const char* how, MPI_Request* request) {
    if (0 == strcmp(how, "persistent")) {
        Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    }
}

static void add_up(const char* how, MPI_Request* request) {
    if (0 == strcmp(how, "blocking")) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        return;
    }
    if (0 == strcmp(how, "persistent")) {
        MPI_Start(request);
    } else {
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request);
    }
    int over = 0;
    while (0 == strcmp(how, "slow") && !over) {
        MPI_Test(request, &over, MPI_STATUS_IGNORE);
        usleep(1000000 / TESTS_PER_SECOND);
    }
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Request request = MPI_REQUEST_NULL;
    make_request(argv[2], &request);
    add_up(argv[2], &request);
    if (LATE == rank) {
        printf("late process %d\n", (int)getpid());
        fflush(stdout);
        await_file(argv[1]);
    }
    add_up(argv[2], &request);
    printf("rank %d: %s\n", rank, size == sum ? "right" : "wrong");
    if (MPI_REQUEST_NULL != request) {
        MPI_Request_free(&request);
    }
    MPI_Finalize();
    return size == sum ? 0 : 1;
}
