/*
 * Collectives on inter-communicators, with data whose results every process can compute.
 *
 * usage: inter SIZE-OF-ONE-SIDE [counted | plain | threads]
 *
 * counted: also checks by the component's counters that libucg serves every call that it should.
 * plain: makes only calls that Open MPI's own components do right. threads: makes several calls at
 * once, each on a communicator of its own.
 */
#include "inter.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 0x5a5a5a5a };

void require(int condition, const char* what) {
    if (!condition) {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        printf("rank %d: wrong: %s\n", rank, what);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* ------------------------------------------------------------------ data */

int seed_of(int side, int sender, int receiver) {
    return 1000003 * side + 1009 * sender + 13 * receiver + 7;
}

static int value(int seed, int i) {
    return (int)((unsigned)seed * 2654435761u + (unsigned)i * 40503u) >> 1;
}

static int ints_of(const sides_t* sides, int elements) {
    MPI_Aint lower;
    MPI_Aint extent;
    MPI_Type_get_extent(sides->layout.type, &lower, &extent);
    return (int)(extent / (MPI_Aint)sizeof(int)) * sides->layout.per_element * elements + INTS;
}

void* new_elements(const sides_t* sides, int elements) {
    const int ints = ints_of(sides, elements);
    int* memory = malloc((size_t)ints * sizeof *memory);
    for (int i = 0; i < ints; i++) {
        memory[i] = GAP;
    }
    return memory;
}

static char* place(const sides_t* sides, const void* buffer, int first) {
    MPI_Aint lower;
    MPI_Aint extent;
    MPI_Type_get_extent(sides->layout.type, &lower, &extent);
    return (char*)buffer + extent * sides->layout.per_element * first;
}

void fill(const sides_t* sides, void* buffer, int first, int elements, int seed) {
    const int bytes = elements * INTS * (int)sizeof(int);
    int* packed = malloc((size_t)bytes + 1);
    int position = 0;
    for (int i = 0; i < elements * INTS; i++) {
        packed[i] = value(seed, i);
    }
    MPI_Unpack(packed, bytes, &position, place(sides, buffer, first),
               elements * sides->layout.per_element, sides->layout.type, MPI_COMM_SELF);
    free(packed);
}

void check(const sides_t* sides, const void* buffer, int first, int elements, int seed) {
    const int bytes = elements * INTS * (int)sizeof(int);
    int* packed = malloc((size_t)bytes + 1);
    int position = 0;
    MPI_Pack(place(sides, buffer, first), elements * sides->layout.per_element, sides->layout.type,
             packed, bytes, &position, MPI_COMM_SELF);
    for (int i = 0; i < elements * INTS; i++) {
        require(packed[i] == value(seed, i), sides->what);
    }
    free(packed);
}

void check_untouched(const sides_t* sides, const void* buffer, int elements) {
    const int ints = ints_of(sides, elements);
    for (int i = 0; i < ints; i++) {
        require(((const int*)buffer)[i] == GAP, sides->what);
    }
}

/* ------------------------------------------------------------------ counters */

static const char* const kServed[] = {
    "allgather",       "allgatherv",      "alltoall",
    "alltoallv",       "alltoallw",       "barrier",
    "bcast",           "gather",          "gatherv",
    "scatter",         "scatterv",        "iallgather",
    "iallgatherv",     "ialltoall",       "ialltoallv",
    "ialltoallw",      "ibarrier",        "allgather_init",
    "allgatherv_init", "alltoall_init",   "alltoallv_init",
    "alltoallw_init",  "barrier_init",    "reduce",
    "allreduce",       "reduce_scatter",  "reduce_scatter_block",
    "ibcast",          "igather",         "igatherv",
    "iscatter",        "iscatterv",       "ireduce",
    "iallreduce",      "ireduce_scatter", "ireduce_scatter_block"};
enum { SERVED = sizeof kServed / sizeof *kServed };

/** Open MPI counts for a handle from the creation of the handle on. */
typedef struct {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle taken[SERVED];
    MPI_T_pvar_handle passed[SERVED];
} counters_t;

static MPI_T_pvar_handle begin_counter(MPI_T_pvar_session session, const char* kind,
                                       const char* function) {
    char name[128];
    int index;
    int count;
    MPI_T_pvar_handle handle;
    snprintf(name, sizeof name, "coll_ucg_%s_%s", kind, function);
    require(MPI_SUCCESS == MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), name);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    return handle;
}

static void begin_counters(counters_t* counters) {
    MPI_T_pvar_session_create(&counters->session);
    for (int i = 0; i < SERVED; i++) {
        counters->taken[i] = begin_counter(counters->session, "taken", kServed[i]);
        counters->passed[i] = begin_counter(counters->session, "passed", kServed[i]);
    }
}

static void check_counters(counters_t* counters) {
    for (int i = 0; i < SERVED; i++) {
        unsigned long long taken = 0;
        unsigned long long passed = 0;
        MPI_T_pvar_read(counters->session, counters->taken[i], &taken);
        MPI_T_pvar_read(counters->session, counters->passed[i], &passed);
        if (0 == taken || 0 != passed) {
            printf("%s: libucg served %llu, %llu were passed on\n", kServed[i], taken, passed);
        }
        require(0 != taken && 0 == passed, "what libucg served");
    }
    MPI_T_pvar_session_free(&counters->session);
}

/* ------------------------------------------------------------------ tests */

/** Ranks are in the order of the world or in the reverse order, so that each side comes first in
 * some cases. */
static sides_t make_sides(int one_side, int reversed) {
    sides_t sides = {.plain = 0};
    MPI_Comm local;
    int rank;
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sides.side = rank >= one_side;
    MPI_Comm_split(MPI_COMM_WORLD, sides.side, reversed ? size - rank : rank, &local);
    const int leaders[] = {reversed ? one_side - 1 : 0, reversed ? size - 1 : one_side};
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, leaders[1 - sides.side], 17, &sides.comm);
    MPI_Comm_free(&local);
    MPI_Comm_rank(sides.comm, &sides.rank);
    MPI_Comm_size(sides.comm, &sides.size);
    MPI_Comm_remote_size(sides.comm, &sides.remote);
    return sides;
}

/** Runs after the same calls in blocking form, which make the groups. libucg passes long
 * nonblocking reductions on to the next component. */
static void test_nonblocking(sides_t* sides, int count) {
    sides->nonblocking = 1;
    test_rooted(sides, count);
    test_reductions(sides, sides->counted && count > 4000 ? 4000 : count);
    test_started(sides, count < 2000 ? count : 2000);
    sides->nonblocking = 0;
}

static void test_all(sides_t* sides) {
    static const int counts[] = {1, 0, 3, 1000, 40000};
    for (int i = 0; i < (int)(sizeof counts / sizeof *counts); i++) {
        test_moves(sides, counts[i]);
        test_rooted(sides, counts[i]);
        test_reductions(sides, counts[i]);
        test_nonblocking(sides, counts[i]);
        if (!sides->plain) {
            test_one_way(sides, counts[i]);
            test_forms(sides, counts[i] < 2000 ? counts[i] : 2000);
        }
    }
}

/** Copies and merges the communicator while it is in use. */
static void test_family(sides_t* sides) {
    sides_t copy = *sides;
    MPI_Comm merged;
    int sum = 0;
    const int one = 1;
    MPI_Comm_dup(sides->comm, &copy.comm);
    MPI_Intercomm_merge(sides->comm, sides->side, &merged);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
    require(sum == sides->size + sides->remote, "allreduce of a merger");
    test_moves(&copy, 5);
    test_rooted(&copy, 5);
    test_moves(sides, 5);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&copy.comm);
}

static void test_sides(int one_side, int reversed, const char* mode) {
    const int counted = 0 == strcmp(mode, "counted");
    sides_t sides = make_sides(one_side, reversed);
    sides.plain = 0 == strcmp(mode, "plain");
    sides.counted = counted;
    MPI_Datatype strided;
    MPI_Datatype pair;
    MPI_Type_vector(INTS, 1, 3, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    MPI_Type_contiguous(INTS, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    const layout_t plain = {MPI_INT, INTS};
    const layout_t layouts[][2] = {
        {plain, plain}, {{strided, 1}, {pair, 1}}, {plain, {strided, 1}}, {{strided, 1}, plain}};
    counters_t counters;
    if (counted) {
        begin_counters(&counters);
    }
    for (int i = 0; i < (int)(sizeof layouts / sizeof *layouts); i++) {
        sides.layout = layouts[i][sides.side];
        test_all(&sides);
    }
    if (counted) {
        check_counters(&counters);
    }
    test_family(&sides);
    MPI_Type_free(&strided);
    MPI_Type_free(&pair);
    MPI_Comm_free(&sides.comm);
}

/* ------------------------------------------------------------------ MPI_Comm_idup */

/** For MPI_Comm_idup Open MPI uses its own communicator of a side whenever the call makes
 * progress, and so does the component that serves the first calls across the sides. The order of
 * these uses differs between ranks. */
static void test_idup(int one_side) {
    enum { ROUNDS = 20 };
    sides_t sides = make_sides(one_side, 0);
    const int one = 1;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm copy;
        MPI_Request request;
        int sum = 0;
        int later = 0;
        MPI_Comm_idup(sides.comm, &copy, &request);
        if (1 == (sides.rank + round) % 2) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, sides.comm);
        /* This waits again if the request has ended already. */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&one, &later, 1, MPI_INT, MPI_SUM, copy);
        require(sum == sides.remote && later == sides.remote, "allreduce beside MPI_Comm_idup");
        MPI_Comm_free(&copy);
    }
    MPI_Comm_free(&sides.comm);
}

/* ------------------------------------------------------------------ threads */

enum { THREADS = 3 };

static void* work(void* argument) {
    sides_t* sides = argument;
    for (int i = 0; i < 5; i++) {
        test_moves(sides, 3);
        test_rooted(sides, 3);
        test_reductions(sides, 100);
    }
    return NULL;
}

/** The groups of these communicators are made at the same time, in any order. */
static void test_threads(int one_side) {
    sides_t sides[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        sides[i] = make_sides(one_side, i % 2);
        sides[i].layout = (layout_t){MPI_INT, INTS};
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, &sides[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        MPI_Comm_free(&sides[i].comm);
    }
}

int main(int argc, char** argv) {
    int provided;
    int rank;
    const int one_side = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
    const char* mode = argc > 2 ? argv[2] : "";
    const int threads = 0 == strcmp(mode, "threads");
    const int idup = 0 == strcmp(mode, "idup");
    const int level = threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, level, &provided);
    /* Another level here would become the level of all of MPI from then on (Open MPI 4.1 and
     * 5.0). */
    MPI_T_init_thread(level, &provided);
    MPI_Query_thread(&provided);
    require(level <= provided, "the level of threads");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (threads) {
        test_threads(one_side);
    }
    if (idup) {
        test_idup(one_side);
    }
    for (int reversed = 0; reversed < 2 && !threads && !idup; reversed++) {
        test_sides(one_side, reversed, mode);
    }
    MPI_T_finalize();
    if (0 == rank) {
        printf("inter ok\n");
    }
    MPI_Finalize();
    return 0;
}
