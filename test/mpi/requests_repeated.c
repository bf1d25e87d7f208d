/*
 * Nonblocking calls that repeat others of their function except for their buffers, or for one more
 * argument: a seeded random walk, each step of which starts one to three calls of a function. They
 * end at once or late, in any order and in any thread, and communicators are freed before.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "requests.h"

enum {
    STEPS = 4000,
    STEPS_OF_COMM = 400, /* Afterwards another communicator is used. */
    COUNT_MAX = 40,      /* The number of ints of a block. */
    RANKS_MAX = 16,
    CALLS_MAX = 3,
    UNTOUCHED = -1
};

enum {
    BARRIER,
    BCAST,
    REDUCE,
    ALLREDUCE,
    SCAN,
    EXSCAN,
    REDUCE_SCATTER_BLOCK,
    ALLGATHER,
    ALLTOALL,
    GATHER,
    SCATTER,
    KINDS
};

/* These are the same on all ranks. */
typedef struct {
    int function;
    int count; /* The number of ints of a block, or of a vector. */
    int root;
    int in_place;
    int vectors; /* Blocks go by the function with vectors, although all have the same length. */
} arguments_t;

typedef struct {
    arguments_t given;
    int number; /* The number of the call, which determines its data. */
    int counts[RANKS_MAX];
    int displs[RANKS_MAX];
    int send[RANKS_MAX * COUNT_MAX];
    int receive[RANKS_MAX * COUNT_MAX + 1];
} call_t;

static int datum(const call_t* call, int rank, int index) {
    return (call->number % 5000) * 8 + rank * 1001 + index * 3;
}

static int sum(const call_t* call, int first, int last, int index) {
    int result = 0;
    for (int rank = first; rank <= last; rank++) {
        result += datum(call, rank, index);
    }
    return result;
}

static int is_root(const call_t* call) {
    return call->given.root == world_rank;
}

static int is_rooted(int function) {
    return BCAST == function || REDUCE == function || GATHER == function || SCATTER == function;
}

/* ------------------------------------------------------------------ what goes in */

/** The number of blocks of the input. */
static int input_blocks(const call_t* call) {
    switch (call->given.function) {
    case REDUCE_SCATTER_BLOCK:
    case ALLTOALL: return world_size;
    case SCATTER: return is_root(call) ? world_size : 0;
    default: return 1;
    }
}

/** In place, where the input lies within the receive buffer; in blocks. */
static int input_place(const call_t* call) {
    return ALLGATHER == call->given.function || GATHER == call->given.function ? world_rank : 0;
}

/** Does this rank pass MPI_IN_PLACE where the call is in place? */
static int passes_in_place(const call_t* call) {
    const int only_root = REDUCE == call->given.function || GATHER == call->given.function ||
                          SCATTER == call->given.function;
    return call->given.in_place && BCAST != call->given.function &&
           BARRIER != call->given.function && (!only_root || is_root(call));
}

static void fill(call_t* call) {
    const int ints = input_blocks(call) * call->given.count;
    const int receives =
        BCAST == call->given.function || (passes_in_place(call) && SCATTER != call->given.function);
    int* input = receives ? call->receive + input_place(call) * call->given.count : call->send;
    memset(call->send, UNTOUCHED, sizeof call->send);
    memset(call->receive, UNTOUCHED, sizeof call->receive);
    for (int i = 0; i < ints && (BCAST != call->given.function || is_root(call)); i++) {
        input[i] = datum(call, world_rank, i);
    }
}

static int has_vectors(const arguments_t* given) {
    return given->vectors && given->function >= REDUCE_SCATTER_BLOCK;
}

static void start_vectors(call_t* call, MPI_Comm comm, MPI_Request* request) {
    const int count = call->given.count;
    const int root = call->given.root;
    const void* send = passes_in_place(call) ? MPI_IN_PLACE : call->send;
    int* receive = call->receive;
    for (int i = 0; i < world_size; i++) {
        call->counts[i] = count;
        call->displs[i] = i * count;
    }
    switch (call->given.function) {
    case REDUCE_SCATTER_BLOCK:
        MPI_Ireduce_scatter(send, receive, call->counts, MPI_INT, MPI_SUM, comm, request);
        break;
    case ALLGATHER:
        MPI_Iallgatherv(send, count, MPI_INT, receive, call->counts, call->displs, MPI_INT, comm,
                        request);
        break;
    case ALLTOALL:
        MPI_Ialltoallv(send, call->counts, call->displs, MPI_INT, receive, call->counts,
                       call->displs, MPI_INT, comm, request);
        break;
    case GATHER:
        MPI_Igatherv(send, count, MPI_INT, receive, call->counts, call->displs, MPI_INT, root, comm,
                     request);
        break;
    default:
        MPI_Iscatterv(call->send, call->counts, call->displs, MPI_INT,
                      passes_in_place(call) ? MPI_IN_PLACE : (void*)receive, count, MPI_INT, root,
                      comm, request);
        break;
    }
}

static void start(call_t* call, MPI_Comm comm, MPI_Request* request) {
    const arguments_t* given = &call->given;
    if (has_vectors(given)) {
        start_vectors(call, comm, request);
        return;
    }
    const int count = given->count;
    const int root = given->root;
    const void* send = passes_in_place(call) ? MPI_IN_PLACE : call->send;
    int* receive = call->receive;
    switch (given->function) {
    case BARRIER: MPI_Ibarrier(comm, request); break;
    case BCAST: MPI_Ibcast(receive, count, MPI_INT, root, comm, request); break;
    case REDUCE: MPI_Ireduce(send, receive, count, MPI_INT, MPI_SUM, root, comm, request); break;
    case ALLREDUCE: MPI_Iallreduce(send, receive, count, MPI_INT, MPI_SUM, comm, request); break;
    case SCAN: MPI_Iscan(send, receive, count, MPI_INT, MPI_SUM, comm, request); break;
    case EXSCAN: MPI_Iexscan(send, receive, count, MPI_INT, MPI_SUM, comm, request); break;
    case REDUCE_SCATTER_BLOCK:
        MPI_Ireduce_scatter_block(send, receive, count, MPI_INT, MPI_SUM, comm, request);
        break;
    case ALLGATHER:
        MPI_Iallgather(send, count, MPI_INT, receive, count, MPI_INT, comm, request);
        break;
    case ALLTOALL:
        MPI_Ialltoall(send, count, MPI_INT, receive, count, MPI_INT, comm, request);
        break;
    case GATHER:
        MPI_Igather(send, count, MPI_INT, receive, count, MPI_INT, root, comm, request);
        break;
    default:
        MPI_Iscatter(call->send, count, MPI_INT,
                     passes_in_place(call) ? MPI_IN_PLACE : (void*)receive, count, MPI_INT, root,
                     comm, request);
        break;
    }
}

/* ------------------------------------------------------------------ what comes out */

/** The number of blocks of the result. */
static int output_blocks(const call_t* call) {
    switch (call->given.function) {
    case BARRIER: return 0;
    case ALLGATHER:
    case ALLTOALL: return world_size;
    case GATHER: return is_root(call) ? world_size : 0;
    case REDUCE: return is_root(call);
    case EXSCAN: return world_rank > 0;
    case SCATTER: return !passes_in_place(call);
    default: return 1;
    }
}

static int expected(const call_t* call, int block, int index) {
    const int here = world_rank * call->given.count + index;
    switch (call->given.function) {
    case BCAST: return datum(call, call->given.root, index);
    case SCAN: return sum(call, 0, world_rank, index);
    case EXSCAN: return sum(call, 0, world_rank - 1, index);
    case REDUCE_SCATTER_BLOCK: return sum(call, 0, world_size - 1, here);
    case ALLGATHER:
    case GATHER: return datum(call, block, index);
    case ALLTOALL: return datum(call, block, here);
    case SCATTER: return datum(call, call->given.root, here);
    default: return sum(call, 0, world_size - 1, index);
    }
}

static void check(const call_t* call) {
    const int count = call->given.count;
    const int blocks = output_blocks(call);
    for (int i = 0; i < blocks * count; i++) {
        require(call->receive[i] == expected(call, i / count, i % count), "a repeated call");
    }
    require(passes_in_place(call) || call->receive[blocks * count] == UNTOUCHED,
            "memory behind the result of a repeated call");
}

/* ------------------------------------------------------------------ the walk */

/** Most steps repeat the step before; some change one argument. */
static void change(arguments_t* given, uint64_t* random) {
    const uint64_t dice = next_random(random);
    const int value = (int)(dice >> 32) & 0xffff;
    switch (dice % 24) {
    case 0: given->function = value % KINDS; break;
    case 1: given->count = value % 8 == 0 ? 0 : 1 + value % COUNT_MAX; break;
    case 2: given->root = value % world_size; break;
    case 3: given->in_place = !given->in_place; break;
    case 4: given->vectors = !given->vectors; break;
    default: break;
    }
}

static void* finish(void* request) {
    MPI_Wait(request, MPI_STATUS_IGNORE);
    return NULL;
}

/** Completes all requests, some of them in another thread where there may be one. */
static void finish_all(MPI_Request* requests, int count, int threads, uint64_t* own) {
    pthread_t thread;
    if (!threads || next_random(own) % 4 > 0) {
        complete(requests, count, (int)(next_random(own) % WAYS), own);
        return;
    }
    require(0 == pthread_create(&thread, NULL, finish, &requests[0]), "a thread");
    for (int i = 1; i < count; i++) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    pthread_join(thread, NULL);
}

static void walk(int threads) {
    call_t* calls = malloc(CALLS_MAX * sizeof *calls);
    uint64_t random = 1;                        /* This seed is the same on all ranks. */
    uint64_t own = (uint64_t)world_rank + 1000; /* This seed differs between ranks. */
    arguments_t given = {.function = ALLREDUCE, .count = 1};
    MPI_Comm comm = MPI_COMM_NULL;
    require(world_size <= RANKS_MAX, "more ranks than there is room for");
    for (int step = 0; step < STEPS; step++) {
        MPI_Request requests[CALLS_MAX];
        const int count = 1 + (int)(next_random(&random) % 5) / 3 * (step % 2 + 1);
        const int last = (step + 1) % STEPS_OF_COMM == 0;
        if (step % STEPS_OF_COMM == 0) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            MPI_Barrier(comm); /* From here on UCG serves the communicator. */
        }
        change(&given, &random);
        if (next_random(&own) % 200 == 0) {
            usleep(100);
        }
        for (int i = 0; i < count; i++) {
            calls[i].given = given;
            calls[i].number = step * CALLS_MAX + i;
            fill(&calls[i]);
            start(&calls[i], comm, &requests[i]);
        }
        if (last) {
            MPI_Comm_free(&comm);
        }
        finish_all(requests, count, threads, &own);
        for (int i = 0; i < count; i++) {
            require(requests[i] == MPI_REQUEST_NULL, "a repeated request that has ended");
            check(&calls[i]);
        }
    }
    free(calls);
}

void repeated(void) {
    walk(0);
}

void repeated_threads(void) {
    walk(1);
}
