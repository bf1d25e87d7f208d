#include <limits.h>
#include <string.h>

#include "collbench.h"

/* Returns the value of all bytes or doubles in block `block` that rank `from` sends in a round. */
static int pattern(const struct buffers* b, int from, int block) {
    return (from * 7 + block * 3 + b->round * 13) % 101 + 1;
}

size_t block_count(const struct buffers* b, enum blocks blocks) {
    return blocks == ONE_BLOCK ? 1 : blocks == TWO_BLOCKS ? 2 : (size_t)b->size;
}

/* An operation in place finds its input where it leaves its result. */
static enum blocks recv_blocks(const struct buffers* b, const struct call* call) {
    return b->in_place && !has(call, ROOTED) && call->send_blocks > call->recv_blocks
               ? call->send_blocks
               : call->recv_blocks;
}

size_t send_bytes(const struct buffers* b, const struct call* call, int bytes) {
    return block_count(b, call->send_blocks) * bytes;
}

size_t recv_bytes(const struct buffers* b, const struct call* call, int bytes) {
    return block_count(b, recv_blocks(b, call)) * bytes;
}

int displacements_fit(const struct buffers* b, const struct call* call, int bytes) {
    const size_t blocks = block_count(b, call->send_blocks > call->recv_blocks ? call->send_blocks
                                                                               : call->recv_blocks);

    return !has(call, DISPLACED) || (blocks - 1) * bytes <= INT_MAX;
}

static void fill_block(const struct call* call, char* data, int bytes, int value) {
    int i;

    if (has(call, REDUCES)) {
        for (i = 0; i < doubles(bytes); ++i) {
            ((double*)data)[i] = value;
        }
    } else {
        memset(data, value, bytes);
    }
}

static void fill_blocks(const struct buffers* b, const struct call* call, int bytes, char* data) {
    const int blocks = (int)block_count(b, call->send_blocks);
    int block;

    for (block = 0; block < blocks; ++block) {
        fill_block(call, data + (size_t)block * bytes, bytes, pattern(b, b->rank, block));
    }
}

static void fill_in_place(const struct buffers* b, const struct call* call, int bytes) {
    if (has(call, ROOTED) && call->send_blocks != ONE_BLOCK) {
        return; /* A scatter's root keeps its block. */
    }
    /* Ranks that gather have their own block among the others'. */
    fill_blocks(b, call, bytes,
                b->recv + (call->recv_blocks > call->send_blocks ? (size_t)b->rank * bytes : 0));
}

void buffers_fill(struct buffers* b, const struct call* call, int bytes) {
    const int blocks = b->size < 2 ? 2 : b->size;
    int i;

    fill_blocks(b, call, bytes, b->send);
    memset(b->recv, 0, recv_bytes(b, call, bytes));
    if (b->in_place) {
        fill_in_place(b, call, bytes);
    }
    for (i = 0; i < blocks; ++i) {
        b->counts[i] = has(call, REDUCES) ? doubles(bytes) : bytes;
        b->displs[i] = displacements_fit(b, call, bytes) ? i * bytes : 0;
        b->byte_displs[i] = (MPI_Aint)i * bytes;
        b->types[i] = MPI_BYTE;
    }
}

/* ---- checks: 0 = right */

/* Returns whether `count` elements of `bytes` bytes each are all equal to `value`. */
static int all_are(const char* data, size_t bytes, size_t count, const void* value) {
    return memcmp(data, value, bytes) == 0 && memcmp(data, data + bytes, (count - 1) * bytes) == 0;
}

static int bytes_are(const char* data, int bytes, int value) {
    const char byte = (char)value;

    return all_are(data, 1, bytes, &byte);
}

static int doubles_are(const char* data, int bytes, double value) {
    return all_are(data, sizeof(value), doubles(bytes), &value);
}

static double sum_of_blocks(const struct buffers* b, int block, int ranks) {
    double sum = 0;
    int i;

    for (i = 0; i < ranks; ++i) {
        sum += pattern(b, i, block);
    }
    return sum;
}

int check_nothing(const struct buffers* b, int bytes) {
    (void)b;
    (void)bytes;
    return 0;
}

int check_bcast(const struct buffers* b, int bytes) {
    return b->rank != b->root && !bytes_are(b->recv, bytes, pattern(b, b->root, 0));
}

int check_reduce(const struct buffers* b, int bytes) {
    return b->rank == b->root && check_allreduce(b, bytes);
}

int check_allreduce(const struct buffers* b, int bytes) {
    return !doubles_are(b->recv, bytes, sum_of_blocks(b, 0, b->size));
}

int check_allgather(const struct buffers* b, int bytes) {
    int i;

    for (i = 0; i < b->size; ++i) {
        if (!bytes_are(b->recv + (size_t)i * bytes, bytes, pattern(b, i, 0))) {
            return 1;
        }
    }
    return 0;
}

int check_gather(const struct buffers* b, int bytes) {
    return b->rank == b->root && check_allgather(b, bytes);
}

int check_alltoall(const struct buffers* b, int bytes) {
    int i;

    for (i = 0; i < b->size; ++i) {
        if (!bytes_are(b->recv + (size_t)i * bytes, bytes, pattern(b, i, b->rank))) {
            return 1;
        }
    }
    return 0;
}

int check_scatter(const struct buffers* b, int bytes) {
    if (b->in_place && b->rank == b->root) {
        return 0;
    }
    return !bytes_are(b->recv, bytes, pattern(b, b->root, b->rank));
}

int check_reduce_scatter(const struct buffers* b, int bytes) {
    return !doubles_are(b->recv, bytes, sum_of_blocks(b, b->rank, b->size));
}

int check_scan(const struct buffers* b, int bytes) {
    return !doubles_are(b->recv, bytes, sum_of_blocks(b, 0, b->rank + 1));
}

int check_exscan(const struct buffers* b, int bytes) {
    return b->rank > 0 && !doubles_are(b->recv, bytes, sum_of_blocks(b, 0, b->rank));
}

/* Block 0 goes to the left, block 1 to the right, and comes from there. */
static int check_neighbors(const struct buffers* b, int bytes, int to_left, int to_right) {
    const int left = (b->rank + b->size - 1) % b->size;
    const int right = (b->rank + 1) % b->size;
    const int first = pattern(b, left, to_right);
    const int second = pattern(b, right, to_left);
    /* One rank is both neighbours: libraries differ in which of its blocks comes first. */
    const int swapped = left == right && bytes_are(b->recv, bytes, second);

    return !bytes_are(b->recv, bytes, swapped ? second : first) ||
           !bytes_are(b->recv + bytes, bytes, swapped ? first : second);
}

int check_neighbor_allgather(const struct buffers* b, int bytes) {
    return check_neighbors(b, bytes, 0, 0);
}

int check_neighbor_alltoall(const struct buffers* b, int bytes) {
    return check_neighbors(b, bytes, 0, 1);
}

MPI_Comm make_ring(const struct buffers* b, enum form form) {
    const int neighbors[] = {(b->rank + b->size - 1) % b->size, (b->rank + 1) % b->size};
    const int weights[] = {1, 1};
    const int periodic = 1;
    MPI_Comm ring;

    if (form == FORM_BLOCKING) {
        MPI_Cart_create(b->comm, 1, &b->size, &periodic, 0, &ring);
    } else {
        MPI_Dist_graph_create_adjacent(b->comm, 2, neighbors, weights, 2, neighbors, weights,
                                       MPI_INFO_NULL, 0, &ring);
    }
    return ring;
}
