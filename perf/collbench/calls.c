#include <string.h>

#include "collbench.h"

/* Block j that rank i sends holds pattern(i, j) everywhere, as bytes or as doubles. */
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
        b->counts[i] = bytes;
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

/* ---- calls */

static void run_barrier(struct buffers* b, int bytes) {
    (void)bytes;
    MPI_Barrier(b->comm);
}

static void run_bcast(struct buffers* b, int bytes) {
    MPI_Bcast(b->rank == 0 ? b->send : b->recv, bytes, MPI_BYTE, 0, b->comm);
}

static void run_reduce(struct buffers* b, int bytes) {
    MPI_Reduce(b->send, b->recv, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, 0, b->comm);
}

static void run_allreduce(struct buffers* b, int bytes) {
    MPI_Allreduce(b->send, b->recv, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, b->comm);
}

static void run_allgather(struct buffers* b, int bytes) {
    MPI_Allgather(b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, b->comm);
}

static void run_allgatherv(struct buffers* b, int bytes) {
    MPI_Allgatherv(b->send, bytes, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE, b->comm);
}

static void run_alltoall(struct buffers* b, int bytes) {
    MPI_Alltoall(b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, b->comm);
}

static void run_alltoallv(struct buffers* b, int bytes) {
    (void)bytes;
    MPI_Alltoallv(b->send, b->counts, b->displs, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE,
                  b->comm);
}

static void run_gather(struct buffers* b, int bytes) {
    MPI_Gather(b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, 0, b->comm);
}

static void run_gatherv(struct buffers* b, int bytes) {
    MPI_Gatherv(b->send, bytes, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE, 0, b->comm);
}

static void run_scatter(struct buffers* b, int bytes) {
    MPI_Scatter(b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, 0, b->comm);
}

static void run_scatterv(struct buffers* b, int bytes) {
    MPI_Scatterv(b->send, b->counts, b->displs, MPI_BYTE, b->recv, bytes, MPI_BYTE, 0, b->comm);
}

/* The counts of reduce_scatter are in elements; they are set here because the others' are in bytes.
 */
static void run_reduce_scatter(struct buffers* b, int bytes) {
    int i;

    for (i = 0; i < b->size; ++i) {
        b->counts[i] = bytes / (int)sizeof(double);
    }
    MPI_Reduce_scatter(b->send, b->recv, b->counts, MPI_DOUBLE, MPI_SUM, b->comm);
}

static void run_reduce_scatter_block(struct buffers* b, int bytes) {
    MPI_Reduce_scatter_block(b->send, b->recv, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM,
                             b->comm);
}

static void run_scan(struct buffers* b, int bytes) {
    MPI_Scan(b->send, b->recv, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, b->comm);
}

static void run_exscan(struct buffers* b, int bytes) {
    MPI_Exscan(b->send, b->recv, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, b->comm);
}

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

const struct call collbench_calls[] = {
    /* name, reduces, has_size, send_blocks, recv_blocks */
    {"barrier", 0, 0, 0, 0, run_barrier, check_nothing, FORM_BLOCKING, NULL},
    {"bcast", 0, 1, 0, 0, run_bcast, check_bcast, FORM_BLOCKING, NULL},
    {"reduce", 1, 1, 0, 0, run_reduce, check_reduce, FORM_BLOCKING, NULL},
    {"allreduce", 1, 1, 0, 0, run_allreduce, check_allreduce, FORM_BLOCKING, NULL},
    {"allgather", 0, 1, 0, 1, run_allgather, check_allgather, FORM_BLOCKING, NULL},
    {"allgatherv", 0, 1, 0, 1, run_allgatherv, check_allgather, FORM_BLOCKING, NULL},
    {"alltoall", 0, 1, 1, 1, run_alltoall, check_alltoall, FORM_BLOCKING, NULL},
    {"alltoallv", 0, 1, 1, 1, run_alltoallv, check_alltoall, FORM_BLOCKING, NULL},
    {"gather", 0, 1, 0, 1, run_gather, check_gather, FORM_BLOCKING, NULL},
    {"gatherv", 0, 1, 0, 1, run_gatherv, check_gather, FORM_BLOCKING, NULL},
    {"scatter", 0, 1, 1, 0, run_scatter, check_scatter, FORM_BLOCKING, NULL},
    {"scatterv", 0, 1, 1, 0, run_scatterv, check_scatter, FORM_BLOCKING, NULL},
    {"reduce_scatter", 1, 1, 1, 0, run_reduce_scatter, check_reduce_scatter, FORM_BLOCKING, NULL},
    {"reduce_scatter_block", 1, 1, 1, 0, run_reduce_scatter_block, check_reduce_scatter,
     FORM_BLOCKING, NULL},
    {"scan", 1, 1, 0, 0, run_scan, check_scan, FORM_BLOCKING, NULL},
    {"exscan", 1, 1, 0, 0, run_exscan, check_exscan, FORM_BLOCKING, NULL},
    {"ibarrier", 0, 0, 0, 0, run_ibarrier, check_nothing, FORM_NONBLOCKING, NULL},
    {"ibcast", 0, 1, 0, 0, run_ibcast, check_bcast, FORM_NONBLOCKING, NULL},
    {"iallreduce", 1, 1, 0, 0, run_iallreduce, check_allreduce, FORM_NONBLOCKING, NULL},
    {"iallgather", 0, 1, 0, 1, run_iallgather, check_allgather, FORM_NONBLOCKING, NULL},
    {"ialltoall", 0, 1, 1, 1, run_ialltoall, check_alltoall, FORM_NONBLOCKING, NULL},
#ifdef COLLBENCH_PERSISTENT
    {"barrier_init", 0, 0, 0, 0, run_started, check_nothing, FORM_PERSISTENT, init_barrier},
    {"bcast_init", 0, 1, 0, 0, run_started, check_bcast, FORM_PERSISTENT, init_bcast},
    {"allreduce_init", 1, 1, 0, 0, run_started, check_allreduce, FORM_PERSISTENT, init_allreduce},
    {"allgather_init", 0, 1, 0, 1, run_started, check_allgather, FORM_PERSISTENT, init_allgather},
    {"alltoall_init", 0, 1, 1, 1, run_started, check_alltoall, FORM_PERSISTENT, init_alltoall},
#endif
};
const int collbench_call_count = sizeof(collbench_calls) / sizeof(collbench_calls[0]);
