/*
 * Functions of the program that Open MPI calls while a nonblocking collective ends, and that wait
 * for other collectives: here the function that deletes an attribute of a datatype which the call
 * has held. With Open MPI's own component these programs do not end.
 *
 * usage: callbacks types|first_types|phases|nested|within|first_within|interrupted|ends
 *                  [calls that a communicator makes without UCG]
 */
#include "callbacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "persistent.h"

int rank;
int size;
static int calls_before_group;

void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* ------------------------------------------------------------------ datatypes */

/** What the deletion of an attribute waits for. */
typedef struct {
    MPI_Comm comm;
    MPI_Request* other; /**< It may have ended together with the call that held the type. */
    int blocking;
    int deleted;
} waited_t;

static int wait_for_others(MPI_Datatype type, int keyval, void* value, void* extra) {
    (void)type;
    (void)keyval;
    (void)extra;
    waited_t* waited = value;
    waited->deleted++;
    if (waited->blocking) {
        return MPI_Barrier(waited->comm);
    }
    MPI_Request request;
    MPI_Ibarrier(waited->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return NULL == waited->other ? MPI_SUCCESS : MPI_Wait(waited->other, MPI_STATUS_IGNORE);
}

enum { ROUNDS = 200 };

/** All ranks wait in one order, so that all wait for the same call when the type is deleted. */
static void gather_with_freed_type(int keyval, MPI_Comm comm, waited_t* waited) {
    int* all = malloc(sizeof *all * (size_t)size);
    const int mine = 7 * rank;
    int sum = 0;
    MPI_Datatype type;
    MPI_Request request;
    MPI_Request other;
    MPI_Type_contiguous(1, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_set_attr(type, keyval, waited);
    if (rank == 0) { /* Rank 0 comes when the others have freed the type. */
        for (int i = 1; i < size; i++) {
            MPI_Recv(NULL, 0, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Iallgather(&mine, 1, type, all, 1, type, comm, &request);
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &other);
    waited->other = waited->blocking ? NULL : &other;
    MPI_Type_free(&type);
    if (rank != 0) {
        MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (waited->blocking) {
        MPI_Wait(&other, MPI_STATUS_IGNORE);
    }
    require(other == MPI_REQUEST_NULL, "the other call has ended");
    for (int i = 0; i < size; i++) {
        require(all[i] == 7 * i, "gathered");
    }
    require(sum == 7 * size * (size - 1) / 2, "summed");
    free(all);
}

/** With `fresh` these are the first calls of their communicators. */
static void types(int fresh) {
    int keyval;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, wait_for_others, &keyval, NULL);
    for (int blocking = 0; blocking <= 1; blocking++) {
        MPI_Comm comm;
        waited_t waited = {.blocking = blocking};
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_dup(MPI_COMM_WORLD, &waited.comm);
        for (int i = 0; !fresh && i < 40; i++) {
            MPI_Barrier(comm);
            MPI_Barrier(waited.comm);
        }
        for (int i = 0; i < ROUNDS; i++) {
            gather_with_freed_type(keyval, comm, &waited);
            require(waited.deleted == i + 1, "deleted once");
        }
        MPI_Comm_free(&waited.comm);
        MPI_Comm_free(&comm);
    }
    MPI_Type_free_keyval(&keyval);
}

static void ready_types(void) {
    types(0);
}

static void first_types(void) {
    types(1);
}

/* ------------------------------------------------------------------ phases */

/** First calls as above, but the component makes progress for Open MPI in one of so many calls, and
 *  each of them is that one once. */
static void phases(void) {
    enum { PHASES = 16 };
    int keyval;
    MPI_Request counted; /* Each of its starts counts for one call. */
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, wait_for_others, &keyval, NULL);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &counted);
    for (int i = 0; i < 4 * PHASES; i++) {
        MPI_Comm comm;
        waited_t waited = {.blocking = i % 2};
        for (int j = 0; j < i / 4; j++) {
            MPI_Start(&counted);
            MPI_Wait(&counted, MPI_STATUS_IGNORE);
        }
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        waited.comm = comm;
        gather_with_freed_type(keyval, comm, &waited);
        require(waited.deleted == 1, "deleted once");
        MPI_Comm_free(&comm);
    }
    MPI_Request_free(&counted);
    MPI_Type_free_keyval(&keyval);
}

/* ------------------------------------------------------------------ nested */

/** A collective that a callback calls. */
typedef struct {
    const char* name;
    void (*call)(MPI_Comm comm);
    int across;       /**< On an inter-communicator, of rank 0 and the others. */
    int calls_before; /**< Barriers that the communicator has called; -1: as many calls of `call` as
                           are made without UCG. */
} callee_t;

typedef struct {
    const callee_t* callee;
    MPI_Comm comm;
    int deleted;
} called_t;

static void barrier(MPI_Comm comm) {
    MPI_Barrier(comm);
}

static void bcast_across(MPI_Comm comm) {
    int token = rank == 0 ? 41 : 0;
    MPI_Bcast(&token, 1, MPI_INT, rank == 0 ? MPI_ROOT : 0, comm);
    require(token == 41, "broadcast");
}

static void persistent_barrier(MPI_Comm comm) {
    MPI_Request request;
    MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

static const callee_t callees[] = {
    {"barrier", barrier, 0, -1},
    {"barrier across", barrier, 1, -1},
    {"bcast across", bcast_across, 1, -1},
    {"first persistent barrier", persistent_barrier, 0, 0},
    {"persistent barrier", persistent_barrier, 0, 40},
};

static int call_collective(MPI_Datatype type, int keyval, void* value, void* extra) {
    (void)type;
    (void)keyval;
    (void)extra;
    called_t* called = value;
    called->deleted++;
    called->callee->call(called->comm);
    return MPI_SUCCESS;
}

static MPI_Comm communicator_for(const callee_t* callee) {
    MPI_Comm comm;
    if (!callee->across) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        return comm;
    }
    MPI_Comm side;
    MPI_Comm_split(MPI_COMM_WORLD, rank != 0, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank == 0, 0, &comm);
    MPI_Comm_free(&side);
    return comm;
}

/** The callback runs on rank 0 while that makes the group of another communicator, and on the other
 *  ranks before they come to that. */
static void call_within_and_before(int keyval, MPI_Comm other, called_t* called) {
    int* all = malloc(sizeof *all * (size_t)size);
    const int mine = 7 * rank;
    MPI_Datatype type;
    MPI_Request request;
    MPI_Type_contiguous(1, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_set_attr(type, keyval, called);
    if (rank != 0) {
        usleep(100000);
    }
    MPI_Iallgather(&mine, 1, type, all, 1, type, MPI_COMM_WORLD, &request);
    MPI_Type_free(&type);
    if (rank == 0) {
        MPI_Barrier(other);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank != 0) {
        MPI_Barrier(other);
    }
    require(called->deleted == 1, "deleted once");
    for (int i = 0; i < size; i++) {
        require(all[i] == 7 * i, "gathered");
    }
    free(all);
}

static void use_both(MPI_Comm other, const called_t* called) {
    for (int i = 0; i < 100; i++) {
        int sum = 0;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, other);
        require(sum == size * (size - 1) / 2, "summed");
        called->callee->call(called->comm);
    }
}

static void nest(int keyval, const callee_t* callee) {
    MPI_Comm other;
    called_t called = {callee, communicator_for(callee), 0};
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (int i = 0; i < callee->calls_before; i++) {
        MPI_Barrier(called.comm);
    }
    for (int i = 0; i < calls_before_group; i++) {
        MPI_Barrier(other);
        if (callee->calls_before < 0) {
            callee->call(called.comm);
        }
    }
    call_within_and_before(keyval, other, &called);
    use_both(other, &called);
    MPI_Comm_free(&other);
    MPI_Comm_free(&called.comm);
    if (rank == 0) {
        printf("nested: %s done\n", callee->name);
        fflush(stdout);
    }
}

static void nested(void) {
    int keyval;
    MPI_Barrier(MPI_COMM_WORLD); /* From now on it has a group. */
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, call_collective, &keyval, NULL);
    for (size_t i = 0; i < sizeof callees / sizeof *callees; i++) {
        nest(keyval, &callees[i]);
    }
    MPI_Type_free_keyval(&keyval);
}

/* ------------------------------------------------------------------ within */

/** Two calls of one communicator, in this order on all ranks: the second is called by a callback
 *  while the first waits, or after it. */
typedef struct {
    const char* name;
    void (*first)(MPI_Comm comm);
    void (*second)(MPI_Comm comm);
} pair_t;

typedef struct {
    const pair_t* pair;
    MPI_Comm comm;
    int inside; /**< The first call is in progress. */
    int nested; /**< How often the second was called then. */
} paired_t;

/** Sums `count` numbers. */
static void sum_up(MPI_Comm comm, int count) {
    int* mine = malloc(sizeof *mine * (size_t)count);
    int* sums = malloc(sizeof *sums * (size_t)count);
    for (int i = 0; i < count; i++) {
        mine[i] = i + rank;
    }
    MPI_Allreduce(mine, sums, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++) {
        require(sums[i] == i * size + size * (size - 1) / 2, "summed");
    }
    free(mine);
    free(sums);
}

static void sum_few(MPI_Comm comm) {
    sum_up(comm, 3);
}

static void sum_many(MPI_Comm comm) {
    sum_up(comm, 100000);
}

static void start_to_sum(MPI_Comm comm) {
    const double mine = 1 + rank;
    double sum = 0;
    MPI_Request request;
    MPI_Iallreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(sum == size * (size + 1) / 2, "summed by a nonblocking call");
}

/** Gathers vectors with gaps, which are packed. */
static void gather_vectors(MPI_Comm comm, int count) {
    int* mine = malloc(sizeof *mine * (size_t)count);
    int* all = calloc((size_t)(2 * count * size), sizeof *all);
    MPI_Datatype gaps;
    MPI_Datatype vector;
    MPI_Type_vector(count, 1, 2, MPI_INT, &gaps);
    MPI_Type_create_resized(gaps, 0, (MPI_Aint)sizeof *all * 2 * count, &vector);
    MPI_Type_commit(&vector);
    for (int i = 0; i < count; i++) {
        mine[i] = 1000000 * rank + i;
    }
    MPI_Allgather(mine, count, MPI_INT, all, 1, vector, comm);
    for (int from = 0; from < size; from++) {
        for (int i = 0; i < count; i++) {
            require(all[2 * (count * from + i)] == 1000000 * from + i, "gathered vectors");
        }
    }
    MPI_Type_free(&vector);
    MPI_Type_free(&gaps);
    free(mine);
    free(all);
}

static void gather_short(MPI_Comm comm) {
    gather_vectors(comm, 5000);
}

static void gather_long(MPI_Comm comm) {
    gather_vectors(comm, 200000);
}

static const pair_t pairs[] = {
    {"equal barriers", barrier, barrier},          {"equal sums", sum_few, sum_few},
    {"a longer sum", sum_few, sum_many},           {"a shorter sum", sum_many, sum_few},
    {"longer vectors", gather_short, gather_long}, {"shorter vectors", gather_long, gather_short},
    {"a nonblocking sum", sum_many, start_to_sum},
};

static int call_second(MPI_Datatype type, int keyval, void* value, void* extra) {
    (void)type;
    (void)keyval;
    (void)extra;
    paired_t* paired = value;
    paired->nested += paired->inside;
    paired->pair->second(paired->comm);
    return MPI_SUCCESS;
}

static void call_first(paired_t* paired) {
    paired->inside = 1;
    paired->pair->first(paired->comm);
    paired->inside = 0;
}

/** On all ranks but 0 the callback runs while the first call waits for rank 0. */
static void call_pair(int keyval, MPI_Comm other, paired_t* paired) {
    int* all = malloc(sizeof *all * (size_t)size);
    MPI_Request request;
    if (rank == 0) {
        usleep(20000);
        MPI_Iallgather(&rank, 1, MPI_INT, all, 1, MPI_INT, other, &request);
        usleep(5000);
        call_first(paired);
        paired->pair->second(paired->comm);
    } else {
        MPI_Datatype type;
        MPI_Type_contiguous(1, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Type_set_attr(type, keyval, paired);
        MPI_Iallgather(&rank, 1, type, all, 1, type, other, &request);
        MPI_Type_free(&type);
        call_first(paired);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++) {
        require(all[i] == i, "gathered");
    }
    free(all);
}

static void within(void) {
    enum { PAIR_ROUNDS = 10, TO_PREPARE = 3 };
    int keyval;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, call_second, &keyval, NULL);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        MPI_Comm other;
        paired_t paired = {&pairs[i], MPI_COMM_NULL, 0, 0};
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
        MPI_Comm_dup(MPI_COMM_WORLD, &paired.comm);
        for (int j = 0; j < 40; j++) {
            MPI_Barrier(other);
            MPI_Barrier(paired.comm);
        }
        for (int j = 0; j < PAIR_ROUNDS; j++) {
            for (int k = 0; k < TO_PREPARE; k++) {
                paired.pair->first(paired.comm);
            }
            call_pair(keyval, other, &paired);
        }
        require(rank == 0 || paired.nested > 0, "some callbacks ran within the first call");
        MPI_Comm_free(&paired.comm);
        MPI_Comm_free(&other);
        if (rank == 0) {
            printf("within: %s done\n", paired.pair->name);
            fflush(stdout);
        }
    }
    MPI_Type_free_keyval(&keyval);
}

/** The first call makes the group of its communicator. */
static void first_within(void) {
    enum { FRESH_ROUNDS = 5 };
    int keyval;
    MPI_Comm other;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, call_second, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (int j = 0; j < 40; j++) {
        MPI_Barrier(other);
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        int nested = 0;
        for (int j = 0; j < FRESH_ROUNDS; j++) {
            paired_t paired = {&pairs[i], MPI_COMM_NULL, 0, 0};
            MPI_Comm_dup(MPI_COMM_WORLD, &paired.comm);
            for (int k = 0; k < calls_before_group; k++) {
                MPI_Barrier(paired.comm);
            }
            call_pair(keyval, other, &paired);
            MPI_Barrier(paired.comm);
            nested += paired.nested;
            MPI_Comm_free(&paired.comm);
        }
        require(rank == 0 || nested > 0, "some callbacks ran within the first call");
        if (rank == 0) {
            printf("first within: %s done\n", pairs[i].name);
            fflush(stdout);
        }
    }
    MPI_Comm_free(&other);
    MPI_Type_free_keyval(&keyval);
}

/* ------------------------------------------------------------------ main */

static const struct {
    const char* name;
    void (*run)(void);
} parts[] = {
    {"types", ready_types},       {"first_types", first_types},
    {"phases", phases},           {"nested", nested},
    {"within", within},           {"first_within", first_within},
    {"interrupted", interrupted}, {"ends", ends},
};

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "";
    calls_before_group = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (0 == strcmp(parts[i].name, name)) {
            parts[i].run();
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0) {
                printf("%s ok\n", name);
            }
        }
    }
    MPI_Finalize();
    return 0;
}
