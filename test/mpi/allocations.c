/*
 * How much the starts of nonblocking and persistent collectives, and the waits for them, allocate
 * once each call has been made often enough: UCG must allocate nothing. The C library's functions
 * are replaced by functions that look whose code called them. Prints "allocations ok" from rank 0.
 *
 * How many collectives of one kind are outstanding at once, and so what they need, depends on which
 * rank is late. So before anything counts, each rank in turn is late, once for more calls than have
 * room with it, and once for more calls than are outstanding later. A machine that is busy may
 * still make a rank later than ever before while calls count: then they are counted again, and only
 * what allocates every time is wrong.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "persistent.h"

enum {
    RANKS_MAX = 8,
    COUNT_MAX = 4000, /* The number of ints of a block. */
    OUTSTANDING = 5,
    OUTSTANDING_BEFORE = 88, /* At most 64 messages have room with a rank that is late. */
    /* These are more calls than a message that has no room has to wait for. */
    ROUNDS = 16,
    LATE_US = 3000,
    FRAMES_MAX = 24
};

/* ------------------------------------------------------------------ who allocates */

/* These are the C library's own functions. */
extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* old, size_t bytes);
extern void* __libc_memalign(size_t alignment, size_t bytes);

/* Does this thread count allocations? */
static __thread int counts;
static int allocations;
static void* first_caller;

static const char* library_of(const void* code) {
    Dl_info info;
    const char* name = 0 != dladdr(code, &info) && NULL != info.dli_fname ? info.dli_fname : "";
    const char* slash = strrchr(name, '/');
    return NULL != slash ? slash + 1 : name;
}

static int begins_with(const char* text, const char* begin) {
    return 0 == strncmp(text, begin, strlen(begin));
}

/** Is this a library that allocates on behalf of its caller? */
static int is_runtime(const char* library) {
    return begins_with(library, "libc.") || begins_with(library, "libstdc++.") ||
           begins_with(library, "ld-linux") || begins_with(library, "allocations");
}

static int is_ucg(const char* library) {
    return begins_with(library, "libucg") || begins_with(library, "mca_coll_ucg");
}

static void note(void) {
    void* frames[FRAMES_MAX];
    if (0 == counts) {
        return;
    }
    counts = 0; /* The first look allocates, too. */
    const int depth = backtrace(frames, FRAMES_MAX);
    for (int i = 0; i < depth; i++) {
        const char* library = library_of(frames[i]);
        if (is_runtime(library)) {
            continue;
        }
        if (is_ucg(library) && 0 == allocations++) {
            first_caller = frames[i];
        }
        break;
    }
    counts = 1;
}

void* malloc(size_t bytes) {
    note();
    return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
    note();
    return __libc_calloc(count, bytes);
}

void* realloc(void* old, size_t bytes) {
    note();
    return __libc_realloc(old, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
    note();
    return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
    *memory = memalign(alignment, bytes);
    return NULL != *memory ? 0 : ENOMEM;
}

/* ------------------------------------------------------------------ the calls */

static int world_rank;
static int world_size;

/** The arguments of all functions. */
typedef struct {
    MPI_Comm comm;
    int count;
    MPI_Datatype type;
    MPI_Op op;
    int root;
    int* send[OUTSTANDING_BEFORE];
    int* receive[OUTSTANDING_BEFORE];
    int counts[RANKS_MAX];
    int displs[RANKS_MAX];
    int bytes[RANKS_MAX]; /* The same places in bytes, for calls with a type for each block. */
    MPI_Aint places[RANKS_MAX];
    MPI_Datatype types[RANKS_MAX];
} arguments_t;

#define ONE_IN send, a->count, a->type
#define ONE_OUT receive, a->count, a->type
#define V_IN send, a->counts, a->displs, a->type
#define V_OUT receive, a->counts, a->displs, a->type
#define REDUCED send, receive, a->count, a->type, a->op
#define W_IN send, a->counts, a->bytes, a->types
#define W_OUT receive, a->counts, a->bytes, a->types

/** All functions with their arguments, except for the communicator and the request. */
#define FOR_EACH_CALL(X)                                                                           \
    X(bcast, Bcast, send, a->count, a->type, a->root)                                              \
    X(reduce, Reduce, REDUCED, a->root)                                                            \
    X(allreduce, Allreduce, REDUCED)                                                               \
    X(scan, Scan, REDUCED)                                                                         \
    X(exscan, Exscan, REDUCED)                                                                     \
    X(reduce_scatter_block, Reduce_scatter_block, REDUCED)                                         \
    X(reduce_scatter, Reduce_scatter, send, receive, a->counts, a->type, a->op)                    \
    X(allgather, Allgather, ONE_IN, ONE_OUT)                                                       \
    X(allgatherv, Allgatherv, ONE_IN, V_OUT)                                                       \
    X(alltoall, Alltoall, ONE_IN, ONE_OUT)                                                         \
    X(alltoallv, Alltoallv, V_IN, V_OUT)                                                           \
    X(alltoallw, Alltoallw, W_IN, W_OUT)                                                           \
    X(gather, Gather, ONE_IN, ONE_OUT, a->root)                                                    \
    X(gatherv, Gatherv, ONE_IN, V_OUT, a->root)                                                    \
    X(scatter, Scatter, ONE_IN, ONE_OUT, a->root)                                                  \
    X(scatterv, Scatterv, V_IN, ONE_OUT, a->root)                                                  \
    X(neighbor_allgather, Neighbor_allgather, ONE_IN, ONE_OUT)                                     \
    X(neighbor_allgatherv, Neighbor_allgatherv, ONE_IN, V_OUT)                                     \
    X(neighbor_alltoall, Neighbor_alltoall, ONE_IN, ONE_OUT)                                       \
    X(neighbor_alltoallv, Neighbor_alltoallv, V_IN, V_OUT)                                         \
    X(neighbor_alltoallw, Neighbor_alltoallw, send, a->counts, a->places, a->types, receive,       \
      a->counts, a->places, a->types)

typedef void (*call_t)(arguments_t* a, int index, MPI_Request* request);

#define DEFINE(name, Name, ...)                                                                    \
    static void start_##name(arguments_t* a, int index, MPI_Request* request) {                    \
        int* send = a->send[index];                                                                \
        int* receive = a->receive[index];                                                          \
        (void)receive;                                                                             \
        MPI_I##name(__VA_ARGS__, a->comm, request);                                                \
    }                                                                                              \
    static void init_##name(arguments_t* a, int index, MPI_Request* request) {                     \
        int* send = a->send[index];                                                                \
        int* receive = a->receive[index];                                                          \
        (void)receive;                                                                             \
        PMPI_##Name##_init(__VA_ARGS__, a->comm, MPI_INFO_NULL, request);                          \
    }
FOR_EACH_CALL(DEFINE)
#undef DEFINE

static void start_barrier(arguments_t* a, int index, MPI_Request* request) {
    (void)index;
    MPI_Ibarrier(a->comm, request);
}

static void init_barrier(arguments_t* a, int index, MPI_Request* request) {
    (void)index;
    MPI_Barrier_init(a->comm, MPI_INFO_NULL, request);
}

static const struct {
    const char* name;
    call_t start;
    call_t init;
} calls[] = {{"barrier", start_barrier, init_barrier},
#define ENTRY(name, Name, ...) {#name, start_##name, init_##name},
             FOR_EACH_CALL(ENTRY)
#undef ENTRY
};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* ------------------------------------------------------------------ rounds */

/** Runs so many calls at once, nonblocking or persistent. */
static void run(arguments_t* a, int call, int persistent, MPI_Request* requests, int count) {
    for (int i = 0; i < count; i++) {
        if (persistent) {
            MPI_Start(&requests[i]);
        } else {
            calls[call].start(a, i, &requests[i]);
        }
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void run_rounds(arguments_t* a, int call, int persistent, MPI_Request* requests) {
    for (int round = 0; round < ROUNDS; round++) {
        run(a, call, persistent, requests, 1);
        run(a, call, persistent, requests, OUTSTANDING);
    }
}

/** Makes each rank late in turn: see above. */
static void be_late(arguments_t* a, int call, int persistent, MPI_Request* requests) {
    /* A persistent call already has what it needs. */
    const int before = persistent ? OUTSTANDING : OUTSTANDING_BEFORE;
    for (int late = 0; late < world_size; late++) {
        MPI_Barrier(MPI_COMM_WORLD);
        run(a, call, persistent, requests, 1);
        MPI_Barrier(MPI_COMM_WORLD);
        if (late == world_rank) {
            usleep(LATE_US);
        }
        /* Every call that depends on that rank waits for it. */
        run(a, call, persistent, requests, before);
        if (late == world_rank) {
            usleep(LATE_US);
        }
        run_rounds(a, call, persistent, requests); /* Only the calls that have no room wait. */
    }
}

/** Returns how often UCG has allocated on this rank. */
static int measure(arguments_t* a, int call, int persistent) {
    MPI_Request requests[OUTSTANDING_BEFORE];
    for (int i = 0; i < OUTSTANDING && persistent; i++) {
        calls[call].init(a, i, &requests[i]);
    }
    be_late(a, call, persistent, requests);
    MPI_Barrier(MPI_COMM_WORLD);
    allocations = 0;
    counts = 1;
    run_rounds(a, call, persistent, requests);
    counts = 0;
    for (int i = 0; i < OUTSTANDING && persistent; i++) {
        MPI_Request_free(&requests[i]);
    }
    return allocations;
}

static void measure_all(arguments_t* a, const char* what, int* wrong) {
    for (int call = 0; call < CALLS; call++) {
        for (int persistent = 0; persistent < 2; persistent++) {
            const int found = measure(a, call, persistent);
            if (found > 0) {
                Dl_info info = {NULL, NULL, NULL, NULL};
                dladdr(first_caller, &info);
                fprintf(stderr,
                        "allocations: rank %d: %s %s%s: %d in %d rounds, the first at %s+0x%lx "
                        "(%s)\n",
                        world_rank, what, calls[call].name, persistent ? "_init" : "", found,
                        ROUNDS, library_of(first_caller),
                        (unsigned long)((uintptr_t)first_caller - (uintptr_t)info.dli_fbase),
                        NULL != info.dli_sname ? info.dli_sname : "?");
                ++*wrong;
            }
        }
    }
}

/** Adds the first int of each pair. */
static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *count; i++) {
        ((int*)inout)[2 * i] += ((int*)in)[2 * i];
    }
}

/** The blocks lie in descending order, one after another. */
static void set_count(arguments_t* a, int count, MPI_Datatype type, int ints) {
    a->count = count;
    a->type = type;
    for (int i = 0; i < world_size; i++) {
        a->counts[i] = count;
        a->displs[i] = (world_size - 1 - i) * count;
        a->bytes[i] = a->displs[i] * ints * (int)sizeof(int);
        a->places[i] = a->bytes[i];
        a->types[i] = type;
    }
}

/** Measures all calls on a ring of processes, which has neighbours, too. */
static int measure_types(arguments_t* a) {
    int wrong = 0;
    MPI_Datatype gapped;
    MPI_Op own;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gapped);
    MPI_Type_commit(&gapped);
    MPI_Op_create(add, 1, &own);
    a->op = MPI_SUM;
    set_count(a, 2, MPI_INT, 1);
    measure_all(a, "short", &wrong);
    set_count(a, COUNT_MAX, MPI_INT, 1);
    measure_all(a, "long", &wrong);
    a->op = own;
    set_count(a, 100, gapped, 2);
    measure_all(a, "gapped", &wrong);
    MPI_Op_free(&own);
    MPI_Type_free(&gapped);
    return wrong;
}

int main(int argc, char** argv) {
    arguments_t a = {0};
    const int periodic = 1;
    int wrong;
    void* frame;
    MPI_Init(&argc, &argv);
    (void)backtrace(&frame, 1); /* This loads the library that backtrace() needs. */
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (world_size > RANKS_MAX) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    a.root = world_size - 1;
    for (int i = 0; i < OUTSTANDING_BEFORE; i++) {
        a.send[i] = calloc((size_t)RANKS_MAX * COUNT_MAX, sizeof(int));
        a.receive[i] = calloc((size_t)RANKS_MAX * COUNT_MAX, sizeof(int));
    }
    MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &periodic, 0, &a.comm);
    MPI_Barrier(a.comm); /* From here on UCG serves the communicator. */
    wrong = measure_types(&a);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_free(&a.comm);
    if (world_rank == 0 && wrong == 0) {
        printf("allocations ok\n");
    }
    MPI_Finalize();
    return wrong > 0;
}
