/*
 * Counts and displacements that the program changes as soon as the function has returned. MPI
 * forbids this until the call is complete, but Open MPI's own component does not read them later,
 * so there are programs that do it. Each vector ends where readable memory ends, so a call that
 * reads beyond its end fails.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mpi.h>

#include "persistent.h"
#include "requests.h"

enum { RANKS_MAX = 64, BLOCK = 40, STRIDE = 3 };

typedef enum {
    GATHERV,
    SCATTERV,
    ALLGATHERV,
    ALLTOALLV,
    ALLTOALLW,
    REDUCE_SCATTER,
    NEIGHBOR_ALLGATHERV,
    NEIGHBOR_ALLTOALLV,
    NEIGHBOR_ALLTOALLW,
    FORMS
} form_t;

/** A call's vectors, in the order of a ring's edges or of ranks. */
typedef struct {
    int counts[RANKS_MAX];
    int displs[RANKS_MAX];
    MPI_Aint places[RANKS_MAX];
    MPI_Datatype types[RANKS_MAX];
} vectors_t;

typedef struct {
    MPI_Datatype type; /* It consists of ints, with gaps or without. */
    int stride;        /* Its extent in ints. */
    int root;
    int send[RANKS_MAX * BLOCK * STRIDE];
    int receive[RANKS_MAX * BLOCK * STRIDE];
    vectors_t sent;
    vectors_t received;
} call_t;

/** The same vectors in the program's memory. */
typedef struct {
    int* counts;
    int* displs;
    MPI_Aint* places;
    MPI_Datatype* types;
} given_t;

enum { VECTORS = 4 };
/* For each vector of either side it has one page that is used and one that nobody may read. */
static unsigned char* pages;
static size_t page_bytes;

static void make_pages(void) {
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    pages = mmap(NULL, 4 * VECTORS * page_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(pages != MAP_FAILED, "pages for vectors");
    for (int i = 0; i < 2 * VECTORS; i++) {
        mprotect(pages + (size_t)(2 * i + 1) * page_bytes, page_bytes, PROT_NONE);
    }
}

static void* give(int which, const void* vector, size_t bytes) {
    return memcpy(pages + (size_t)(2 * which + 1) * page_bytes - bytes, vector, bytes);
}

static given_t give_all(int side, const vectors_t* v, form_t form) {
    const size_t count = form >= NEIGHBOR_ALLGATHERV ? 2 : (size_t)world_size;
    const int first = VECTORS * side;
    return (given_t){give(first, v->counts, count * sizeof *v->counts),
                     give(first + 1, v->displs, count * sizeof *v->displs),
                     give(first + 2, v->places, count * sizeof *v->places),
                     give(first + 3, v->types, count * sizeof *v->types)};
}

/** Overwrites everything except the datatypes: Open MPI's bindings read the program's own
 * datatypes once more at the end. */
static void forget(void) {
    for (int i = 0; i < 2 * VECTORS; i++) {
        if (i % VECTORS != VECTORS - 1) {
            memset(pages + (size_t)(2 * i) * page_bytes, 0x7f, page_bytes);
        }
    }
}

static int length(int from, int to) {
    return (3 * from + 5 * to) % BLOCK;
}

static int value(int from, int to, int index) {
    return 100000 * from + 1000 * to + index;
}

static int* at(const call_t* call, int* buffer, int block, int index) {
    return buffer + (BLOCK * block + index) * call->stride;
}

static void fill_block(call_t* call, int block, int to) {
    for (int i = 0; i < BLOCK; i++) {
        *at(call, call->send, block, i) = value(world_rank, to, i);
    }
}

/** Block `block` of either side is sent to `peer`, or comes from it. */
static void describe(vectors_t* vectors, const call_t* call, int block, int count, int in_bytes) {
    const int unit = in_bytes ? call->stride * (int)sizeof(int) : 1;
    vectors->counts[block] = count;
    vectors->displs[block] = BLOCK * block * unit;
    vectors->places[block] = BLOCK * block * (MPI_Aint)call->stride * (MPI_Aint)sizeof(int);
    vectors->types[block] = call->type;
}

static int left(void) {
    return (world_rank + world_size - 1) % world_size;
}

static int right(void) {
    return (world_rank + 1) % world_size;
}

static void fill(call_t* call, form_t form) {
    const int in_bytes = form == ALLTOALLW;
    memset(call->receive, 0xff, sizeof call->receive);
    if (form >= NEIGHBOR_ALLGATHERV) { /* The edges lead to the left and to the right. */
        const int one = form == NEIGHBOR_ALLGATHERV;
        fill_block(call, 0, one ? 0 : left());
        fill_block(call, 1, right());
        describe(&call->sent, call, 0, length(world_rank, left()), 0);
        describe(&call->sent, call, 1, length(world_rank, right()), 0);
        describe(&call->received, call, 0, length(left(), one ? 0 : world_rank), 0);
        describe(&call->received, call, 1, length(right(), one ? 0 : world_rank), 0);
        return;
    }
    const int one = form == GATHERV || form == ALLGATHERV || form == REDUCE_SCATTER;
    for (int peer = 0; peer < world_size; peer++) {
        fill_block(call, peer, one ? 0 : peer);
        describe(&call->sent, call, peer, length(world_rank, peer), in_bytes);
        describe(&call->received, call, peer, length(peer, one ? 0 : world_rank), in_bytes);
    }
}

static void start(call_t* call, form_t form, MPI_Comm comm, MPI_Request* request) {
    int* const send = call->send;
    int* const receive = call->receive;
    const given_t s = give_all(0, &call->sent, form);
    const given_t r = give_all(1, &call->received, form);
    const MPI_Datatype type = call->type;
    const int own = length(world_rank, 0);
    switch (form) {
    case GATHERV:
        MPI_Igatherv(send, own, type, receive, r.counts, r.displs, type, call->root, comm, request);
        break;
    case SCATTERV:
        MPI_Iscatterv(send, s.counts, s.displs, type, receive, length(call->root, world_rank), type,
                      call->root, comm, request);
        break;
    case ALLGATHERV:
        MPI_Iallgatherv(send, own, type, receive, r.counts, r.displs, type, comm, request);
        break;
    case ALLTOALLV:
        MPI_Ialltoallv(send, s.counts, s.displs, type, receive, r.counts, r.displs, type, comm,
                       request);
        break;
    case ALLTOALLW:
        MPI_Ialltoallw(send, s.counts, s.displs, s.types, receive, r.counts, r.displs, r.types,
                       comm, request);
        break;
    case REDUCE_SCATTER:
        MPI_Ireduce_scatter(send, receive, r.counts, MPI_INT, MPI_SUM, comm, request);
        break;
    case NEIGHBOR_ALLGATHERV:
        MPI_Ineighbor_allgatherv(send, own, type, receive, r.counts, r.displs, type, comm, request);
        break;
    case NEIGHBOR_ALLTOALLV:
        MPI_Ineighbor_alltoallv(send, s.counts, s.displs, type, receive, r.counts, r.displs, type,
                                comm, request);
        break;
    default:
        MPI_Ineighbor_alltoallw(send, s.counts, s.places, s.types, receive, r.counts, r.places,
                                r.types, comm, request);
        break;
    }
    forget();
}

static void initialise(call_t* call, form_t form, MPI_Comm comm, MPI_Request* request) {
    const given_t s = give_all(0, &call->sent, form);
    const given_t r = give_all(1, &call->received, form);
    const MPI_Datatype type = call->type;
    if (form == ALLGATHERV) {
        MPI_Allgatherv_init(call->send, length(world_rank, 0), type, call->receive, r.counts,
                            r.displs, type, comm, MPI_INFO_NULL, request);
    } else {
        MPI_Alltoallv_init(call->send, s.counts, s.displs, type, call->receive, r.counts, r.displs,
                           type, comm, MPI_INFO_NULL, request);
    }
    forget();
}

static void check_block(call_t* call, int block, int from, int to) {
    for (int i = 0; i < BLOCK * call->stride; i++) {
        const int element = i / call->stride;
        const int carried = i % call->stride == 0 && element < length(from, to);
        require(at(call, call->receive, block, 0)[i] == (carried ? value(from, to, element) : -1),
                "a block whose vectors have changed");
    }
}

static void check_sums(const call_t* call) {
    int first = 0;
    for (int rank = 0; rank < world_rank; rank++) {
        first += length(rank, 0);
    }
    for (int i = 0; i < length(world_rank, 0); i++) {
        int sum = 0;
        for (int rank = 0; rank < world_size; rank++) {
            sum += value(rank, 0, 0);
        }
        const int index = first + i;
        sum += world_size * (index % BLOCK);
        require(call->receive[i] == sum, "a sum whose counts have changed");
    }
}

static void check(call_t* call, form_t form) {
    if (form == REDUCE_SCATTER) {
        check_sums(call);
    } else if (form == SCATTERV) {
        check_block(call, 0, call->root, world_rank);
        /* What a rank sends to the right comes from the left. */
    } else if (form >= NEIGHBOR_ALLGATHERV) {
        check_block(call, 0, left(), form == NEIGHBOR_ALLGATHERV ? 0 : world_rank);
        check_block(call, 1, right(), form == NEIGHBOR_ALLGATHERV ? 0 : world_rank);
    } else if (form != GATHERV || call->root == world_rank) {
        for (int peer = 0; peer < world_size; peer++) {
            check_block(call, peer, peer, form >= ALLTOALLV ? world_rank : 0);
        }
    }
}

static MPI_Comm make_ring(int ready) {
    MPI_Comm ring;
    const int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &periodic, 0, &ring);
    if (ready) {
        MPI_Barrier(ring);
    }
    return ring;
}

/** Uses a communicator that has a group, or one that is about to make it. */
static void changed(call_t* call, int ready) {
    for (int form = 0; form < FORMS; form++) {
        if (form == REDUCE_SCATTER && call->stride > 1) {
            continue; /* No operator of MPI's works on elements with gaps. */
        }
        MPI_Request request;
        MPI_Comm ring = make_ring(ready);
        call->root = form % world_size;
        fill(call, (form_t)form);
        start(call, (form_t)form, ring, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(call, (form_t)form);
        MPI_Comm_free(&ring);
    }
}

static void changed_persistent(call_t* call) {
    const form_t forms[] = {ALLGATHERV, ALLTOALLV};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        MPI_Request request;
        fill(call, forms[i]);
        initialise(call, forms[i], MPI_COMM_WORLD, &request);
        for (int round = 0; round < 3; round++) {
            memset(call->receive, 0xff, sizeof call->receive);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            check(call, forms[i]);
        }
        MPI_Request_free(&request);
    }
}

/**
 * From Open MPI 6.0 on the bindings of Fortran 2008 attach arrays to the requests of calls with
 * many datatypes, even to complete ones. A single request that stands for all complete calls has no
 * room for them.
 */
static void have_their_own(call_t* call) {
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 6
    enum { ROUNDS = 40 };
    const form_t forms[] = {ALLTOALLW, NEIGHBOR_ALLTOALLW};
    call_t* other = malloc(sizeof *other);
    MPI_Comm ring = make_ring(1);
    *other = *call;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        MPI_Request requests[2];
        const form_t form = forms[round % 2];
        fill(call, form);
        start(call, form, ring, &requests[0]);
        fill(other, form);
        start(other, form, ring, &requests[1]);
        require(requests[0] != requests[1], "two calls have one request");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(call, form);
        check(other, form);
    }
    MPI_Comm_free(&ring);
    free(other);
#else
    (void)call;
#endif
}

void vectors(void) {
    call_t* call = malloc(sizeof *call);
    MPI_Datatype gaps;
    make_pages();
    MPI_Type_create_resized(MPI_INT, 0, STRIDE * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    for (int with_gaps = 0; with_gaps < 2; with_gaps++) {
        call->type = with_gaps ? gaps : MPI_INT;
        call->stride = with_gaps ? STRIDE : 1;
        changed(call, 0);
        changed(call, 1);
        changed_persistent(call);
        have_their_own(call);
    }
    MPI_Type_free(&gaps);
    munmap(pages, 4 * VECTORS * page_bytes);
    free(call);
}
