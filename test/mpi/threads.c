/*
 * MPI_THREAD_MULTIPLE: collectives of several threads, their operators, and other calls at the same
 * time. There is one part for each argument; rank 0 prints "PART ok". Waits that could hide a
 * mistake are bounded by counts, never by time.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "persistent.h"

static int world_rank;
static int world_size;

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "threads: rank %d: wrong: %s\n", world_rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

#ifdef __GLIBC__
/** Replaces the C library's function for everything that this process runs. The C library also
 * unlocks a mutex that nobody has locked, and two threads that race there seldom meet. */
int pthread_mutex_unlock(pthread_mutex_t* mutex) {
    static _Atomic(void*) next;
    if (NULL == atomic_load(&next)) {
        atomic_store(&next, dlsym(RTLD_NEXT, "pthread_mutex_unlock"));
    }
    if (mutex->__data.__owner != gettid()) {
        fprintf(stderr, "threads: rank %d: wrong: a mutex that its thread has not locked\n",
                world_rank);
        abort();
    }
    return ((int (*)(pthread_mutex_t*))atomic_load(&next))(mutex);
}
#endif

static MPI_Comm duplicate(void) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return comm;
}

static pthread_t begin(void* (*body)(void*), void* argument) {
    pthread_t thread;
    require(0 == pthread_create(&thread, NULL, body, argument), "a thread");
    return thread;
}

/* ------------------------------------------------------------------ an operator that takes a mutex
 */

/*
 * This is like an interpreter's lock: one thread holds the mutex while it waits in MPI, and the
 * operator of another thread needs it. MPI lets the first thread's barrier end without the second
 * thread.
 */
enum { MUTEX_ROUNDS = 20, PATIENCE = 10 };

static pthread_mutex_t interpreter = PTHREAD_MUTEX_INITIALIZER;
/** The number of rounds in which the other thread has taken the mutex. */
static atomic_int holds;
static atomic_int entered; /**< The number of calls of the operator. */

static void add_with_mutex(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    atomic_fetch_add(&entered, 1);
    pthread_mutex_lock(&interpreter);
    for (int i = 0; i < *count; i++) {
        ((int64_t*)inout)[i] += ((const int64_t*)in)[i];
    }
    pthread_mutex_unlock(&interpreter);
}

/** Holds the mutex across a barrier, which it enters, if possible, while an operator waits for
 * the mutex. */
static void* hold_across_barrier(void* argument) {
    const MPI_Comm* comm = argument;
    for (int round = 0; round < MUTEX_ROUNDS; round++) {
        pthread_mutex_lock(&interpreter);
        const int before = atomic_load(&entered);
        atomic_fetch_add(&holds, 1);
        for (int i = 0; i < PATIENCE && before == atomic_load(&entered); i++) {
            sched_yield();
        }
        MPI_Barrier(*comm);
        pthread_mutex_unlock(&interpreter);
        MPI_Barrier(*comm); /* Nobody takes the mutex again before the other thread has had it. */
    }
    return NULL;
}

static void mutex(void) {
    MPI_Comm reducing = duplicate();
    MPI_Comm meeting = duplicate();
    MPI_Op op;
    MPI_Op_create(add_with_mutex, 1, &op);
    MPI_Barrier(reducing);
    MPI_Barrier(meeting);
    const pthread_t other = begin(hold_across_barrier, &meeting);
    for (int round = 1; round <= MUTEX_ROUNDS; round++) {
        const int64_t mine[3] = {world_rank, round, 1};
        int64_t sum[3] = {0, 0, 0};
        while (atomic_load(&holds) < round) {
            sched_yield();
        }
        MPI_Allreduce(mine, sum, 3, MPI_INT64_T, op, reducing);
        require(sum[1] == (int64_t)round * world_size && sum[2] == world_size, "the sum");
    }
    pthread_join(other, NULL);
    MPI_Op_free(&op);
    MPI_Comm_free(&meeting);
    MPI_Comm_free(&reducing);
}

/* ------------------------------------------------------------------ who calls the operator */

enum { CALLERS = 3, CALLER_ROUNDS = 60 };

/** The number of this thread as a caller; 0: it is none. */
static _Thread_local int caller;

static void add_as(int who, const void* in, void* inout, int count) {
    require(caller == who, "an operator ran in another thread than the one that called");
    for (int i = 0; i < count; i++) {
        ((int64_t*)inout)[i] += ((const int64_t*)in)[i];
    }
}
static void add_as_first(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    add_as(1, in, inout, *count);
}
static void add_as_second(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    add_as(2, in, inout, *count);
}
static MPI_User_function* const adders[CALLERS - 1] = {add_as_first, add_as_second};

typedef struct {
    MPI_Comm comm;
    int who;
} caller_t;

/** The last caller only runs barriers. Its ranks come late in turn, so it waits long. */
static void meet(const caller_t* me) {
    for (int i = 0; i < CALLER_ROUNDS; i++) {
        for (int late = i % world_size == world_rank ? 100 : 0; late > 0; late--) {
            sched_yield();
        }
        MPI_Barrier(me->comm);
    }
}

static void reduce(const caller_t* me) {
    int64_t* mine = calloc(4096, sizeof *mine);
    int64_t* sum = calloc(4096, sizeof *sum);
    MPI_Op op;
    MPI_Op_create(adders[me->who - 1], 1, &op);
    for (int i = 0; i < CALLER_ROUNDS; i++) {
        const int count = 0 == i % 3 ? 1 : 0 == i % 5 ? 4096 : 100;
        mine[0] = mine[count - 1] = world_rank + i;
        for (int late = (i + me->who) % world_size == world_rank ? 10 : 0; late > 0; late--) {
            sched_yield();
        }
        MPI_Allreduce(mine, sum, count, MPI_INT64_T, op, me->comm);
        require(sum[count - 1] == (int64_t)world_size * (world_size - 1) / 2 + world_size * i,
                "the sum");
    }
    MPI_Op_free(&op);
    free(sum);
    free(mine);
}

static void* call(void* argument) {
    const caller_t* me = argument;
    caller = me->who;
    if (CALLERS == me->who) {
        meet(me);
    } else {
        reduce(me);
    }
    return NULL;
}

static void callers(void) {
    caller_t all[CALLERS];
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        all[i] = (caller_t){duplicate(), i + 1};
    }
    for (int i = 0; i < CALLERS; i++) {
        threads[i] = begin(call, &all[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        MPI_Comm_free(&all[i].comm);
    }
}

/* ------------------------------------------------------------------ a first collective that is
 * late */

enum { LATE_COMMS = 4, LATE_ROUNDS = 25 };

static atomic_int rounds_done;

/** One rank comes to each first collective only after the other thread has done its own ones. */
static void* come_late(void* argument) {
    MPI_Comm* comms = argument;
    for (int i = 0; i < LATE_COMMS; i++) {
        while (i % world_size == world_rank && atomic_load(&rounds_done) < (i + 1) * LATE_ROUNDS) {
            sched_yield();
        }
        MPI_Barrier(comms[i]);
    }
    return NULL;
}

static void late(void) {
    MPI_Comm comms[LATE_COMMS];
    MPI_Comm busy = duplicate();
    for (int i = 0; i < LATE_COMMS; i++) {
        comms[i] = duplicate();
    }
    MPI_Barrier(busy);
    const pthread_t other = begin(come_late, comms);
    for (int round = 0; round < LATE_COMMS * LATE_ROUNDS; round++) {
        int64_t mine = round;
        int64_t sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, busy);
        require(sum == (int64_t)round * world_size, "the sum");
        atomic_fetch_add(&rounds_done, 1);
    }
    pthread_join(other, NULL);
    for (int i = 0; i < LATE_COMMS; i++) {
        MPI_Comm_free(&comms[i]);
    }
    MPI_Comm_free(&busy);
}

/* ------------------------------------------------------------------ everything at once */

enum { STRESS_THREADS = 3, STRESS_ROUNDS = 80, STRESS_LONGEST = 3000 };

typedef struct {
    MPI_Comm comm;
    MPI_Win window;
    int64_t* exposed; /**< It has one number for each rank. */
    MPI_Op op;        /**< Affine maps under composition, which does not commute. */
    int index;
    uint64_t seed; /**< It is the same on all ranks, so they make the same calls. */
} stress_t;

static uint64_t draw(stress_t* me) {
    me->seed += 0x9e3779b97f4a7c15U;
    uint64_t mixed = (me->seed ^ me->seed >> 30) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebU;
    return mixed ^ mixed >> 31;
}

typedef struct {
    uint32_t factor;
    uint32_t offset;
} map_t;

static map_t compose(map_t f, map_t g) {
    return (map_t){f.factor * g.factor, f.factor * g.offset + f.offset};
}

static void compose_all(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *count; i++) {
        ((map_t*)inout)[i] = compose(((const map_t*)in)[i], ((map_t*)inout)[i]);
    }
}

static map_t map_of(int rank, int salt) {
    return (map_t){2 * (uint32_t)rank + 3 + (uint32_t)salt, (uint32_t)rank * 5 + 1};
}

static int same(map_t one, map_t other) {
    return one.factor == other.factor && one.offset == other.offset;
}

static void reduce_maps(stress_t* me) {
    static _Thread_local map_t mine[STRESS_LONGEST];
    static _Thread_local map_t result[STRESS_LONGEST];
    const int count = 1 + (int)(draw(me) % STRESS_LONGEST);
    const int salt = (int)(draw(me) % 1000);
    const int scans = 0 == draw(me) % 3;
    map_t expected = map_of(0, salt);
    for (int rank = 1; rank < (scans ? world_rank + 1 : world_size); rank++) {
        expected = compose(expected, map_of(rank, salt));
    }
    for (int i = 0; i < count; i++) {
        mine[i] = map_of(world_rank, salt);
    }
    if (scans) {
        MPI_Scan(mine, result, count, MPI_UINT64_T, me->op, me->comm);
    } else {
        MPI_Allreduce(mine, result, count, MPI_UINT64_T, me->op, me->comm);
    }
    require(same(result[0], expected) && same(result[count - 1], expected), "a product of maps");
}

static void duplicate_and_free(const stress_t* me) {
    MPI_Comm comm;
    int sum = 0;
    MPI_Comm_dup(me->comm, &comm);
    MPI_Allreduce(&(int){world_rank}, &sum, 1, MPI_INT, MPI_SUM, comm);
    require(sum == world_size * (world_size - 1) / 2, "the sum on a duplicate");
    MPI_Comm_free(&comm);
}

static void pass_on(stress_t* me) {
    static _Thread_local int64_t out[STRESS_LONGEST];
    static _Thread_local int64_t in[STRESS_LONGEST];
    const int count = 1 + (int)(draw(me) % STRESS_LONGEST);
    const int next = (world_rank + 1) % world_size;
    const int previous = (world_rank + world_size - 1) % world_size;
    out[0] = out[count - 1] = world_rank + me->index;
    MPI_Sendrecv(out, count, MPI_INT64_T, next, me->index, in, count, MPI_INT64_T, previous,
                 me->index, me->comm, MPI_STATUS_IGNORE);
    require(in[0] == previous + me->index && in[count - 1] == in[0], "what the neighbour sent");
}

/** Reads a number that its owner wrote before the epoch, while the owner may be in any call. */
static void fetch(const stress_t* me) {
    const int target = (world_rank + 1) % world_size;
    int64_t got = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, me->window);
    MPI_Get(&got, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, me->window);
    MPI_Win_unlock(target, me->window);
    require(got == 100 + target, "what the window holds");
}

static void* stress_body(void* argument) {
    stress_t* me = argument;
    for (int i = 0; i < STRESS_ROUNDS; i++) {
        switch (draw(me) % 8) {
        case 0: duplicate_and_free(me); break;
        case 1: pass_on(me); break;
        case 2: fetch(me); break;
        case 3: MPI_Barrier(me->comm); break;
        default: reduce_maps(me); break;
        }
    }
    return NULL;
}

static void open_stress(stress_t* me, int index) {
    *me = (stress_t){.comm = duplicate(), .index = index, .seed = 12 + (uint64_t)index};
    MPI_Win_allocate(sizeof *me->exposed, sizeof *me->exposed, MPI_INFO_NULL, me->comm,
                     &me->exposed, &me->window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, me->window);
    *me->exposed = 100 + world_rank;
    MPI_Win_unlock(world_rank, me->window);
    MPI_Op_create(compose_all, 0, &me->op);
    MPI_Barrier(me->comm);
}

static void close_stress(stress_t* me) {
    MPI_Op_free(&me->op);
    MPI_Win_free(&me->window);
    MPI_Comm_free(&me->comm);
}

static void stress(void) {
    static stress_t all[STRESS_THREADS];
    pthread_t threads[STRESS_THREADS];
    for (int i = 0; i < STRESS_THREADS; i++) {
        open_stress(&all[i], i);
    }
    for (int i = 0; i < STRESS_THREADS; i++) {
        threads[i] = begin(stress_body, &all[(i + world_rank) % STRESS_THREADS]);
    }
    for (int i = 0; i < STRESS_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < STRESS_THREADS; i++) {
        close_stress(&all[i]);
    }
}

/* ------------------------------------------------------------------ all forms at once */

/*
 * Each thread has a communicator of its own for blocking and neighbourhood calls, and all threads
 * share one. On the shared one they start nonblocking and persistent calls in turn, so that these
 * have one order on all ranks. Each request is completed by another thread than its starter.
 */
enum { FORM_THREADS = 3, FORM_ROUNDS = 60, FORM_WORDS = 700 };

typedef struct {
    MPI_Request request;
    atomic_int round; /**< The last round in which it was started. */
    atomic_int ended; /**< The last round in which it was completed. */
    int64_t mine[FORM_WORDS];
    int64_t result[FORM_WORDS];
} handed_t;

typedef struct {
    int index;
    MPI_Comm ring;        /**< The thread's own communicator, a periodic line of all processes. */
    handed_t nonblocking; /**< This thread starts it, the next one completes it. */
    handed_t persistent;  /**< The same, on the shared communicator as well. */
} forms_t;

static forms_t forms_of[FORM_THREADS];
static MPI_Comm shared_comm;
static atomic_int form_turn;

static int64_t sum_of_ranks(int64_t salt) {
    return world_size * salt + (int64_t)world_size * (world_size - 1) / 2;
}

static void open_forms(void) {
    shared_comm = duplicate();
    MPI_Barrier(shared_comm); /* Nonblocking calls need a group. */
    for (int i = 0; i < FORM_THREADS; i++) {
        forms_t* me = &forms_of[i];
        me->index = i;
        MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &(int){1}, 0, &me->ring);
        MPI_Barrier(me->ring);
        MPI_Allreduce_init(me->persistent.mine, me->persistent.result, FORM_WORDS, MPI_INT64_T,
                           MPI_SUM, shared_comm, MPI_INFO_NULL, &me->persistent.request);
    }
}

static void close_forms(void) {
    for (int i = 0; i < FORM_THREADS; i++) {
        MPI_Request_free(&forms_of[i].persistent.request);
        MPI_Comm_free(&forms_of[i].ring);
    }
    MPI_Comm_free(&shared_comm);
}

static int form_words(int round) {
    return 0 == round % 3 ? FORM_WORDS : 1;
}

/** Starts the collective of a round, which is the same on all ranks. */
static void start_nonblocking(handed_t* call, int round, int salt) {
    const int count = form_words(round);
    call->mine[0] = call->mine[count - 1] = world_rank + salt;
    switch (round % 4) {
    case 0: MPI_Ibarrier(shared_comm, &call->request); break;
    case 1:
        call->result[0] = world_rank + salt;
        MPI_Ibcast(call->result, count, MPI_INT64_T, 0, shared_comm, &call->request);
        break;
    default:
        MPI_Iallreduce(call->mine, call->result, count, MPI_INT64_T, MPI_SUM, shared_comm,
                       &call->request);
        break;
    }
}

static void check_nonblocking(const handed_t* call, int round, int salt) {
    const int64_t expected = 1 == round % 4 ? salt : sum_of_ranks(salt);
    require(0 == round % 4 || call->result[0] == expected, "a nonblocking call on a shared comm");
}

static void wait_until(const atomic_int* word, int value) {
    while (atomic_load(word) < value) {
        sched_yield();
    }
}

/** Starts the requests in the thread's turn, after those of the last round have been completed. */
static void start_forms(forms_t* me, int round) {
    const int turn = (round - 1) * FORM_THREADS + me->index;
    const int salt = 10 * turn;
    wait_until(&me->nonblocking.ended, round - 1);
    wait_until(&me->persistent.ended, round - 1);
    wait_until(&form_turn, turn);
    start_nonblocking(&me->nonblocking, round, salt);
    me->persistent.mine[0] = me->persistent.mine[FORM_WORDS - 1] = world_rank + salt;
    MPI_Start(&me->persistent.request);
    atomic_store(&me->nonblocking.round, round);
    atomic_store(&me->persistent.round, round);
    atomic_store(&form_turn, turn + 1);
}

static void use_own(const forms_t* me, int round) {
    int64_t mine = world_rank + round;
    int64_t sum = 0;
    int64_t around[2] = {-1, -1};
    MPI_Request request;
    MPI_Ineighbor_allgather(&mine, 1, MPI_INT64_T, around, 1, MPI_INT64_T, me->ring, &request);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, me->ring);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(sum == sum_of_ranks(round), "a blocking call on an own comm");
    require(around[0] == (world_rank + world_size - 1) % world_size + round &&
                around[1] == (world_rank + 1) % world_size + round,
            "a neighbourhood call on an own comm");
}

/** Completes what another thread has started: waits for it, or asks about it. */
static void complete(handed_t* call, int round) {
    int done = 0;
    wait_until(&call->round, round);
    for (int looks = round % 2 * 5; looks > 0 && !done; looks--) {
        MPI_Test(&call->request, &done, MPI_STATUS_IGNORE);
    }
    if (!done) {
        MPI_Wait(&call->request, MPI_STATUS_IGNORE);
    }
}

static void complete_forms(forms_t* other, int round) {
    const int salt = 10 * ((round - 1) * FORM_THREADS + other->index);
    complete(&other->persistent, round);
    require(other->persistent.result[FORM_WORDS - 1] == sum_of_ranks(salt),
            "a persistent call on a shared comm");
    atomic_store(&other->persistent.ended, round);
    complete(&other->nonblocking, round);
    check_nonblocking(&other->nonblocking, round, salt);
    atomic_store(&other->nonblocking.ended, round);
}

static void* forms_body(void* argument) {
    forms_t* me = argument;
    for (int round = 1; round <= FORM_ROUNDS; round++) {
        start_forms(me, round);
        use_own(me, round);
        complete_forms(&forms_of[(me->index + 1) % FORM_THREADS], round);
    }
    return NULL;
}

static void forms(void) {
    pthread_t threads[FORM_THREADS];
    open_forms();
    for (int i = 0; i < FORM_THREADS; i++) {
        threads[i] = begin(forms_body, &forms_of[i]);
    }
    for (int i = 0; i < FORM_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    close_forms();
}

/* ------------------------------------------------------------------ parts */

static const struct {
    const char* name;
    void (*run)(void);
} parts[] = {
    {"mutex", mutex}, {"callers", callers}, {"late", late}, {"stress", stress}, {"forms", forms}};

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    require(MPI_THREAD_MULTIPLE == provided, "MPI_THREAD_MULTIPLE is not offered");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (2 == argc && 0 == strcmp(argv[1], parts[i].name)) {
            parts[i].run();
            if (0 == world_rank) {
                printf("%s ok\n", parts[i].name);
            }
        }
    }
    MPI_Finalize();
    return 0;
}
