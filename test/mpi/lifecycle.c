/*
 * Makes and frees communicators in many ways, one part for each argument. Rank 0: "PART ok".
 */
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mpi.h>

#include "persistent.h"

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "lifecycle: wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/** Calls some collectives whose results are known on a communicator. */
static void use(MPI_Comm comm, int salt) {
    int rank;
    int size;
    int sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int mine = rank + salt;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    require(sum == size * (size - 1) / 2 + size * salt, "allreduce");
    int token = 0 == rank ? salt : -1;
    MPI_Bcast(&token, 1, MPI_INT, 0, comm);
    require(token == salt, "bcast");
    int* all = malloc((size_t)size * sizeof *all);
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm);
    require(all[0] == salt && all[size - 1] == size - 1 + salt, "allgather");
    free(all);
    MPI_Barrier(comm);
}

/** Collectives that synchronise no rank by themselves; coll/sync puts barriers between them. */
static void sync_often(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 30; i++) {
        int token = 0 == rank ? i : -1;
        int sum = -1;
        MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
        require(token == i, "bcast");
        MPI_Scan(&token, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        require(sum == i * (rank + 1), "scan");
    }
}

static void add_and_one(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *count; i++) {
        ((int*)inout)[i] += ((int*)in)[i] + 1;
    }
}

/** Sums by calls each of which differs from those before in one thing alone. */
static void sum_in_turn(MPI_Comm comm, int round, MPI_Op own) {
    int rank;
    int size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int ranks = size * (size - 1) / 2;
    for (int variant = 0; variant < 6; variant++) {
        for (int again = 0; again < 1 + (round + variant) % 5; again++) {
            int mine[2] = {rank + round + again, rank};
            int sum[2] = {-1, -1};
            const int first = ranks + size * (round + again);
            switch (variant) {
            case 0: MPI_Allreduce(mine, sum, 1, MPI_INT, MPI_SUM, comm); break;
            case 1: MPI_Allreduce(mine, sum, 2, MPI_INT, MPI_SUM, comm); break;
            case 2: MPI_Allreduce(mine, sum, 1, MPI_INT, own, comm); break;
            case 3: MPI_Allreduce(MPI_IN_PLACE, mine, 1, MPI_INT, MPI_SUM, comm); break;
            case 4: MPI_Reduce(mine, sum, 1, MPI_INT, MPI_SUM, round % size, comm); break;
            default: MPI_Reduce(mine, sum, 1, MPI_INT, MPI_SUM, 0, comm); break;
            }
            const int* result = 3 == variant ? mine : sum;
            const int root = 4 == variant ? round % size : 5 == variant ? 0 : rank;
            require(rank != root || result[0] == first + (2 == variant ? size - 1 : 0), "a sum");
            require(3 == variant || rank != root || sum[1] == (1 == variant ? ranks : -1),
                    "what lies behind a sum");
        }
    }
}

/** Broadcasts by datatypes that are freed and made anew, some at the same address; on some ranks
 * they are not predefined. */
static void broadcast_in_turn(MPI_Comm comm, int round) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    for (int length = 1; length < 5; length++) {
        MPI_Datatype type;
        MPI_Type_vector(length, 1, rank == round % 2 ? 2 : 1, MPI_INT, &type);
        MPI_Type_commit(&type);
        for (int again = 0; again < 4; again++) {
            int numbers[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
            const int step = rank == round % 2 ? 2 : 1;
            for (int i = 0; 0 == rank && i < length; i++) {
                numbers[i * step] = round + again + i;
            }
            MPI_Bcast(numbers, 1, type, 0, comm);
            for (int i = 0; i < length; i++) {
                require(numbers[i * step] == round + again + i, "a broadcast");
            }
        }
        MPI_Type_free(&type);
    }
    for (int again = 0; again < 4; again++) {
        int number = 0 == rank ? round + again : -1;
        MPI_Bcast(&number, 1, MPI_INT, 0, comm);
        require(number == round + again, "a broadcast of one number");
    }
}

/** Exchanges by calls each of which differs in one thing alone, which may differ between ranks. */
static void exchange_in_turn(MPI_Comm comm, int round) {
    int rank;
    int size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int mine[16];
    int all[16];
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int variant = 0; variant < 6 && 2 * size <= 16; variant++) {
        const int each = 2 - variant % 2;
        const int count = rank == round % size && 2 == each ? 1 : each;
        const MPI_Datatype type = count == each ? MPI_INT : pair;
        for (int again = 0; again < 4; again++) {
            for (int i = 0; i < 2 * size; i++) {
                mine[i] = rank + round + again;
                all[i] = 5 == variant ? mine[i] : -1;
            }
            if (variant < 3) {
                MPI_Allgather(mine, count, type, all, each, MPI_INT, comm);
            } else if (variant < 5) {
                MPI_Alltoall(mine, each, MPI_INT, all, count, type, comm);
            } else {
                MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, each, MPI_INT, comm);
            }
            for (int i = 0; i < each * size; i++) {
                require(all[i] == i / each + round + again, "a number from everybody");
            }
            require(2 == each || 5 == variant || all[size] == -1, "what lies behind the numbers");
        }
    }
    MPI_Type_free(&pair);
}

/** Calls that repeat one another except for their buffers, and calls that only look so. */
static void repeat(void) {
    for (int round = 0; round < 20; round++) {
        MPI_Comm comm;
        MPI_Op own;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Op_create(add_and_one, 1, &own);
        for (int i = 0; i < 10; i++) {
            sum_in_turn(comm, round + i, own);
            broadcast_in_turn(comm, round + i);
            exchange_in_turn(comm, round + i);
            MPI_Barrier(comm);
            MPI_Barrier(comm);
        }
        MPI_Op_free(&own);
        MPI_Comm_free(&comm);
    }
}

/** Makes many communicators, one after another; every tenth is never used. */
static void churn(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 1000; i++) {
        MPI_Comm comm;
        if (0 == i % 3) {
            MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
        } else {
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        }
        if (0 != i % 10) {
            use(comm, i);
        }
        MPI_Comm_free(&comm);
    }
}

/** Makes many communicators that exist at the same time. */
static void crowd(void) {
    enum { COUNT = 60 };
    MPI_Comm comms[COUNT];
    for (int i = 0; i < COUNT; i++) {
        MPI_Comm_dup(0 == i ? MPI_COMM_WORLD : comms[i / 2], &comms[i]);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = COUNT - 1; i >= 0; i--) {
            use(comms[i], i + round);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        MPI_Comm_free(&comms[i]);
    }
}

/** The program ends without freeing what it made. */
static void leak(void) {
    for (int i = 0; i < 10; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        use(comm, i);
    }
}

static void run_once(MPI_Request* request) {
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

/** The program ends without freeing persistent requests, of a communicator that it has freed and of
 *  one that it has not. */
static void forget(void) {
    static int mine = 1;
    static int sum;
    MPI_Request request;
    MPI_Comm freed;
    MPI_Comm kept;
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &freed);
    MPI_Comm_dup(MPI_COMM_WORLD, &kept);
    use(kept, 7);
    for (int i = 0; i < 3; i++) {
        MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, i % 2 ? freed : kept, MPI_INFO_NULL,
                           &request);
        sum = 0;
        run_once(&request);
        require(sum == size, "allreduce of a request that is forgotten");
    }
    MPI_Comm_free(&freed);
}

enum { CYCLES = 1000 };

/** Connects the two sides; with `first`, this rank is the side of one rank. */
static MPI_Comm meet(MPI_Comm side, int first) {
    MPI_Comm across;
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, first ? 1 : 0, 0, &across);
    return across;
}

/** An inter-communicator is freed before its requests. In Open MPI 4.1 and 5.0 one whose number
 * is lower than that of the communicator it was made of has one reference more. Two numbers are
 * free here, one for the communicator of a side and one for it. */
static void free_first(void) {
    int rank;
    MPI_Comm lower[2];
    MPI_Comm side;
    MPI_Comm across;
    MPI_Request requests[3];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &lower[i]);
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
    for (int i = 0; i < 2; i++) {
        MPI_Comm_free(&lower[i]);
    }
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &across);
    MPI_Barrier(across); /* From here on UCG serves nonblocking calls as well. */
    MPI_Barrier_init(across, MPI_INFO_NULL, &requests[0]);
    MPI_Barrier_init(across, MPI_INFO_NULL, &requests[1]);
    MPI_Ibarrier(across, &requests[2]);
    MPI_Comm_free(&across);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++) {
        use(side, i); /* Memory that was freed is used anew. */
        run_once(&requests[i % 2]);
    }
    MPI_Request_free(&requests[0]);
    run_once(&requests[1]);
    MPI_Request_free(&requests[1]);
    MPI_Comm_free(&side);
}

/** Makes, uses and frees a communicator of either kind, with calls that are remembered. */
static void come_and_go(MPI_Comm side, int first) {
    MPI_Comm comm;
    MPI_Comm across = meet(side, first);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 4; i++) {
        MPI_Request request;
        int mine = i;
        int sum = 0;
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, across);
        MPI_Bcast(&mine, 1, MPI_INT, first ? MPI_ROOT : 0, across);
    }
    MPI_Comm_free(&across);
    MPI_Comm_free(&comm);
}

/** Freed communicators leave no memory: prints what is in use after half of them and at the end. */
static void flat(void) {
    int rank;
    MPI_Comm side;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0 == rank, 0, &side);
    size_t bytes[2];
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < CYCLES; i++) {
            come_and_go(side, 0 == rank);
        }
        const struct mallinfo2 info = mallinfo2();
        bytes[half] = info.uordblks + info.hblkhd;
    }
    printf("rank %d: %zu bytes, then %zu, of %d\n", rank, bytes[0], bytes[1], CYCLES);
    fflush(stdout);
    MPI_Comm_free(&side);
}

/* ------------------------------------------------------------------ calls that go wrong */

/** Calls that are alike, except that in the last one rank 1 sends two blocks and rank 0 expects
 * one. */
static void disagree(void) {
    enum { CALLS = 5, BLOCKS = 4 };
    int rank;
    int size;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    require(2 == size, "two ranks");
    MPI_Comm across = meet(MPI_COMM_SELF, 0 == rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(across, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < CALLS; i++) {
        const int wrong = CALLS - 1 == i;
        const int mine[BLOCKS] = {0};
        int theirs[BLOCKS];
        const int sent[2] = {wrong && 1 == rank ? 2 : 1, 1};
        const int received[2] = {1, 1};
        const int places[2] = {0, 2 * (int)sizeof(int)};
        const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
        int status =
            MPI_Alltoallw(mine, sent, places, types, theirs, received, places, types, comm);
        require(1 == rank || wrong == (MPI_SUCCESS != status), "alltoallw: its error is told");
        status = MPI_Allgather(mine, sent[0], MPI_INT, theirs, 1, MPI_INT, across);
        require(1 == rank || wrong == (MPI_SUCCESS != status), "allgather: its error is told");
        status = MPI_Alltoallw(mine, sent, places, types, theirs, received, places, types, across);
        require(1 == rank || wrong == (MPI_SUCCESS != status), "across: its error is told");
    }
    MPI_Comm_free(&comm);
    MPI_Comm_free(&across);
}

/* ------------------------------------------------------------------ threads */

enum { THREADS = 2, ROUNDS = 100, COMMS = 8 };

typedef struct {
    MPI_Comm comms[COMMS];
    int index;
    pthread_mutex_t* turn; /**< Null: threads call MPI at any time. */
} worker_t;

/**
 * First and later collectives on the thread's own communicators. The threads of odd ranks walk
 * through them at another pace, so that processes set up the two threads' communicators in
 * different orders.
 */
static void* work(void* argument) {
    worker_t* worker = argument;
    for (int i = 0; i < ROUNDS; i++) {
        if (NULL != worker->turn) {
            pthread_mutex_lock(worker->turn);
        }
        use(worker->comms[i % COMMS], i + worker->index);
        if (NULL != worker->turn) {
            pthread_mutex_unlock(worker->turn);
        }
    }
    return NULL;
}

static void make_workers(worker_t* workers, pthread_mutex_t* turn) {
    for (int i = 0; i < THREADS; i++) {
        workers[i].index = i;
        workers[i].turn = turn;
        for (int j = 0; j < COMMS; j++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comms[j]);
        }
    }
}

static void free_workers(worker_t* workers) {
    for (int i = 0; i < THREADS; i++) {
        for (int j = 0; j < COMMS; j++) {
            MPI_Comm_free(&workers[i].comms[j]);
        }
    }
}

/** Two threads, each with communicators of its own, at the same time. */
static void multiple(void) {
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    make_workers(workers, NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, &workers[(i + rank) % THREADS]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    free_workers(workers);
}

/** Threads that call MPI one after the other, in the same order everywhere. */
static void serialized(void) {
    pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    worker_t workers[THREADS];
    make_workers(workers, &turn);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, &workers[i]);
        pthread_join(thread, NULL);
    }
    free_workers(workers);
}

/* ------------------------------------------------------------------ spawn */

/** Uses the inter-communicator, and the merger of both sides, on both sides. */
static void use_both_sides(MPI_Comm inter, int is_child) {
    int mine = is_child ? 1 : 100;
    int sum = 0;
    int remote;
    MPI_Comm merged;
    MPI_Comm copy;
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    require(sum == remote * (is_child ? 100 : 1), "allreduce between two sides");
    MPI_Barrier(inter);
    MPI_Intercomm_merge(inter, is_child, &merged);
    use(merged, 5);
    MPI_Comm_dup(merged, &copy);
    use(copy, 6);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&merged);
}

/** `variables` are set by env(1) for the children only, which may so be set up in another way. */
static void spawn(char* program, char** variables) {
    char* arguments[16] = {NULL};
    int count = 0;
    for (; NULL != variables[count] && count < 13; count++) {
        arguments[count] = variables[count];
    }
    arguments[count] = program;
    arguments[count + 1] = "child";
    MPI_Comm children;
    MPI_Comm_spawn("/usr/bin/env", arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
    use(MPI_COMM_WORLD, 1);
    use_both_sides(children, 0);
    MPI_Comm_disconnect(&children);
}

static void child(void) {
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    use(MPI_COMM_WORLD, 2);
    use_both_sides(parent, 1);
    MPI_Comm_disconnect(&parent);
}

/* ------------------------------------------------------------------ join */

/** Connects two processes over the loopback interface. The one that `listens` tells the other
 * its port. */
static int connection_to(int peer, int listens) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr* address = (struct sockaddr*)&here;
    socklen_t bytes = sizeof here;
    const int end = socket(AF_INET, SOCK_STREAM, 0);
    if (!listens) {
        MPI_Recv(&here.sin_port, sizeof here.sin_port, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        require(0 == connect(end, address, bytes), "connect");
        return end;
    }
    require(0 == bind(end, address, bytes) && 0 == listen(end, 1) &&
                0 == getsockname(end, address, &bytes),
            "listen");
    MPI_Send(&here.sin_port, sizeof here.sin_port, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    const int connected = accept(end, NULL, NULL);
    require(connected >= 0, "accept");
    close(end);
    return connected;
}

/** Each two processes make an inter-communicator from a socket and use it until UCG serves it. */
static void join(void) {
    int rank;
    MPI_Comm both;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int second = rank % 2;
    const int socket_end = connection_to(rank ^ 1, !second);
    MPI_Comm_join(socket_end, &both);
    for (int i = 0; i < 20; i++) {
        use_both_sides(both, second);
    }
    MPI_Comm_disconnect(&both);
    close(socket_end);
    use(MPI_COMM_WORLD, 4);
}

/* ------------------------------------------------------------------ parts */

static int level_of(const char* part) {
    const char* rank = getenv("OMPI_COMM_WORLD_RANK");
    if (0 == strcmp(part, "levels")) {
        return NULL != rank && '0' == *rank ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    }
    if (0 == strcmp(part, "multiple")) {
        return MPI_THREAD_MULTIPLE;
    }
    return 0 == strcmp(part, "serialized") ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE;
}

static int run(const char* part, char** argv) {
    if (0 == strcmp(part, "churn")) {
        churn();
    } else if (0 == strcmp(part, "repeat")) {
        repeat();
    } else if (0 == strcmp(part, "sync")) {
        sync_often();
    } else if (0 == strcmp(part, "crowd")) {
        crowd();
    } else if (0 == strcmp(part, "leak")) {
        leak();
    } else if (0 == strcmp(part, "forget")) {
        forget();
    } else if (0 == strcmp(part, "free_first")) {
        free_first();
    } else if (0 == strcmp(part, "flat")) {
        flat();
    } else if (0 == strcmp(part, "disagree")) {
        disagree();
    } else if (0 == strcmp(part, "multiple")) {
        multiple();
    } else if (0 == strcmp(part, "serialized")) {
        serialized();
    } else if (0 == strcmp(part, "spawn")) {
        spawn(argv[0], argv + 2);
    } else if (0 == strcmp(part, "child")) {
        child();
    } else if (0 == strcmp(part, "join")) {
        join();
    } else if (0 == strcmp(part, "use") || 0 == strcmp(part, "levels")) {
        use(MPI_COMM_WORLD, 3);
    } else {
        return 0;
    }
    return 1;
}

int main(int argc, char** argv) {
    const char* part = argc > 1 ? argv[1] : "use";
    int provided;
    int rank;
    MPI_Init_thread(&argc, &argv, level_of(part), &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (provided < level_of(part)) {
        printf("%s needs more threads than MPI offers\n", part);
        MPI_Finalize();
        return 77;
    }
    require(run(part, argv), "no such part");
    if (0 == rank && 0 != strcmp(part, "child")) {
        printf("%s ok\n", part);
    }
    MPI_Finalize();
    return 0;
}
