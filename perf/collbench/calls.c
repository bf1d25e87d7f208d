#include <string.h>

#include "collbench.h"

#ifdef COLLBENCH_PERSISTENT
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define PERSISTENT(Name) MPI_##Name##_init
#else
/* This header needs mpi.h before it. */
#include <mpi-ext.h>
#define PERSISTENT(Name) MPIX_##Name##_init
#endif
#endif

/* Returns the value of all bytes or doubles in block `block` that rank `from` sends. */
static int pattern(int from, int block) {
    return (from * 7 + block * 3) % 101 + 1;
}

static int bytes_are(const char* data, int bytes, int value) {
    int i;

    for (i = 0; i < bytes; ++i) {
        if (data[i] != (char)value) {
            return 0;
        }
    }
    return 1;
}

static int doubles_are(const char* data, int bytes, double value) {
    const double* d = (const double*)data;
    int i;

    for (i = 0; i < bytes / (int)sizeof(double); ++i) {
        if (d[i] != value) {
            return 0;
        }
    }
    return 1;
}

void buffers_fill(struct buffers* b, const struct call* call, int bytes) {
    int blocks = call->send_blocks ? b->size : 1;
    int block, i;

    for (block = 0; block < blocks; ++block) {
        char* data = b->send + (size_t)block * bytes;
        if (call->reduces) {
            for (i = 0; i < bytes / (int)sizeof(double); ++i) {
                ((double*)data)[i] = pattern(b->rank, block);
            }
        } else {
            memset(data, pattern(b->rank, block), bytes);
        }
    }
    memset(b->recv, 0, (size_t)(call->recv_blocks ? b->size : 1) * bytes);
    for (i = 0; i < b->size; ++i) {
        b->counts[i] = call->reduces ? bytes / (int)sizeof(double) : bytes;
        b->displs[i] = i * bytes;
    }
}

static double sum_of_blocks(const struct buffers* b, int block, int ranks) {
    double sum = 0;
    int i;

    for (i = 0; i < ranks; ++i) {
        sum += pattern(i, block);
    }
    (void)b;
    return sum;
}

/* ---- calls: each collective blocking, nonblocking with the wait for it, and persistent */

static int doubles(int bytes) {
    return bytes / (int)sizeof(double);
}

static void* root_sends(struct buffers* b) {
    return b->rank == 0 ? b->send : b->recv;
}

#define BLOCKING_AND_NONBLOCKING(lower, Name, ...)                                                 \
    static void run_##lower(struct buffers* b, int bytes) {                                        \
        (void)bytes;                                                                               \
        MPI_##Name(__VA_ARGS__);                                                                   \
    }                                                                                              \
                                                                                                   \
    static void run_i##lower(struct buffers* b, int bytes) {                                       \
        MPI_Request request;                                                                       \
                                                                                                   \
        (void)bytes;                                                                               \
        MPI_I##lower(__VA_ARGS__, &request);                                                       \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                     \
    }

#ifdef COLLBENCH_PERSISTENT
#define CALLS(lower, Name, ...)                                                                    \
    BLOCKING_AND_NONBLOCKING(lower, Name, __VA_ARGS__)                                             \
                                                                                                   \
    static void init_##lower(struct buffers* b, int bytes) {                                       \
        (void)bytes;                                                                               \
        PERSISTENT(Name)(__VA_ARGS__, MPI_INFO_NULL, &b->request);                                 \
    }

static void run_started(struct buffers* b, int bytes) {
    (void)bytes;
    MPI_Start(&b->request);
    MPI_Wait(&b->request, MPI_STATUS_IGNORE);
}
#else
#define CALLS BLOCKING_AND_NONBLOCKING
#endif

CALLS(barrier, Barrier, b->comm)
CALLS(bcast, Bcast, root_sends(b), bytes, MPI_BYTE, 0, b->comm)
CALLS(reduce, Reduce, b->send, b->recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, 0, b->comm)
CALLS(allreduce, Allreduce, b->send, b->recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, b->comm)
CALLS(allgather, Allgather, b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, b->comm)
CALLS(allgatherv, Allgatherv, b->send, bytes, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE,
      b->comm)
CALLS(alltoall, Alltoall, b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, b->comm)
CALLS(alltoallv, Alltoallv, b->send, b->counts, b->displs, MPI_BYTE, b->recv, b->counts, b->displs,
      MPI_BYTE, b->comm)
CALLS(gather, Gather, b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, 0, b->comm)
CALLS(gatherv, Gatherv, b->send, bytes, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE, 0,
      b->comm)
CALLS(scatter, Scatter, b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, 0, b->comm)
CALLS(scatterv, Scatterv, b->send, b->counts, b->displs, MPI_BYTE, b->recv, bytes, MPI_BYTE, 0,
      b->comm)
CALLS(reduce_scatter, Reduce_scatter, b->send, b->recv, b->counts, MPI_DOUBLE, MPI_SUM, b->comm)
CALLS(reduce_scatter_block, Reduce_scatter_block, b->send, b->recv, doubles(bytes), MPI_DOUBLE,
      MPI_SUM, b->comm)
CALLS(scan, Scan, b->send, b->recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, b->comm)
CALLS(exscan, Exscan, b->send, b->recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, b->comm)

/* ---- checks: 0 = right */

static int check_nothing(struct buffers* b, int bytes) {
    (void)b;
    (void)bytes;
    return 0;
}

static int check_bcast(struct buffers* b, int bytes) {
    return b->rank != 0 && !bytes_are(b->recv, bytes, pattern(0, 0));
}

static int check_reduce(struct buffers* b, int bytes) {
    return b->rank == 0 && !doubles_are(b->recv, bytes, sum_of_blocks(b, 0, b->size));
}

static int check_allreduce(struct buffers* b, int bytes) {
    return !doubles_are(b->recv, bytes, sum_of_blocks(b, 0, b->size));
}

static int check_allgather(struct buffers* b, int bytes) {
    int i;

    for (i = 0; i < b->size; ++i) {
        if (!bytes_are(b->recv + (size_t)i * bytes, bytes, pattern(i, 0))) {
            return 1;
        }
    }
    return 0;
}

static int check_gather(struct buffers* b, int bytes) {
    return b->rank == 0 ? check_allgather(b, bytes) : 0;
}

static int check_alltoall(struct buffers* b, int bytes) {
    int i;

    for (i = 0; i < b->size; ++i) {
        if (!bytes_are(b->recv + (size_t)i * bytes, bytes, pattern(i, b->rank))) {
            return 1;
        }
    }
    return 0;
}

static int check_scatter(struct buffers* b, int bytes) {
    return !bytes_are(b->recv, bytes, pattern(0, b->rank));
}

static int check_reduce_scatter(struct buffers* b, int bytes) {
    return !doubles_are(b->recv, bytes, sum_of_blocks(b, b->rank, b->size));
}

static int check_scan(struct buffers* b, int bytes) {
    return !doubles_are(b->recv, bytes, sum_of_blocks(b, 0, b->rank + 1));
}

static int check_exscan(struct buffers* b, int bytes) {
    return b->rank > 0 && !doubles_are(b->recv, bytes, sum_of_blocks(b, 0, b->rank));
}

/* X(name, reduces, has_size, send_blocks, recv_blocks, check) */
#define COLLECTIVES(X)                                                                             \
    X(barrier, 0, 0, 0, 0, check_nothing)                                                          \
    X(bcast, 0, 1, 0, 0, check_bcast)                                                              \
    X(reduce, 1, 1, 0, 0, check_reduce)                                                            \
    X(allreduce, 1, 1, 0, 0, check_allreduce)                                                      \
    X(allgather, 0, 1, 0, 1, check_allgather)                                                      \
    X(allgatherv, 0, 1, 0, 1, check_allgather)                                                     \
    X(alltoall, 0, 1, 1, 1, check_alltoall)                                                        \
    X(alltoallv, 0, 1, 1, 1, check_alltoall)                                                       \
    X(gather, 0, 1, 0, 1, check_gather)                                                            \
    X(gatherv, 0, 1, 0, 1, check_gather)                                                           \
    X(scatter, 0, 1, 1, 0, check_scatter)                                                          \
    X(scatterv, 0, 1, 1, 0, check_scatter)                                                         \
    X(reduce_scatter, 1, 1, 1, 0, check_reduce_scatter)                                            \
    X(reduce_scatter_block, 1, 1, 1, 0, check_reduce_scatter)                                      \
    X(scan, 1, 1, 0, 0, check_scan)                                                                \
    X(exscan, 1, 1, 0, 0, check_exscan)

#define BLOCKING_ROW(name, reduces, has_size, send_blocks, recv_blocks, check)                     \
    {#name, reduces, has_size, send_blocks, recv_blocks, run_##name, check, FORM_BLOCKING, NULL},
#define NONBLOCKING_ROW(name, reduces, has_size, send_blocks, recv_blocks, check)                  \
    {"i" #name,   reduces, has_size,         send_blocks, recv_blocks,                             \
     run_i##name, check,   FORM_NONBLOCKING, NULL},
#define PERSISTENT_ROW(name, reduces, has_size, send_blocks, recv_blocks, check)                   \
    {#name "_init", reduces, has_size,        send_blocks, recv_blocks,                            \
     run_started,   check,   FORM_PERSISTENT, init_##name},

const struct call collbench_calls[] = {COLLECTIVES(BLOCKING_ROW) COLLECTIVES(NONBLOCKING_ROW)
#ifdef COLLBENCH_PERSISTENT
                                           COLLECTIVES(PERSISTENT_ROW)
#endif
};
const int collbench_call_count = sizeof(collbench_calls) / sizeof(collbench_calls[0]);

const char* const collbench_form_names[] = {
    [FORM_BLOCKING] = "blocking",
    [FORM_NONBLOCKING] = "nonblocking",
    [FORM_PERSISTENT] = "persistent",
};
