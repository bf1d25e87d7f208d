/*
 * Sums vectors whose sum depends on the order, over and over, in every way of calling: libucg's
 * blocking and nonblocking calls, and MPI_Allreduce of whichever component serves it. Open MPI
 * starts the ranks and connects libucg. Rank 0 prints one line for each way:
 *
 *   ucg_coll_run 10 runs, 12 ranks on 3 hosts: 0123456789abcdef
 *
 * with a hash of the bits of all results. Exits with 1 if two runs or two ranks differ.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucg/ucg.h>

#include <mpi.h>

enum { COUNT = 1000, RUNS = 10, IN_FLIGHT = 3 };

struct bench {
    int rank;
    int size;
    ucg_group_h group;
    double input[COUNT];
    double results[RUNS][COUNT];
};

static void give_up(const char* what, ucg_status_t status) {
    fprintf(stderr, "one_pattern: %s: %s\n", what, ucg_status_string(status));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The values have magnitudes from 2^-30 to 2^30 and both signs, so a sum in another order has
 * other bits. */
static double value(int rank, int element) {
    uint64_t bits = ((uint64_t)rank << 32) + (uint64_t)element + 1;
    for (int i = 0; i < 3; i++) {
        bits = (bits ^ (bits >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    }
    const double mantissa = 1 + (double)(bits >> 12) / (double)(UINT64_C(1) << 52);
    return ldexp(bits & 1 ? mantissa : -mantissa, (int)(bits >> 1 & 63) % 61 - 30);
}

static void fill(struct bench* bench) {
    int differ = 0;
    for (int i = 0; i < COUNT; i++) {
        double up = 0;
        double down = 0;
        bench->input[i] = value(bench->rank, i);
        for (int rank = 0; rank < bench->size; rank++) {
            up += value(rank, i);
            down += value(bench->size - 1 - rank, i);
        }
        differ += memcmp(&up, &down, sizeof up) != 0;
    }
    if (differ < COUNT / 10) {
        fprintf(stderr, "one_pattern: only %d sums depend on the order\n", differ);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int allgather(void* arg, const void* send, void* recv, size_t bytes) {
    (void)arg;
    return MPI_Allgather(send, (int)bytes, MPI_BYTE, recv, (int)bytes, MPI_BYTE, MPI_COMM_WORLD) !=
           MPI_SUCCESS;
}

static ucg_coll_params_t params_of(struct bench* bench, int run) {
    const ucg_coll_params_t params = {.field_mask = UCG_COLL_PARAM_FIELD_REDUCE,
                                      .type = UCG_COLL_ALLREDUCE,
                                      .send_buffer = bench->input,
                                      .recv_buffer = bench->results[run],
                                      .count = COUNT,
                                      .element_bytes = sizeof(double),
                                      .datatype = UCG_DT_FLOAT64,
                                      .op = UCG_OP_SUM};
    return params;
}

static void blocking(struct bench* bench) {
    for (int run = 0; run < RUNS; run++) {
        const ucg_coll_params_t params = params_of(bench, run);
        const ucg_status_t status = ucg_coll_run(bench->group, &params);
        if (status != UCG_OK) {
            give_up("ucg_coll_run", status);
        }
    }
}

/* Runs several at a time. */
static void nonblocking(struct bench* bench) {
    for (int first = 0; first < RUNS; first += IN_FLIGHT) {
        ucg_coll_h colls[IN_FLIGHT];
        const int count = RUNS - first < IN_FLIGHT ? RUNS - first : IN_FLIGHT;
        for (int i = 0; i < count; i++) {
            const ucg_coll_params_t params = params_of(bench, first + i);
            ucg_status_t status = ucg_coll_init(bench->group, &params, &colls[i]);
            status = status == UCG_OK ? ucg_coll_start(colls[i]) : status;
            if (status != UCG_OK && status != UCG_INPROGRESS) {
                give_up("ucg_coll_start", status);
            }
        }
        for (int i = count; i-- > 0;) {
            const ucg_status_t status = ucg_coll_wait(colls[i]);
            if (status != UCG_OK) {
                give_up("ucg_coll_wait", status);
            }
            ucg_coll_free(colls[i]);
        }
    }
}

static void by_mpi(struct bench* bench) {
    for (int run = 0; run < RUNS; run++) {
        MPI_Allreduce(bench->input, bench->results[run], COUNT, MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
    }
}

static uint64_t hash_of(const double* values) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* The hash is FNV-1a. */
    unsigned char bytes[COUNT * sizeof(double)];
    memcpy(bytes, values, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Returns how many runs, of this rank or of other ranks, differ from rank 0's first run. */
static int report(struct bench* bench, const char* way, unsigned hosts) {
    const uint64_t own = hash_of(bench->results[0]);
    uint64_t theirs = own;
    int different = 0;
    int all = 0;
    MPI_Bcast(&theirs, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (int run = 0; run < RUNS; run++) {
        different += hash_of(bench->results[run]) != theirs;
    }
    MPI_Reduce(&different, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (bench->rank == 0) {
        printf("%s %d runs, %d ranks on %u hosts: %016" PRIx64 "\n", way, RUNS, bench->size, hosts,
               own);
        if (all != 0) {
            fprintf(stderr, "one_pattern: %s: %d results differ from rank 0's first\n", way, all);
        }
    }
    memset(bench->results, 0, sizeof bench->results);
    return all;
}

int main(int argc, char** argv) {
    static struct bench bench;
    ucg_context_h context;
    ucg_group_attr_t attributes = {.field_mask = UCG_GROUP_ATTR_FIELD_PLACES};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.size);
    fill(&bench);
    const ucg_group_params_t params = {.rank = (uint32_t)bench.rank,
                                       .size = (uint32_t)bench.size,
                                       .oob_allgather = allgather,
                                       .oob_arg = NULL};
    ucg_status_t status = ucg_context_create(NULL, NULL, &context);
    status = status == UCG_OK ? ucg_group_create(context, &params, &bench.group) : status;
    if (status != UCG_OK) {
        give_up("cannot connect", status);
    }
    ucg_group_query(bench.group, &attributes);
    blocking(&bench);
    int wrong = report(&bench, "ucg_coll_run", attributes.host_count);
    nonblocking(&bench);
    wrong += report(&bench, "ucg_coll_start", attributes.host_count);
    by_mpi(&bench);
    wrong += report(&bench, "MPI_Allreduce", attributes.host_count);
    ucg_group_destroy(bench.group);
    ucg_context_destroy(context);
    MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong != 0;
}
