/*
 * What MPI's progress rule promises around collectives, one part for each argument. Prints
 * "PART ok" from rank 0 when everything was right.
 *
 *   receive   a long message is received by a rank that only calls MPI_Allreduce, always last, so
 *             that it never waits there
 *   window    passive-target gets from ranks that wait in a barrier; the window is freed, and the
 *             program ends
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

enum { MESSAGE = 8 << 20, REDUCTIONS = 300, LATE_US = 200, ROUNDS = 20 };

static int rank;
static int size;

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "progress: wrong on rank %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void reduce_once(int round) {
    const int mine = rank + round;
    int sum = -1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    require(sum == size * (size - 1) / 2 + size * round, "allreduce");
}

/** The last rank receives from rank 0. Asking for the status drives the host once, which is far
 * too little for this message of hundreds of fragments. */
static void receive(void) {
    char* data = malloc(MESSAGE);
    MPI_Request request = MPI_REQUEST_NULL;
    int done = 0;
    require(NULL != data, "memory");
    memset(data, 0 == rank ? 7 : 0, MESSAGE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        MPI_Isend(data, MESSAGE, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD, &request);
    } else if (size - 1 == rank) {
        MPI_Irecv(data, MESSAGE, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
    }
    for (int round = 0; round < REDUCTIONS; ++round) {
        if (size - 1 == rank) {
            usleep(LATE_US);
        }
        reduce_once(round);
    }
    MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    require(done, "the message is not there after all reductions");
    require(size - 1 != rank || (7 == data[0] && 7 == data[MESSAGE - 1]), "its contents");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(data);
}

static void window(void) {
    int memory[64];
    int got = -1;
    MPI_Win win;
    for (int i = 0; i < 64; ++i) {
        memory[i] = 100 * rank + i;
    }
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; 0 == rank && round < ROUNDS; ++round) {
        const int target = size > 1 ? 1 + round % (size - 1) : 0;
        if (0 == round % 7) {
            usleep(3000); /* The other ranks may be asleep by then. */
        }
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        MPI_Get(&got, 1, MPI_INT, target, round, 1, MPI_INT, win);
        MPI_Win_unlock(target, win);
        require(got == 100 * target + round, "what was got");
    }
    MPI_Win_free(&win);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    require(2 == argc, "arguments: one part");
    if (0 == strcmp(argv[1], "receive")) {
        receive();
    } else if (0 == strcmp(argv[1], "window")) {
        window();
    } else {
        require(0, "no such part");
    }
    if (0 == rank) {
        printf("%s ok\n", argv[1]);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
