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

/* ---- calls.c: the collectives */

/* Open MPI has had persistent collectives as an extension before MPI had them. */
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
#define COLLBENCH_PERSISTENT
#endif

/* The buffers of one cell, large enough for the largest block. */
struct buffers {
    char* send;
    char* recv;
    int*
        counts; /* v-forms: of every block alike, in bytes, or in doubles where they are reduced. */
    int* displs;
    int rank;
    int size;
    MPI_Comm comm;
    MPI_Request request; /* The request of a persistent call. */
};

/* The form of a call. Blocking calls are the default. */
enum form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT };
extern const char* const collbench_form_names[];

/* One collective. `bytes` is the length of the whole vector for bcast, reduce, allreduce, scan
 * and exscan, and of one rank's block for the others. */
struct call {
    const char* name;
    int reduces;     /* Whether it reduces: sizes are whole doubles. */
    int has_size;    /* Whether it has a size: all but the barrier. */
    int send_blocks; /* Whether the send buffer holds one block per rank. */
    int recv_blocks; /* Whether the receive buffer does. */
    void (*run)(struct buffers* b, int bytes);
    int (*check)(struct buffers* b, int bytes); /* Returns 0 if the result is right. */
    enum form form;
    void (*init)(struct buffers* b, int bytes); /* Makes the request of a persistent call. */
};

extern const struct call collbench_calls[];
extern const int collbench_call_count;

void buffers_fill(struct buffers* b, const struct call* call, int bytes);

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
