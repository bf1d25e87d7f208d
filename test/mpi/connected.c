/*
 * Two jobs that meet: one accepts, the other connects, and both use the communicator that they
 * share.
 *
 * usage: connected accept | connect FILE TIMES
 *
 * The name of the port is passed through FILE. The jobs connect and disconnect TIMES times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

typedef struct {
    MPI_Comm comm;
    int accepts;
    int rank;
    int size;
    int remote;
} sides_t;

static void require(int condition, const char* what) {
    if (!condition) {
        printf("wrong: %s\n", what);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* ------------------------------------------------------------------ the port */

static void write_port(const char* file, const char* port) {
    char other[4096];
    snprintf(other, sizeof other, "%s.new", file);
    FILE* stream = fopen(other, "w");
    require(NULL != stream && EOF != fputs(port, stream) && 0 == fclose(stream) &&
                0 == rename(other, file),
            "no file for the port");
}

static void read_port(const char* file, char* port) {
    FILE* stream = fopen(file, "r");
    for (int i = 0; NULL == stream && i < 3000; i++) {
        usleep(10000);
        stream = fopen(file, "r");
    }
    require(NULL != stream && NULL != fgets(port, MPI_MAX_PORT_NAME, stream), "no port");
    fclose(stream);
}

/* ------------------------------------------------------------------ what they share */

/** Broadcasts from every process of both sides in turn. */
static void use_roots(const sides_t* s, int nonblocking) {
    for (int side = 0; side < 2; side++) {
        const int here = side == s->accepts;
        for (int rank = 0; rank < (here ? s->size : s->remote); rank++) {
            const int root = !here ? rank : (rank == s->rank ? MPI_ROOT : MPI_PROC_NULL);
            int word = MPI_ROOT == root ? 100 * side + rank : -1;
            int mine = s->rank + 1;
            int sum = -1;
            MPI_Request requests[2];
            if (nonblocking) {
                MPI_Ibcast(&word, 1, MPI_INT, root, s->comm, &requests[0]);
                MPI_Ireduce(&mine, &sum, 1, MPI_INT, MPI_SUM, root, s->comm, &requests[1]);
                MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            } else {
                MPI_Bcast(&word, 1, MPI_INT, root, s->comm);
                MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, root, s->comm);
            }
            require(word == (MPI_PROC_NULL == root ? -1 : 100 * side + rank), "bcast");
            require(sum == (MPI_ROOT == root ? s->remote * (s->remote + 1) / 2 : -1), "reduce");
        }
    }
}

static void use_all(const sides_t* s, int words) {
    int* mine = malloc(((size_t)s->remote + 1) * (size_t)words * sizeof *mine);
    int* theirs = malloc(((size_t)s->remote + 1) * (size_t)words * sizeof *theirs);
    for (int i = 0; i < s->remote * words; i++) {
        mine[i] = 1000 * s->rank + i / words;
    }
    MPI_Request request;
    MPI_Alltoall(mine, words, MPI_INT, theirs, words, MPI_INT, s->comm);
    for (int i = 0; i < s->remote * words; i++) {
        require(theirs[i] == 1000 * (i / words) + s->rank, "alltoall");
    }
    MPI_Iallreduce(mine, theirs, words, MPI_INT, MPI_MAX, s->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(theirs[0] == 1000 * (s->remote - 1), "iallreduce");
    MPI_Allreduce(mine, theirs, words, MPI_INT, MPI_MAX, s->comm);
    require(theirs[words - 1] == 1000 * (s->remote - 1), "allreduce");
    MPI_Barrier(s->comm);
    free(mine);
    free(theirs);
}

/** Uses the communicator of both sides, and a copy of it. */
static void use_merger(const sides_t* s) {
    MPI_Comm merged;
    MPI_Comm copy;
    int sum = 0;
    const int all = s->size + s->remote;
    MPI_Intercomm_merge(s->comm, s->accepts, &merged);
    MPI_Comm_dup(merged, &copy);
    MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, merged);
    require(sum == all, "allreduce of a merger");
    MPI_Allreduce(&(int){2}, &sum, 1, MPI_INT, MPI_SUM, copy);
    require(sum == 2 * all, "allreduce of its copy");
    MPI_Comm_free(&copy);
    MPI_Comm_free(&merged);
}

static void meet(int accepts, const char* port) {
    sides_t s = {.accepts = accepts};
    if (accepts) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &s.comm);
    } else {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &s.comm);
    }
    MPI_Comm_rank(s.comm, &s.rank);
    MPI_Comm_size(s.comm, &s.size);
    MPI_Comm_remote_size(s.comm, &s.remote);
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        use_roots(&s, nonblocking);
        use_all(&s, 1);
        use_all(&s, 20000);
    }
    use_merger(&s);
    MPI_Comm_free(&s.comm);
}

int main(int argc, char** argv) {
    char port[MPI_MAX_PORT_NAME] = "";
    int rank;
    int sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    require(4 == argc, "usage: connected accept | connect FILE TIMES");
    const int accepts = 0 == strcmp(argv[1], "accept");
    if (accepts && 0 == rank) {
        MPI_Open_port(MPI_INFO_NULL, port);
        write_port(argv[2], port);
    } else if (0 == rank) {
        read_port(argv[2], port);
    }
    for (int i = 0; i < (int)strtol(argv[3], NULL, 10); i++) {
        meet(accepts, port);
    }
    MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        if (accepts) {
            MPI_Close_port(port);
        }
        printf("%s ok\n", argv[1]);
    }
    MPI_Finalize();
    return 0;
}
