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
    MODE_SEP, /* A barrier of our own before each operation, not timed. */
    MODE_CYC, /* The cycle of that barrier and the operation, timed together: the one to compare by
                 when ranks outnumber processors. */
    MODE_MPI, /* The same with MPI_Barrier, which a library serves like the operation. */
    MODE_LATE /* Rank 0 comes late: the processor time that others spend on waiting. */
};

/* ---- calls.c: the collectives */

/* Open MPI has had persistent collectives as an extension before MPI had them. */
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
#define COLLBENCH_PERSISTENT
#endif

/* Buffers of one cell, sized for the largest. */
struct buffers {
    char* send;
    char* recv;
    int*
        counts; /* v-forms: of every block alike, in bytes, or in doubles where they are reduced. */
    int* displs;
    int rank;
    int size;
    MPI_Comm comm;
    MPI_Request request; /* Of a persistent call. */
};

/* Blocking ones are measured when nothing else is asked for. */
enum form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT };
extern const char* const collbench_form_names[];

/* `bytes`: the whole vector for bcast, reduce, allreduce, scan and exscan; one rank's block for the
 * others. */
struct call {
    const char* name;
    int reduces;     /* Sizes are whole doubles. */
    int has_size;    /* Barrier has none. */
    int send_blocks; /* The send buffer holds one block per rank ... */
    int recv_blocks; /* ... or the receive buffer does. */
    void (*run)(struct buffers* b, int bytes);
    int (*check)(struct buffers* b, int bytes); /* 0 = right. */
    enum form form;
    void (*init)(struct buffers* b, int bytes); /* Of a persistent call: makes the request. */
};

extern const struct call collbench_calls[];
extern const int collbench_call_count;

void buffers_fill(struct buffers* b, const struct call* call, int bytes);

/* ---- sync.c: what the ranks share outside of MPI's collectives */

/* A yielding barrier and a cache-line ping-pong in a shared window; on several hosts a barrier by
 * messages, and no ping-pong. */
struct sync;
struct sync* sync_create(MPI_Comm comm);
void sync_free(struct sync* s);
/* Spins, or yields the processor between looks when `yield` is set; on several hosts waits as the
 * library's messages do. */
void sync_barrier(struct sync* s, int yield);
/* One way, in nanoseconds, between ranks 0 and 1: tells how far apart two processors are now. Where
 * the two ranks may run on several they go to the first and the second of these for as long, and
 * the other ranks sleep. Not a number on several hosts and of other ranks. */
double sync_ping_pong_ns(struct sync* s);

/* ---- timing.c: repetitions of one cell and their statistics */

enum { MAX_REPETITIONS = 1000 };

struct cell {
    const struct call* call;
    int bytes;
    struct buffers* buffers;
    struct sync* sync;
    enum mode mode;
    int yield; /* Ranks outnumber the processors. */
};

/* In seconds, of one operation; the same on all ranks. */
struct timing {
    double median; /* Of the repetitions: the slowest rank's mean over the iterations of each. */
    double least;
    double bare;  /* Cycles: the barrier without an operation, median ... */
    double alone; /* ... and the operation: the median difference of neighbouring repetitions. */
    double ping_before_ns, ping_after_ns;
};

/* `seconds`: for all repetitions together. REQUIRES: 1 <= repetitions <= MAX_REPETITIONS. */
void time_cell(const struct cell* cell, int repetitions, double seconds, struct timing* result);

#endif
