/*
 * Requests of nonblocking and persistent collectives as MPI has them, beyond what single calls
 * show: hundreds outstanding, ends in any order, mixed with blocking calls and messages,
 * communicators and datatypes freed before the end, starts in different orders, threads. One part
 * for each argument; "PART ok" from rank 0.
 */
#include "requests.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "persistent.h"

int world_rank;
int world_size;

void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "requests: rank %d: wrong: %s\n", world_rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

uint64_t next_random(uint64_t* state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t sum_of_ranks(int size) {
    return (int64_t)size * (size - 1) / 2;
}

/* ------------------------------------------------------------------ many outstanding */

enum { MANY = 400, MANY_ROUNDS = 3 };

/** One of `MANY` requests: the kinds take turns, all with a few elements. */
typedef struct {
    int64_t send[64];
    int64_t receive[64];
} cell_t;

static void start_cell(cell_t* cell, int index, MPI_Comm comm, MPI_Request* request) {
    for (int i = 0; i < 64; i++) {
        cell->send[i] = world_rank + index + i;
        cell->receive[i] = -1;
    }
    switch (index % 4) {
    case 0:
        MPI_Iallreduce(cell->send, cell->receive, 3, MPI_INT64_T, MPI_SUM, comm, request);
        break;
    case 1:
        memcpy(cell->receive, cell->send, sizeof cell->send);
        MPI_Ibcast(cell->receive, 5, MPI_INT64_T, index % world_size, comm, request);
        break;
    case 2: MPI_Iscan(cell->send, cell->receive, 2, MPI_INT64_T, MPI_MAX, comm, request); break;
    default: MPI_Ibarrier(comm, request); break;
    }
}

static void check_cell(const cell_t* cell, int index) {
    switch (index % 4) {
    case 0:
        for (int i = 0; i < 3; i++) {
            const int64_t expected = sum_of_ranks(world_size) + (int64_t)world_size * (index + i);
            require(cell->receive[i] == expected, "iallreduce of many");
        }
        break;
    case 1: require(cell->receive[4] == index % world_size + index + 4, "ibcast of many"); break;
    case 2: require(cell->receive[1] == world_rank + index + 1, "iscan of many"); break;
    default: break;
    }
}

void complete(MPI_Request* requests, int count, int way, uint64_t* random) {
    if (way == 0) {
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    }
    for (int left = way == 0 ? 0 : count; left > 0; left--) {
        int index = (int)(next_random(random) % (uint64_t)count);
        int done = 0;
        while (way != 1 && requests[index] == MPI_REQUEST_NULL) {
            index = (index + 1) % count;
        }
        if (way == 1) {
            MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        } else if (way == 2) {
            MPI_Wait(&requests[index], MPI_STATUS_IGNORE);
        }
        while (way == 3 && !done) {
            MPI_Test(&requests[index], &done, MPI_STATUS_IGNORE);
        }
    }
}

void shuffle(MPI_Request* requests, int count, uint64_t* random) {
    for (int i = count - 1; i > 0; i--) {
        const int other = (int)(next_random(random) % (uint64_t)(i + 1));
        const MPI_Request kept = requests[i];
        requests[i] = requests[other];
        requests[other] = kept;
    }
}

static void many(void) {
    cell_t* cells = malloc(MANY * sizeof *cells);
    MPI_Request requests[MANY];
    uint64_t random = (uint64_t)world_rank + 1;
    for (int round = 0; round < WAYS * MANY_ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            start_cell(&cells[i], i, MPI_COMM_WORLD, &requests[i]);
            if (i % 97 == 0) {
                int mine = i;
                MPI_Bcast(&mine, 1, MPI_INT, 0, MPI_COMM_WORLD); /* Beside those outstanding. */
            }
        }
        complete(requests, MANY, round % WAYS, &random);
        for (int i = 0; i < MANY; i++) {
            check_cell(&cells[i], i);
        }
    }
    free(cells);
}

/* ------------------------------------------------------------------ beside messages */

/** A rank that waits for a message serves what is outstanding, and the other way round. */
static void messages(void) {
    enum { ROUNDS = 300 };
    const int right = (world_rank + 1) % world_size;
    const int left = (world_rank + world_size - 1) % world_size;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[3];
        int64_t token = round;
        int64_t got = -1;
        int64_t sum = -1;
        int64_t mine = world_rank;
        MPI_Irecv(&got, 1, MPI_INT64_T, left, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
        if (world_rank == 0) {
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE); /* Rank 0 waits before it sends. */
        }
        MPI_Isend(&token, 1, MPI_INT64_T, right, 5, MPI_COMM_WORLD, &requests[2]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        require(got == round && sum == sum_of_ranks(world_size), "beside messages");
    }
}

/* ------------------------------------------------------------------ freed before the end */

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
    MPI_Aint low;
    MPI_Aint extent;
    MPI_Type_get_extent(*type, &low, &extent);
    for (int i = 0; i < *count; i++) {
        *(int64_t*)((char*)inout + i * extent) += *(int64_t*)((char*)in + i * extent);
    }
}

/** The communicator, datatype and operator are freed while the call is outstanding. */
static void freed(void) {
    enum { ROUNDS = 50, COUNT = 1000 };
    int64_t* send = malloc(2 * COUNT * sizeof *send);
    int64_t* receive = malloc(2 * COUNT * sizeof *receive);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comm;
        MPI_Datatype gapped;
        MPI_Op op;
        MPI_Request request;
        for (int i = 0; i < 2 * COUNT; i++) {
            send[i] = world_rank + i;
            receive[i] = -1;
        }
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Barrier(comm);
        MPI_Type_create_resized(MPI_INT64_T, 0, 2 * sizeof *send, &gapped);
        MPI_Type_commit(&gapped);
        MPI_Op_create(add, 1, &op);
        if (round % 2 == 0) {
            MPI_Iallreduce(send, receive, COUNT, gapped, op, comm, &request);
        } else {
            MPI_Allreduce_init(send, receive, COUNT, gapped, op, comm, MPI_INFO_NULL, &request);
        }
        MPI_Comm_free(&comm);
        MPI_Type_free(&gapped);
        MPI_Op_free(&op);
        if (round % 2 != 0) {
            MPI_Start(&request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (round % 2 != 0) {
            MPI_Request_free(&request);
        }
        require(request == MPI_REQUEST_NULL, "a request that has ended");
        for (int i = 0; i < COUNT; i++) {
            const int64_t expected = sum_of_ranks(world_size) + (int64_t)world_size * 2 * i;
            require(receive[2 * i] == expected && receive[2 * i + 1] == -1, "freed before the end");
        }
    }
    free(send);
    free(receive);
}

/* ------------------------------------------------------------------ persistent */

enum { KEPT = 40 };

/** Ranks start in different orders, some by MPI_Startall, while other collectives go on. */
static void persistent(void) {
    static int64_t send[KEPT];
    static int64_t receive[KEPT];
    MPI_Request requests[KEPT];
    uint64_t random = (uint64_t)world_rank + 77;
    for (int i = 0; i < KEPT; i++) {
        if (i % 2 == 0) {
            MPI_Allreduce_init(&send[i], &receive[i], 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD,
                               MPI_INFO_NULL, &requests[i]);
        } else {
            MPI_Bcast_init(&receive[i], 1, MPI_INT64_T, i % world_size, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &requests[i]);
        }
    }
    for (int round = 0; round < 30; round++) {
        MPI_Request started[KEPT];
        for (int i = 0; i < KEPT; i++) {
            send[i] = world_rank + round + i;
            receive[i] = send[i];
            started[i] = requests[i];
        }
        shuffle(started, KEPT, &random);
        MPI_Startall(KEPT, started);
        MPI_Barrier(MPI_COMM_WORLD);
        complete(started, round % 2 == 0 ? KEPT : 0, 0, &random);
        for (int i = 0; i < KEPT; i++) {
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE); /* It returns at once where inactive. */
            const int64_t sum = sum_of_ranks(world_size) + (int64_t)world_size * (round + i);
            require(receive[i] == (i % 2 == 0 ? sum : i % world_size + round + i), "persistent");
        }
    }
#if OMPI_MAJOR_VERSION == 4
    require(0 == MPI_Start(&requests[0]) && MPI_ERR_REQUEST == MPI_Start(&requests[0]), "twice");
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
#endif
    for (int i = 0; i < KEPT; i++) {
        MPI_Request_free(&requests[(i + world_rank) % KEPT]); /* In any order. */
    }
}

enum { LIVE = 240, RENEWED = LIVE / 2, RENEWALS = 12, LONG = 5000 };

/** One of `LIVE` requests that exist at once. */
typedef struct {
    int kind;
    int started; /* The number of starts, which sets the data. */
    int64_t send[8];
    int64_t receive[8];
    MPI_Request request;
} live_t;

static int64_t long_send[LONG];
static int64_t long_receive[LONG];

static void make_live(live_t* live, int kind, MPI_Comm comm) {
    MPI_Request* request = &live->request;
    live->kind = kind;
    live->started = 0;
    switch (kind % 5) {
    case 0:
        MPI_Allreduce_init(live->send, live->receive, 3, MPI_INT64_T, MPI_SUM, comm, MPI_INFO_NULL,
                           request);
        break;
    case 1:
        MPI_Bcast_init(live->receive, 8, MPI_INT64_T, kind % world_size, comm, MPI_INFO_NULL,
                       request);
        break;
    case 2: MPI_Barrier_init(comm, MPI_INFO_NULL, request); break;
    case 3:
        MPI_Scan_init(live->send, live->receive, 2, MPI_INT64_T, MPI_MAX, comm, MPI_INFO_NULL,
                      request);
        break;
    default:
        MPI_Reduce_init(live->send, live->receive, 8, MPI_INT64_T, MPI_SUM, kind % world_size, comm,
                        MPI_INFO_NULL, request);
        break;
    }
}

static void fill_live(live_t* live) {
    live->started++;
    for (int i = 0; i < 8; i++) {
        live->send[i] = world_rank + live->kind + live->started + i;
        live->receive[i] = live->send[i];
    }
}

static void check_live(const live_t* live) {
    const int root = live->kind % world_size;
    const int64_t base = live->kind + live->started;
    const int64_t sum = sum_of_ranks(world_size);
    switch (live->kind % 5) {
    case 0: require(live->receive[2] == sum + world_size * (base + 2), "of many: allreduce"); break;
    case 1: require(live->receive[7] == root + base + 7, "of many: bcast"); break;
    case 3: require(live->receive[1] == world_rank + base + 1, "of many: scan"); break;
    case 4:
        require(world_rank != root || live->receive[7] == sum + world_size * (base + 7),
                "of many: reduce");
        break;
    default: break;
    }
}

/** Starts the requests in an order of the rank's own, and ends them in another order. */
static void run_live(live_t* const* some, int count, int way, uint64_t* random) {
    MPI_Request started[LIVE];
    for (int i = 0; i < count; i++) {
        fill_live(some[i]);
        started[i] = some[i]->request;
    }
    shuffle(started, count, random);
    for (int i = 0; i < count; i++) {
        MPI_Start(&started[i]);
    }
    if (way != 2 && way != 3) { /* The other ways ask again for one that has ended. */
        complete(started, count, way == 0 ? 0 : 1, random);
    }
    for (int i = 0; i < count; i++) {
        MPI_Wait(&some[i]->request, MPI_STATUS_IGNORE); /* It returns at once where inactive. */
        check_live(some[i]);
    }
}

/**
 * Hundreds at once. Ranks give up the same half in the end, but while new ones are made each rank
 * has freed others of it, in an order of its own.
 */
static void persistent_many(void) {
    live_t* all = malloc(LIVE * sizeof *all);
    live_t* kept[LIVE];
    MPI_Request late[LIVE];
    uint64_t random = (uint64_t)world_rank + 5;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < LIVE; i++) {
        make_live(&all[i], i, comm);
        kept[i] = &all[i];
    }
    for (int round = 0; round < RENEWALS; round++) {
        int left = 0;
        run_live(kept, LIVE, round % WAYS, &random);
        for (int i = 0; i < RENEWED; i++) {
            late[i] = all[2 * i + round % 2].request;
        }
        shuffle(late, RENEWED, &random);
        for (int i = 0; i < RENEWED; i++) {
            make_live(&all[2 * i + round % 2], i + round, comm);
            for (int j = next_random(&random) % 3; j > 0 && left < RENEWED; j--) {
                MPI_Request_free(&late[left++]);
            }
        }
        if (round % 3 == 0) { /* The first starts of the new ones come before the last frees. */
            run_live(kept, LIVE, 1, &random);
        }
        for (; left < RENEWED; left++) {
            MPI_Request_free(&late[left]);
        }
    }
    MPI_Comm_free(&comm); /* Before their last starts, and before they are. */
    run_live(kept, LIVE, 0, &random);
    for (int i = 0; i < LIVE; i++) {
        MPI_Request_free(&all[(i + world_rank * 7) % LIVE].request);
    }
    free(all);
}

/** One request after another, of all lengths: later ones have the groups of earlier ones. */
static void persistent_loop(void) {
    enum { LOOPS = 1000 };
    for (int round = 0; round < LOOPS; round++) {
        const int count = round % 4 == 3 ? LONG - round : 1 + round % 7;
        const int starts = round % 3;
        MPI_Request request;
        if (round % 2 == 0) {
            MPI_Bcast_init(long_receive, count, MPI_INT64_T, round % world_size, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &request);
        } else {
            MPI_Allreduce_init(long_send, long_receive, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD,
                               MPI_INFO_NULL, &request);
        }
        for (int start = 0; start < starts; start++) { /* Roots may run ahead. */
            for (int i = 0; i < count; i++) {
                long_send[i] = world_rank + round + start + i;
                long_receive[i] = long_send[i];
            }
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            for (int i = 0; i < count; i++) {
                const int64_t base = round + start + i;
                require(long_receive[i] == (round % 2 == 0 ? round % world_size + base
                                                           : sum_of_ranks(world_size) +
                                                                 (int64_t)world_size * base),
                        "one after the other");
            }
        }
        MPI_Request_free(&request);
    }
}

static live_t given_up[LIVE];
static int given_up_count;

static void* free_given_up(void* unused) {
    (void)unused;
    for (int i = 0; i < given_up_count; i++) {
        MPI_Request_free(&given_up[i].request);
    }
    return NULL;
}

/** Another thread frees requests while this one makes more on the same communicator. */
static void persistent_threads(void) {
    static live_t live[LIVE];
    live_t* const kept[] = {&live[0], &live[1], &live[2], &live[3], &live[4], &live[5], &live[6]};
    const int count = (int)(sizeof kept / sizeof *kept);
    uint64_t random = (uint64_t)world_rank + 3;
    given_up_count = 0;
    for (int round = 0; round < 60; round++) {
        pthread_t thread;
        require(0 == pthread_create(&thread, NULL, free_given_up, NULL), "a thread");
        for (int i = 0; i < count; i++) {
            make_live(&live[i], i + round, MPI_COMM_WORLD);
        }
        run_live(kept, count, 0, &random);
        pthread_join(thread, NULL);
        memcpy(given_up, live, (size_t)count * sizeof *live);
        given_up_count = count;
    }
    (void)free_given_up(NULL);
}

/** A request that the program forgets. */
static void forgotten(void) {
    static int64_t send = 1;
    static int64_t receive;
    MPI_Request request;
    MPI_Allreduce_init(&send, &receive, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(receive == world_size, "forgotten");
}

/* ------------------------------------------------------------------ MPI_Comm_idup */

/** The collectives of MPI_Comm_idup come at other places among the program's on each rank. */
static void idup(void) {
    for (int round = 0; round < 100; round++) {
        MPI_Comm duplicate;
        MPI_Request request;
        MPI_Request other;
        int64_t mine = 1;
        int64_t sum = 0;
        int64_t later = 0;
        MPI_Comm_idup(MPI_COMM_WORLD, &duplicate, &request);
        for (int i = 0; i < (world_rank + round) % 3; i++) {
            int done = 0;
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        MPI_Iallreduce(&mine, &later, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &other);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        require(sum == world_size && later == world_size, "beside MPI_Comm_idup");
        MPI_Comm_free(&duplicate);
    }
}

/* ------------------------------------------------------------------ freed too early */

static void set_handler(MPI_Errhandler handler) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
}

/** Rank 0 may not free a request in progress, which then ends as if nothing had happened. */
static void freed_early(void) {
    MPI_Request requests[2]; /* Of Ibarrier, and persistent. */
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (int i = 0; i < 16; i++) {
        MPI_Request* request = &requests[i % 2];
        if (0 != world_rank) {
            MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        (void)(i % 2 ? MPI_Start(request) : MPI_Ibarrier(MPI_COMM_WORLD, request));
        if (0 == world_rank) {
            set_handler(MPI_ERRORS_RETURN);
            require(MPI_SUCCESS != MPI_Request_free(request) && MPI_REQUEST_NULL != *request,
                    "what is in progress was freed");
            set_handler(MPI_ERRORS_ARE_FATAL);
        }
        for (int other = 1; 0 == world_rank && other < world_size; other++) {
            MPI_Send(NULL, 0, MPI_INT, other, 0, MPI_COMM_WORLD);
        }
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&requests[1]);
}

/* ------------------------------------------------------------------ threads */

enum { HANDED = 64, HAND_ROUNDS = 50 };

static MPI_Request handed[HANDED];

static void* finish_handed(void* unused) {
    (void)unused;
    MPI_Waitall(HANDED / 2, handed + HANDED / 2, MPI_STATUSES_IGNORE);
    return NULL;
}

/** Another thread completes what this one has started, while this one completes the rest. */
static void threads(void) {
    static int64_t receive[HANDED];
    static int64_t send[HANDED];
    for (int round = 0; round < HAND_ROUNDS; round++) {
        pthread_t thread;
        for (int i = 0; i < HANDED; i++) {
            send[i] = world_rank + i;
            MPI_Iallreduce(&send[i], &receive[i], 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD,
                           &handed[i]);
        }
        require(0 == pthread_create(&thread, NULL, finish_handed, NULL), "a thread");
        for (int i = HANDED / 2 - 1; i >= 0; i--) {
            MPI_Wait(&handed[i], MPI_STATUS_IGNORE);
        }
        pthread_join(thread, NULL);
        for (int i = 0; i < HANDED; i++) {
            require(receive[i] == sum_of_ranks(world_size) + (int64_t)world_size * i, "threads");
        }
    }
}

/* ------------------------------------------------------------------ main */

static const struct {
    const char* name;
    void (*run)(void);
} parts[] = {
    {"many", many},
    {"messages", messages},
    {"freed", freed},
    {"persistent", persistent},
    {"persistent_many", persistent_many},
    {"persistent_loop", persistent_loop},
    {"persistent_threads", persistent_threads},
    {"forgotten", forgotten},
    {"idup", idup},
    {"freed_early", freed_early},
    {"threads", threads},
    {"neighbors_many", neighbors_many},
    {"neighbors_freed", neighbors_freed},
    {"neighbors_persistent", neighbors_persistent},
    {"repeated", repeated},
    {"repeated_threads", repeated_threads},
    {"vectors", vectors},
    {"first", first},
    {"first_of_all", first_of_all},
    {"first_of_all_crossed", first_of_all_crossed},
    {"first_of_all_blocking", first_of_all_blocking},
    {"first_threads", first_threads},
};

int main(int argc, char** argv) {
    int provided;
    const char* name = argc == 2 ? argv[1] : "";
    const int multiple = NULL != strstr(name, "threads");
    MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (NULL == strstr(name, "first_of_all")) {
        MPI_Barrier(MPI_COMM_WORLD); /* From here on UCG serves it. */
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (0 == strcmp(parts[i].name, name)) {
            parts[i].run();
            MPI_Barrier(MPI_COMM_WORLD);
            if (world_rank == 0) {
                printf("%s ok\n", name);
            }
        }
    }
    MPI_Finalize();
    return 0;
}
