/*
 * Inter-communicators: collectives without a root that move blocks, in all forms.
 */
#include <stdlib.h>

#include "inter.h"
#include "persistent.h"

/** The vectors of a call: one block for each process of the other side. */
typedef struct {
    int* counts;
    int* displs;
    int* byte_displs; /**< The same in bytes. */
    MPI_Datatype* types;
    int elements; /**< The number of elements that all blocks and the gaps between them take. */
} vectors_t;

static vectors_t new_vectors(const sides_t* sides) {
    const size_t n = (size_t)sides->remote;
    vectors_t vectors = {malloc(n * sizeof(int)), malloc(n * sizeof(int)), malloc(n * sizeof(int)),
                         malloc(n * sizeof(MPI_Datatype)), 0};
    return vectors;
}

static void free_vectors(vectors_t* vectors) {
    free(vectors->counts);
    free(vectors->displs);
    free(vectors->byte_displs);
    free(vectors->types);
}

/** Lays out blocks of so many elements each. One element lies between two blocks, and the last
 * block comes first. */
static vectors_t vectors_of(const sides_t* sides, int (*elements)(int side, int from, int to),
                            int sends, int count) {
    vectors_t vectors = new_vectors(sides);
    MPI_Aint lower;
    MPI_Aint extent;
    MPI_Type_get_extent(sides->layout.type, &lower, &extent);
    for (int i = sides->remote - 1; i >= 0; i--) {
        const int block = count * (sends ? elements(sides->side, sides->rank, i)
                                         : elements(1 - sides->side, i, sides->rank));
        vectors.counts[i] = block * sides->layout.per_element;
        vectors.displs[i] = vectors.elements * sides->layout.per_element;
        vectors.byte_displs[i] = vectors.displs[i] * (int)extent;
        vectors.types[i] = sides->layout.type;
        vectors.elements += block + 1;
    }
    return vectors;
}

static int by_sender(int side, int from, int to) {
    (void)to;
    return (from + side) % 3;
}

static int by_both(int side, int from, int to) {
    return (from + 2 * to + side) % 3;
}

/* ------------------------------------------------------------------ even blocks */

typedef struct {
    void* send;
    void* receive;
    int sent;     /**< The number of elements of the type. */
    int received; /**< The number that comes from each process. */
} even_t;

static even_t begin_even(sides_t* sides, int blocks, int count) {
    /* The sides may send blocks of different lengths. */
    const int mine = count * (1 + sides->side);
    const int theirs = count * (2 - sides->side);
    even_t even = {new_elements(sides, blocks * mine), new_elements(sides, sides->remote * theirs),
                   mine * sides->layout.per_element, theirs * sides->layout.per_element};
    for (int i = 0; i < blocks; i++) {
        fill(sides, even.send, i * mine, mine,
             seed_of(sides->side, sides->rank, 1 == blocks ? 0 : i));
    }
    return even;
}

static void end_even(sides_t* sides, even_t* even, int all, int count) {
    const int theirs = count * (2 - sides->side);
    for (int i = 0; i < sides->remote; i++) {
        check(sides, even->receive, i * theirs, theirs,
              seed_of(1 - sides->side, i, all ? sides->rank : 0));
    }
    free(even->send);
    free(even->receive);
}

static void allgather(sides_t* sides, int count) {
    sides->what = "allgather";
    const MPI_Datatype type = sides->layout.type;
    even_t even = begin_even(sides, 1, count);
    for (int i = 0; i < 3; i++) { /* Calls that repeat an earlier one take a shorter path. */
        MPI_Allgather(even.send, even.sent, type, even.receive, even.received, type, sides->comm);
    }
    end_even(sides, &even, 0, count);
}

static void alltoall(sides_t* sides, int count) {
    sides->what = "alltoall";
    const MPI_Datatype type = sides->layout.type;
    even_t even = begin_even(sides, sides->remote, count);
    for (int i = 0; i < 3; i++) {
        MPI_Alltoall(even.send, even.sent, type, even.receive, even.received, type, sides->comm);
    }
    end_even(sides, &even, 1, count);
}

/** Only one side sends. */
void test_one_way(sides_t* sides, int count) {
    sides->what = "allgather one way";
    const MPI_Datatype type = sides->layout.type;
    const int n = count * sides->layout.per_element;
    void* send = new_elements(sides, count);
    void* receive = new_elements(sides, count * sides->remote);
    fill(sides, send, 0, count, seed_of(sides->side, sides->rank, 0));
    MPI_Allgather(send, 0 == sides->side ? n : 0, type, receive, 0 == sides->side ? 0 : n, type,
                  sides->comm);
    if (0 == sides->side) {
        check_untouched(sides, receive, count * sides->remote);
    } else {
        for (int i = 0; i < sides->remote; i++) {
            check(sides, receive, i * count, count, seed_of(0, i, 0));
        }
    }
    free(send);
    free(receive);
}

/* ------------------------------------------------------------------ blocks of their own */

static void check_blocks(sides_t* sides, const void* buffer, const vectors_t* vectors, int all) {
    for (int i = 0; i < sides->remote; i++) {
        check(sides, buffer, vectors->displs[i] / sides->layout.per_element,
              vectors->counts[i] / sides->layout.per_element,
              seed_of(1 - sides->side, i, all ? sides->rank : 0));
    }
}

static void allgatherv(sides_t* sides, int count) {
    sides->what = "allgatherv";
    const MPI_Datatype type = sides->layout.type;
    const int mine = count * by_sender(sides->side, sides->rank, 0);
    vectors_t vectors = vectors_of(sides, by_sender, 0, count);
    void* send = new_elements(sides, mine);
    void* receive = new_elements(sides, vectors.elements);
    fill(sides, send, 0, mine, seed_of(sides->side, sides->rank, 0));
    for (int i = 0; i < 3; i++) {
        MPI_Allgatherv(send, mine * sides->layout.per_element, type, receive, vectors.counts,
                       vectors.displs, type, sides->comm);
    }
    check_blocks(sides, receive, &vectors, 0);
    free(send);
    free(receive);
    free_vectors(&vectors);
}

static void fill_blocks(sides_t* sides, void* buffer, const vectors_t* vectors) {
    for (int i = 0; i < sides->remote; i++) {
        fill(sides, buffer, vectors->displs[i] / sides->layout.per_element,
             vectors->counts[i] / sides->layout.per_element, seed_of(sides->side, sides->rank, i));
    }
}

static void alltoallv(sides_t* sides, int count) {
    const MPI_Datatype type = sides->layout.type;
    vectors_t out = vectors_of(sides, by_both, 1, count);
    vectors_t in = vectors_of(sides, by_both, 0, count);
    void* send = new_elements(sides, out.elements);
    void* receive = new_elements(sides, in.elements);
    void* again = new_elements(sides, in.elements);
    fill_blocks(sides, send, &out);
    sides->what = "alltoallv";
    for (int i = 0; i < 3; i++) {
        MPI_Alltoallv(send, out.counts, out.displs, type, receive, in.counts, in.displs, type,
                      sides->comm);
    }
    check_blocks(sides, receive, &in, 1);
    sides->what = "alltoallw";
    for (int i = 0; i < 3; i++) {
        MPI_Alltoallw(send, out.counts, out.byte_displs, out.types, again, in.counts,
                      in.byte_displs, in.types, sides->comm);
    }
    check_blocks(sides, again, &in, 1);
    free(send);
    free(receive);
    free(again);
    free_vectors(&out);
    free_vectors(&in);
}

void test_moves(sides_t* sides, int count) {
    allgather(sides, count);
    alltoall(sides, count);
    allgatherv(sides, count);
    alltoallv(sides, count);
    MPI_Barrier(sides->comm);
}

/* ------------------------------------------------------------------ forms */

enum { MOVES = 5 };

typedef struct {
    even_t gathered;
    even_t exchanged;
    vectors_t gathered_v;
    vectors_t out;
    vectors_t in;
    void* send_v;
    void* send;
    void* receive[3];
    int mine;
} moves_t;

static void begin_moves(sides_t* sides, moves_t* moves, int count) {
    moves->gathered = begin_even(sides, 1, count);
    moves->exchanged = begin_even(sides, sides->remote, count);
    moves->mine = count * by_sender(sides->side, sides->rank, 0);
    moves->gathered_v = vectors_of(sides, by_sender, 0, count);
    moves->out = vectors_of(sides, by_both, 1, count);
    moves->in = vectors_of(sides, by_both, 0, count);
    moves->send_v = new_elements(sides, moves->mine);
    moves->send = new_elements(sides, moves->out.elements);
    fill(sides, moves->send_v, 0, moves->mine, seed_of(sides->side, sides->rank, 0));
    fill_blocks(sides, moves->send, &moves->out);
    moves->receive[0] = new_elements(sides, moves->gathered_v.elements);
    moves->receive[1] = new_elements(sides, moves->in.elements);
    moves->receive[2] = new_elements(sides, moves->in.elements);
}

static void end_moves(sides_t* sides, moves_t* moves, int count) {
    end_even(sides, &moves->gathered, 0, count);
    end_even(sides, &moves->exchanged, 1, count);
    check_blocks(sides, moves->receive[0], &moves->gathered_v, 0);
    check_blocks(sides, moves->receive[1], &moves->in, 1);
    check_blocks(sides, moves->receive[2], &moves->in, 1);
    for (int i = 0; i < 3; i++) {
        free(moves->receive[i]);
    }
    free(moves->send);
    free(moves->send_v);
    free_vectors(&moves->gathered_v);
    free_vectors(&moves->out);
    free_vectors(&moves->in);
}

/** All calls are outstanding at once. */
static void nonblocking(sides_t* sides, int count) {
    const MPI_Datatype type = sides->layout.type;
    MPI_Request requests[MOVES + 1];
    moves_t m;
    sides->what = "a nonblocking call";
    begin_moves(sides, &m, count);
    MPI_Iallgather(m.gathered.send, m.gathered.sent, type, m.gathered.receive, m.gathered.received,
                   type, sides->comm, &requests[0]);
    MPI_Ialltoall(m.exchanged.send, m.exchanged.sent, type, m.exchanged.receive,
                  m.exchanged.received, type, sides->comm, &requests[1]);
    MPI_Iallgatherv(m.send_v, m.mine * sides->layout.per_element, type, m.receive[0],
                    m.gathered_v.counts, m.gathered_v.displs, type, sides->comm, &requests[2]);
    MPI_Ialltoallv(m.send, m.out.counts, m.out.displs, type, m.receive[1], m.in.counts, m.in.displs,
                   type, sides->comm, &requests[3]);
    MPI_Ialltoallw(m.send, m.out.counts, m.out.byte_displs, m.out.types, m.receive[2], m.in.counts,
                   m.in.byte_displs, m.in.types, sides->comm, &requests[4]);
    MPI_Ibarrier(sides->comm, &requests[5]);
    MPI_Waitall(MOVES + 1, requests, MPI_STATUSES_IGNORE);
    end_moves(sides, &m, count);
}

static void persistent(sides_t* sides, int count) {
    const MPI_Datatype type = sides->layout.type;
    MPI_Request requests[MOVES + 1];
    moves_t m;
    sides->what = "a persistent call";
    begin_moves(sides, &m, count);
    MPI_Allgather_init(m.gathered.send, m.gathered.sent, type, m.gathered.receive,
                       m.gathered.received, type, sides->comm, MPI_INFO_NULL, &requests[0]);
    MPI_Alltoall_init(m.exchanged.send, m.exchanged.sent, type, m.exchanged.receive,
                      m.exchanged.received, type, sides->comm, MPI_INFO_NULL, &requests[1]);
    MPI_Allgatherv_init(m.send_v, m.mine * sides->layout.per_element, type, m.receive[0],
                        m.gathered_v.counts, m.gathered_v.displs, type, sides->comm, MPI_INFO_NULL,
                        &requests[2]);
    MPI_Alltoallv_init(m.send, m.out.counts, m.out.displs, type, m.receive[1], m.in.counts,
                       m.in.displs, type, sides->comm, MPI_INFO_NULL, &requests[3]);
    MPI_Alltoallw_init(m.send, m.out.counts, m.out.byte_displs, m.out.types, m.receive[2],
                       m.in.counts, m.in.byte_displs, m.in.types, sides->comm, MPI_INFO_NULL,
                       &requests[4]);
    MPI_Barrier_init(sides->comm, MPI_INFO_NULL, &requests[5]);
    for (int i = 0; i < 2; i++) {
        MPI_Startall(MOVES + 1, requests);
        MPI_Waitall(MOVES + 1, requests, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < MOVES + 1; i++) {
        MPI_Request_free(&requests[i]);
    }
    end_moves(sides, &m, count);
}

void test_forms(sides_t* sides, int count) {
    nonblocking(sides, count);
    persistent(sides, count);
}
