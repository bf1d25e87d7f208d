/*
 * How often the library looks at the network while all that it waits for is on one host. Each host
 * has two ranks of this program; the first rank of each host prints
 *
 *   network_polls: 0.080 looks for each test
 *
 * The program puts a function of its own before that of UCX, which the component's library calls.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { TESTS = 4000, WARM_UPS = 50 };

static unsigned long looks;

static void* next(const char* name) {
    void* ucp = dlopen("libucp.so.0", RTLD_NOW);
    void* function = ucp == NULL ? NULL : dlsym(ucp, name);
    if (function == NULL) {
        fprintf(stderr, "network_polls: UCX has no %s\n", name);
        abort();
    }
    return function;
}

/** As UCX declares it, whose worker is a pointer. */
__attribute__((visibility("default"))) unsigned ucp_worker_progress(void* worker) {
    static unsigned (*progress)(void*);
    if (progress == NULL) {
        progress = (unsigned (*)(void*))next("ucp_worker_progress");
    }
    looks++;
    return progress(worker);
}

int main(int argc, char** argv) {
    MPI_Comm host;
    MPI_Request request;
    int rank;
    int done = 0;
    double in = 1;
    double out;
    MPI_Init(&argc, &argv);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &rank);
    for (int i = 0; i < WARM_UPS; i++) {
        MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, host);
    }
    if (rank != 0) { /* It joins late. */
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, host, MPI_STATUS_IGNORE);
    }
    MPI_Iallreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, host, &request);
    if (rank == 0) {
        const unsigned long before = looks;
        for (int i = 0; i < TESTS && !done; i++) {
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        printf("network_polls: %.3f looks for each test\n", (double)(looks - before) / TESTS);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 0, host);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&host);
    MPI_Finalize();
    return done;
}
