/*
 * collbench: times MPI collectives. Pure MPI: the same binary measures every library and component.
 */
#ifndef COLLBENCH_H_
#define COLLBENCH_H_

#include <stddef.h>

#include <mpi.h>

/* How repetitions follow one another. */
enum mode {
    MODE_B2B, /* Back to back: rooted operations may run ahead. */
    MODE_SEP, /* A barrier of this program's own before each operation, not timed. */
    MODE_CYC, /* The cycle of that barrier and the operation, timed together: the one to compare by
                 when ranks outnumber processors. */
    MODE_MPI, /* Like MODE_CYC with MPI_Barrier, which the library serves, too. */
    MODE_LATE /* Rank 0 comes late; measures the others' CPU time while they wait. */
};

/* ---- buffers.c: what is sent, and whether it arrives */

/* Open MPI has had persistent collectives as an extension before MPI had them. */
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
#define COLLBENCH_PERSISTENT
#endif

/* The form of a call. */
enum form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT };
extern const char* const collbench_form_names[];

/* The buffers of one cell, large enough for the largest. */
struct buffers {
    char* send;
    char* recv;
    void* input; /* The send buffer of collectives without a root, or MPI_IN_PLACE. */
    size_t send_length;
    size_t recv_length;
    int*
        counts; /* v-forms: of every block alike, in bytes, or in doubles where they are reduced. */
    int* displs;
    MPI_Aint* byte_displs; /* The forms with w. */
    MPI_Datatype* types;
    int rank;
    int size;
    int root;
    int in_place; /* Whether MPI_IN_PLACE is given instead of a buffer. */
    int round;    /* What is sent differs from round to round. */
    MPI_Comm comm;
    MPI_Comm ring;       /* Each rank's neighbours are the ranks before and after it. */
    MPI_Request request; /* The request of a persistent call. */
};

/* How many blocks a buffer holds: one, one for each neighbour, or one for each rank. */
enum blocks { ONE_BLOCK, TWO_BLOCKS, ALL_BLOCKS };

enum trait {
    NO_SIZE = 1,
    REDUCES = 2,    /* Sizes are whole doubles. */
    ROOTED = 4,     /* It has a root. */
    IN_PLACE = 8,   /* It may be called with MPI_IN_PLACE. */
    DISPLACED = 16, /* It has displacements, which are of type int. */
    RING = 32,      /* It runs on the ring. */
    OTHER = 64      /* It is not selected by its form, but with others of its kind. */
};

/* One collective. `bytes` is the length of the whole vector for bcast, reduce, allreduce, scan
 * and exscan, and of one rank's block for the others. */
struct call {
    const char* name;
    int traits; /* Of enum trait. */
    enum blocks send_blocks;
    enum blocks recv_blocks;
    void (*run)(struct buffers* b, int bytes);
    int (*check)(const struct buffers* b, int bytes); /* Returns 0 if the result is right. */
    enum form form;
    /* Makes the request of a persistent call; NULL for others. */
    void (*init)(struct buffers* b, int bytes);
};

static inline int has(const struct call* call, enum trait trait) {
    return (call->traits & trait) != 0;
}

size_t block_count(const struct buffers* b, enum blocks blocks);
/* Returns the number of doubles in so many bytes, which is timed with the calls. */
static inline int doubles(int bytes) {
    return bytes / (int)sizeof(double);
}
/* The bytes of memory that the call needs behind `send` and `recv`. */
size_t send_bytes(const struct buffers* b, const struct call* call, int bytes);
size_t recv_bytes(const struct buffers* b, const struct call* call, int bytes);
/* Returns whether displacements of blocks of this length are numbers of type int. */
int displacements_fit(const struct buffers* b, const struct call* call, int bytes);
/* Makes what the rank sends in b->round, and clears what it receives. */
void buffers_fill(struct buffers* b, const struct call* call, int bytes);
/* Returns a communicator for neighbourhood collectives of that form: a grid of one dimension for
 * blocking ones, of which Open MPI's graphs keep some from components, and a graph for the others,
 * with which Open MPI 4.1 has faults on grids. Collective. */
MPI_Comm make_ring(const struct buffers* b, enum form form);

int check_nothing(const struct buffers* b, int bytes);
int check_bcast(const struct buffers* b, int bytes);
int check_reduce(const struct buffers* b, int bytes);
int check_allreduce(const struct buffers* b, int bytes);
int check_allgather(const struct buffers* b, int bytes);
int check_alltoall(const struct buffers* b, int bytes);
int check_gather(const struct buffers* b, int bytes);
int check_scatter(const struct buffers* b, int bytes);
int check_reduce_scatter(const struct buffers* b, int bytes);
int check_scan(const struct buffers* b, int bytes);
int check_exscan(const struct buffers* b, int bytes);
int check_neighbor_allgather(const struct buffers* b, int bytes);
int check_neighbor_alltoall(const struct buffers* b, int bytes);

/* ---- calls.c: the collectives */

extern const struct call collbench_calls[];
extern const int collbench_call_count;

/* ---- sync.c: what the ranks share outside of MPI's collectives */

/* A yielding barrier and a ping-pong of a cache line in a shared window. On several hosts the
 * barrier works by messages, and there is no ping-pong. */
struct sync;
struct sync* sync_create(MPI_Comm comm);
void sync_free(struct sync* s);
/* Waits for all ranks. Spins, or yields the processor between polls if `yield` is set. On
 * several hosts it waits as the library's messages do. */
void sync_barrier(struct sync* s, int yield);
/* Returns the time of a cache line one way between ranks 0 and 1, in nanoseconds, which shows
 * how far apart their two processors are now. If the two ranks may run on several processors,
 * they move to the first and the second of them meanwhile, and the other ranks sleep. NaN on
 * several hosts and on other ranks. */
double sync_ping_pong_ns(struct sync* s);

/* ---- timing.c: repetitions of one cell and their statistics */

enum { MAX_REPETITIONS = 1000, CACHE_LINE = 64 };

struct cell {
    const struct call* call;
    int bytes;
    struct buffers* buffers;
    struct sync* sync;
    enum mode mode;
    int rotates;      /* Whether the root is another rank each time. */
    int writes_input; /* Whether ranks write what they send anew before each operation. */
    int yield;        /* Whether ranks outnumber the processors. */
};

/* Times of one operation in seconds; the same on all ranks. */
struct timing {
    double median; /* Over repetitions, of the slowest rank's mean over the iterations. */
    double least;
    double bare;  /* With cycles: the median time of the barrier without an operation. */
    double alone; /* With cycles: the operation, as the median difference of neighbours. */
    double ping_before_ns, ping_after_ns;
};

/* Measures one cell for about `seconds` in all. REQUIRES: 1 <= repetitions <= MAX_REPETITIONS. */
void time_cell(const struct cell* cell, int repetitions, double seconds, struct timing* result);

#endif
