/*
 * Communicators whose first calls are nonblocking: the rank that makes the group which serves them
 * must not wait for any other rank, and all calls that come meanwhile keep their order.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "persistent.h"
#include "requests.h"

enum { RANKS_MAX = 64 };

typedef enum {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    NEIGHBOR_ALLGATHER, /* This and the following ones are called on a ring. */
    NEIGHBOR_ALLGATHERV,
    NEIGHBOR_ALLTOALL,
    NEIGHBOR_ALLTOALLV,
    NEIGHBOR_ALLTOALLW,
    FORMS
} form_t;

/** One call, with one element for each rank. */
typedef struct {
    form_t form;
    int seed;
    int root;
    int64_t send[RANKS_MAX];
    int64_t receive[RANKS_MAX];
    int counts[RANKS_MAX];
    int displs[RANKS_MAX]; /* They are in elements. */
    int bytes[RANKS_MAX];
    MPI_Aint addresses[2]; /* Those of a ring's edges, in bytes. */
    MPI_Datatype types[RANKS_MAX];
} first_call_t;

/** The element that `rank` sends to `to`. */
static int64_t element(const first_call_t* call, int rank, int to) {
    return 10000 * (int64_t)call->seed + 100 * rank + to;
}

static void fill_first(first_call_t* call, form_t form, int seed, int rank, int size) {
    call->form = form;
    call->seed = seed;
    call->root = seed % size;
    for (int i = 0; i < size; i++) {
        call->send[i] = element(call, rank, i);
        call->receive[i] = -1;
        call->counts[i] = 1;
        call->displs[i] = i;
        call->bytes[i] = i * (int)sizeof(int64_t);
        call->types[i] = MPI_INT64_T;
    }
    if (form == BCAST && rank == call->root) {
        call->receive[0] = call->send[0];
    }
    call->addresses[0] = 0;
    call->addresses[1] = sizeof(int64_t);
}

/** Fortran's bindings make this array only for the time of the call. */
static void forget_types(first_call_t* call) {
    memset(call->types, 0xff, sizeof call->types);
}

static void start_along_ring(first_call_t* call, MPI_Comm ring, MPI_Request* request) {
    int64_t* const send = call->send;
    int64_t* const receive = call->receive;
    int* const counts = call->counts;
    int* const displs = call->displs;
    const MPI_Datatype type = MPI_INT64_T;
    switch (call->form) {
    case NEIGHBOR_ALLGATHER:
        MPI_Ineighbor_allgather(send, 1, type, receive, 1, type, ring, request);
        break;
    case NEIGHBOR_ALLGATHERV:
        MPI_Ineighbor_allgatherv(send, 1, type, receive, counts, displs, type, ring, request);
        break;
    case NEIGHBOR_ALLTOALL:
        MPI_Ineighbor_alltoall(send, 1, type, receive, 1, type, ring, request);
        break;
    case NEIGHBOR_ALLTOALLV:
        MPI_Ineighbor_alltoallv(send, counts, displs, type, receive, counts, displs, type, ring,
                                request);
        break;
    default:
        MPI_Ineighbor_alltoallw(send, counts, call->addresses, call->types, receive, counts,
                                call->addresses, call->types, ring, request);
        forget_types(call);
        break;
    }
}

static void start_reduction(first_call_t* call, int size, MPI_Comm comm, MPI_Request* request) {
    int64_t* const send = call->send;
    int64_t* const receive = call->receive;
    const MPI_Datatype type = MPI_INT64_T;
    switch (call->form) {
    case REDUCE: MPI_Ireduce(send, receive, size, type, MPI_SUM, call->root, comm, request); break;
    case ALLREDUCE: MPI_Iallreduce(send, receive, size, type, MPI_SUM, comm, request); break;
    case REDUCE_SCATTER:
        MPI_Ireduce_scatter(send, receive, call->counts, type, MPI_SUM, comm, request);
        break;
    case REDUCE_SCATTER_BLOCK:
        MPI_Ireduce_scatter_block(send, receive, 1, type, MPI_SUM, comm, request);
        break;
    case SCAN: MPI_Iscan(send, receive, 1, type, MPI_SUM, comm, request); break;
    default: MPI_Iexscan(send, receive, 1, type, MPI_SUM, comm, request); break;
    }
}

static void start_first(first_call_t* call, form_t form, int seed, MPI_Comm comm,
                        MPI_Request* request) {
    int rank;
    int size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    fill_first(call, form, seed, rank, size);
    int64_t* const send = call->send;
    int64_t* const receive = call->receive;
    int* const counts = call->counts;
    int* const displs = call->displs;
    const int root = call->root;
    const MPI_Datatype type = MPI_INT64_T;
    switch (form) {
    case BARRIER: MPI_Ibarrier(comm, request); break;
    case BCAST: MPI_Ibcast(receive, 1, type, root, comm, request); break;
    case GATHER: MPI_Igather(send, 1, type, receive, 1, type, root, comm, request); break;
    case GATHERV:
        MPI_Igatherv(send, 1, type, receive, counts, displs, type, root, comm, request);
        break;
    case SCATTER: MPI_Iscatter(send, 1, type, receive, 1, type, root, comm, request); break;
    case SCATTERV:
        MPI_Iscatterv(send, counts, displs, type, receive, 1, type, root, comm, request);
        break;
    case ALLGATHER: MPI_Iallgather(send, 1, type, receive, 1, type, comm, request); break;
    case ALLGATHERV:
        MPI_Iallgatherv(send, 1, type, receive, counts, displs, type, comm, request);
        break;
    case ALLTOALL: MPI_Ialltoall(send, 1, type, receive, 1, type, comm, request); break;
    case ALLTOALLV:
        MPI_Ialltoallv(send, counts, displs, type, receive, counts, displs, type, comm, request);
        break;
    case ALLTOALLW:
        MPI_Ialltoallw(send, counts, call->bytes, call->types, receive, counts, call->bytes,
                       call->types, comm, request);
        forget_types(call);
        break;
    case REDUCE:
    case ALLREDUCE:
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK:
    case SCAN:
    case EXSCAN: start_reduction(call, size, comm, request); break;
    default: start_along_ring(call, comm, request); break;
    }
}

static int64_t sum_from(const first_call_t* call, int begin, int end, int to) {
    int64_t sum = 0;
    for (int i = begin; i < end; i++) {
        sum += element(call, i, to);
    }
    return sum;
}

static void check_first(const first_call_t* call, MPI_Comm comm, const char* what) {
    int rank;
    int size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int64_t* const got = call->receive;
    const int left = (rank + size - 1) % size;
    const int right = (rank + 1) % size;
    switch (call->form) {
    case BARRIER: break;
    case BCAST: require(got[0] == element(call, call->root, 0), what); break;
    case GATHER:
    case GATHERV:
        for (int i = 0; i < size && rank == call->root; i++) {
            require(got[i] == element(call, i, 0), what);
        }
        break;
    case SCATTER:
    case SCATTERV: require(got[0] == element(call, call->root, rank), what); break;
    case ALLGATHER:
    case ALLGATHERV:
        for (int i = 0; i < size; i++) {
            require(got[i] == element(call, i, 0), what);
        }
        break;
    case ALLTOALL:
    case ALLTOALLV:
    case ALLTOALLW:
        for (int i = 0; i < size; i++) {
            require(got[i] == element(call, i, rank), what);
        }
        break;
    case REDUCE:
    case ALLREDUCE:
        for (int i = 0; i < size && (call->form == ALLREDUCE || rank == call->root); i++) {
            require(got[i] == sum_from(call, 0, size, i), what);
        }
        break;
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK: require(got[0] == sum_from(call, 0, size, rank), what); break;
    case SCAN: require(got[0] == sum_from(call, 0, rank + 1, 0), what); break;
    case EXSCAN: require(rank == 0 || got[0] == sum_from(call, 0, rank, 0), what); break;
    case NEIGHBOR_ALLGATHER:
    case NEIGHBOR_ALLGATHERV:
        require(got[0] == element(call, left, 0) && got[1] == element(call, right, 0), what);
        break;
    default: /* What a rank sends to the right comes from the left. */
        require(got[0] == element(call, left, 1) && got[1] == element(call, right, 0), what);
        break;
    }
}

static MPI_Comm make_ring(void) {
    MPI_Comm ring;
    const int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &periodic, 0, &ring);
    return ring;
}

/** Each function is the first one on some communicator, and the next function is the second one,
 * called before the first has ended. */
static void first_forms(void) {
    for (int form = 0; form < FORMS; form++) {
        first_call_t calls[2];
        MPI_Request requests[2];
        MPI_Comm ring = make_ring();
        start_first(&calls[0], (form_t)form, form, ring, &requests[0]);
        start_first(&calls[1], (form_t)((form + 1) % FORMS), form + 1, ring, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_first(&calls[0], ring, "the first of a communicator");
        check_first(&calls[1], ring, "the second of a communicator");
        MPI_Comm_free(&ring);
    }
}

/** Hundreds of calls wait, among them calls that are passed on to Open MPI. */
static void first_many(void) {
    enum { MANY = 400, ROUNDS = 2 * WAYS };
    first_call_t* calls = malloc(MANY * sizeof *calls);
    MPI_Request requests[MANY + MANY / 50];
    uint64_t random = (uint64_t)world_rank + 11;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm ring = make_ring();
        int mine = round + world_rank;
        int greatest[MANY / 50];
        for (int i = 0; i < MANY; i++) {
            start_first(&calls[i], (form_t)((i + round) % FORMS), i, ring, &requests[i]);
            if (i % 50 == 7) { /* Open MPI makes communicators with calls like this one. */
                MPI_Iallreduce(&mine, &greatest[i / 50], 1, MPI_INT, MPI_MAX, ring,
                               &requests[MANY + i / 50]);
            }
        }
        complete(requests, MANY + MANY / 50, round % WAYS, &random);
        for (int i = 0; i < MANY; i++) {
            check_first(&calls[i], ring, "one of many first ones");
        }
        for (int i = 0; i < MANY / 50; i++) {
            require(greatest[i] == round + world_size - 1, "what is passed on among them");
        }
        MPI_Comm_free(&ring);
    }
    free(calls);
}

/** The ranks make the first calls of some communicators in orders of their own; communicators
 * with fewer ranks, and with blocking calls, are among them. */
static void first_crossed(void) {
    enum { COMMS = 6, ROUNDS = 20 };
    uint64_t random = (uint64_t)world_rank + 3;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comms[COMMS];
        MPI_Comm part;
        first_call_t calls[COMMS];
        first_call_t among_part;
        MPI_Request requests[COMMS + 1];
        int order[COMMS];
        int64_t sum = 0;
        const int64_t one = 1;
        int size;
        for (int i = 0; i < COMMS; i++) {
            comms[i] = make_ring();
            order[i] = i;
        }
        MPI_Comm_split(MPI_COMM_WORLD, (world_rank + round) % 2, 0, &part);
        MPI_Comm_size(part, &size);
        for (int i = COMMS - 1; i > 0; i--) {
            const int other = (int)(next_random(&random) % (uint64_t)(i + 1));
            const int kept = order[i];
            order[i] = order[other];
            order[other] = kept;
        }
        for (int i = 0; i < COMMS; i++) {
            const int which = order[i];
            start_first(&calls[which], (form_t)((which + round) % FORMS), which, comms[which],
                        &requests[which]);
            if (i == round % COMMS) { /* These get their group while others wait for theirs. */
                MPI_Allreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, part);
                start_first(&among_part, ALLGATHER, round, part, &requests[COMMS]);
            }
        }
        require(sum == size, "a blocking call beside first ones");
        complete(requests, COMMS + 1, round % WAYS, &random);
        check_first(&among_part, part, "one of a part beside first ones");
        for (int i = 0; i < COMMS; i++) {
            check_first(&calls[i], comms[i], "first ones in another order");
            MPI_Comm_free(&comms[i]);
        }
        MPI_Comm_free(&part);
    }
}

/** A start never waits, not even for a rank that comes only after this rank has told it to. */
static void first_late(void) {
    enum { ROUNDS = 30 };
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm ring = make_ring();
        first_call_t calls[2];
        MPI_Request requests[2];
        int token = round;
        const int last = (world_rank + round) % world_size == world_size - 1;
        if (last) {
            for (int i = 0; i < world_size - 1; i++) {
                MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
        start_first(&calls[0], (form_t)(round % FORMS), round, ring, &requests[0]);
        start_first(&calls[1], ALLREDUCE, round, ring, &requests[1]);
        if (!last) {
            const int to = (2 * world_size - 1 - round % world_size) % world_size;
            MPI_Send(&token, 1, MPI_INT, to, 3, MPI_COMM_WORLD);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_first(&calls[0], ring, "a first one whose last rank is late");
        check_first(&calls[1], ring, "a second one whose last rank is late");
        MPI_Comm_free(&ring);
    }
}

/** Blocking calls and inits follow first calls that have not ended, and the communicator is
 * freed before those have. */
static void first_mixed(void) {
    enum { ROUNDS = 20 };
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm ring = make_ring();
        MPI_Comm duplicate = MPI_COMM_NULL;
        first_call_t calls[2];
        MPI_Request requests[3];
        MPI_Request kept = MPI_REQUEST_NULL;
        const int64_t mine = world_rank;
        int64_t all[RANKS_MAX];
        int64_t sum = 0;
        start_first(&calls[0], (form_t)(round % FORMS), round, ring, &requests[0]);
        if (round % 3 == 0) {
            MPI_Allgather(&mine, 1, MPI_INT64_T, all, 1, MPI_INT64_T, ring);
            require(all[world_size - 1] == world_size - 1, "a blocking call after a first one");
        } else if (round % 3 == 1) {
            MPI_Allreduce_init(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, ring, MPI_INFO_NULL, &kept);
            MPI_Start(&kept);
        } else {
            MPI_Comm_dup(ring, &duplicate);
        }
        start_first(&calls[1], SCAN, round, ring, &requests[1]);
        requests[2] = kept;
        MPI_Comm_free(&ring);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        check_first(&calls[0], MPI_COMM_WORLD, "the first of a communicator that is freed");
        check_first(&calls[1], MPI_COMM_WORLD, "the second of a communicator that is freed");
        if (kept != MPI_REQUEST_NULL) {
            require(sum == (int64_t)world_size * (world_size - 1) / 2, "a persistent one");
            MPI_Request_free(&requests[2]);
        }
        if (duplicate != MPI_COMM_NULL) {
            MPI_Comm_free(&duplicate);
        }
    }
}

/** The program has made no blocking call yet, so the processes share no memory. */
void first_of_all(void) {
    enum { CALLS = 300 };
    MPI_Comm ring = make_ring();
    for (int i = 0; i < CALLS; i++) {
        first_call_t calls[3];
        MPI_Request requests[3];
        MPI_Comm where[] = {MPI_COMM_WORLD, ring, ring};
        /* In periodic dimensions of size two, Open MPI 4.1's own component swaps what comes from
         * the two sides. */
        const form_t form = (form_t)(i % (world_size > 2 ? FORMS : NEIGHBOR_ALLGATHER));
        start_first(&calls[0], form < NEIGHBOR_ALLGATHER ? form : SCAN, i, where[0], &requests[0]);
        start_first(&calls[1], form, i, where[1], &requests[1]);
        start_first(&calls[2], BCAST, i, where[2], &requests[2]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < 3; k++) {
            check_first(&calls[k], where[k], "the first of all");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&ring);
}

/** Processes begin with two communicators in different orders. What is started at half of the
 * processes waits until the other half has used the other communicator. */
static void cross(void (*call_other)(first_call_t* call, int seed, MPI_Comm other)) {
    enum { ROUNDS = 40 };
    MPI_Comm other = make_ring();
    for (int i = 0; i < ROUNDS; i++) {
        first_call_t calls[2];
        MPI_Request request;
        if (world_rank % 2 == 0) {
            start_first(&calls[0], ALLTOALL, i, MPI_COMM_WORLD, &request);
        }
        call_other(&calls[1], i, other);
        if (world_rank % 2 != 0) {
            start_first(&calls[0], ALLTOALL, i, MPI_COMM_WORLD, &request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_first(&calls[0], MPI_COMM_WORLD, "the one that waits");
        check_first(&calls[1], other, "the other one");
    }
    MPI_Comm_free(&other);
}

static void call_and_wait(first_call_t* call, int seed, MPI_Comm other) {
    MPI_Request request;
    start_first(call, ALLTOALL, seed, other, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void call_blocking(first_call_t* call, int seed, MPI_Comm other) {
    fill_first(call, ALLTOALL, seed, world_rank, world_size);
    MPI_Alltoall(call->send, 1, MPI_INT64_T, call->receive, 1, MPI_INT64_T, other);
}

void first_of_all_crossed(void) {
    cross(call_and_wait);
}

void first_of_all_blocking(void) {
    cross(call_blocking);
}

static void* use_communicators(void* argument) {
    enum { EACH = 8, CALLS = 40 };
    MPI_Comm* comms = argument;
    for (int i = 0; i < EACH; i++) {
        first_call_t calls[CALLS];
        MPI_Request requests[CALLS];
        for (int k = 0; k < CALLS; k++) {
            start_first(&calls[k], (form_t)((k + i) % NEIGHBOR_ALLGATHER), k, comms[i],
                        &requests[k]);
        }
        MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < CALLS; k++) {
            check_first(&calls[k], comms[i], "first ones of a thread");
        }
    }
    return NULL;
}

static atomic_int over;

static void* make_progress(void* unused) {
    (void)unused;
    while (!atomic_load(&over)) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    return NULL;
}

/** Another thread completes the group and makes the calls that have waited for it, while this
 * thread goes on with similar calls. */
static void repeat_beside_progress(void) {
    enum { ROUNDS = 30, CALLS = 200 };
    pthread_t other;
    atomic_store(&over, 0);
    require(0 == pthread_create(&other, NULL, make_progress, NULL), "a thread");
    for (int round = 0; round < ROUNDS; round++) {
        static int64_t values[CALLS][4];
        MPI_Request requests[2 * CALLS];
        MPI_Comm comm;
        const int64_t mine = world_rank;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int i = 0; i < CALLS; i++) {
            values[i][0] = world_rank == 0 ? i : -1;
            MPI_Ibcast(&values[i][0], 1, MPI_INT64_T, 0, comm, &requests[2 * i]);
            values[i][1] = -1;
            MPI_Iallreduce(&mine, &values[i][1], 1, MPI_INT64_T, MPI_SUM, comm,
                           &requests[2 * i + 1]);
        }
        MPI_Waitall(2 * CALLS, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < CALLS; i++) {
            require(values[i][0] == i, "one of repeated first ones");
            require(values[i][1] == (int64_t)world_size * (world_size - 1) / 2,
                    "a sum among repeated first ones");
        }
        MPI_Comm_free(&comm);
    }
    atomic_store(&over, 1);
    pthread_join(other, NULL);
}

/** Each thread has communicators of its own. */
static void use_in_threads(void) {
    enum { THREADS = 3, EACH = 8, ROUNDS = 3 };
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comms[THREADS][EACH];
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS * EACH; i++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i / EACH][i % EACH]);
        }
        for (int i = 0; i < THREADS; i++) {
            require(0 == pthread_create(&threads[i], NULL, use_communicators, comms[i]),
                    "a thread");
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        for (int i = 0; i < THREADS * EACH; i++) {
            MPI_Comm_free(&comms[i / EACH][i % EACH]);
        }
    }
}

/** Calls MPI_Comm_idup on a communicator whose first calls wait. */
static void first_idup(void) {
    enum { ROUNDS = 20 };
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm ring = make_ring();
        MPI_Comm duplicate;
        first_call_t calls[2];
        MPI_Request requests[3];
        start_first(&calls[0], (form_t)(round % FORMS), round, ring, &requests[0]);
        MPI_Comm_idup(ring, &duplicate, &requests[2]);
        MPI_Waitall(1, requests, MPI_STATUSES_IGNORE);
        MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
        start_first(&calls[1], ALLTOALL, round, duplicate, &requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        check_first(&calls[0], ring, "the first before MPI_Comm_idup");
        check_first(&calls[1], duplicate, "the first of what MPI_Comm_idup makes");
        MPI_Comm_free(&duplicate);
        MPI_Comm_free(&ring);
    }
}

void first(void) {
    first_forms();
    first_many();
    first_crossed();
    first_late();
    first_mixed();
    first_idup();
}

void first_threads(void) {
    use_in_threads();
    repeat_beside_progress();
}
