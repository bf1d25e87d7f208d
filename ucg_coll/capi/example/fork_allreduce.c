/*
 * An allreduce among N forked processes, without MPI: the bootstrap is a few bytes of shared
 * memory. Usage: fork_allreduce [ranks]
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucg/ucg_calls.h>
#include <unistd.h>

enum { MAX_RANKS = 64, MAX_BYTES = 65536 };

/* What the processes share before UCG connects them: room for one contribution per rank. */
struct board {
    atomic_uint arrived;
    atomic_uint left;
    char slots[MAX_RANKS][MAX_BYTES];
};

struct rank_info {
    struct board* board;
    unsigned rank;
    unsigned size;
};

/* Each counter rises by the number of ranks per allgather; a rank waits for its round to be full.
 */
static void meet(atomic_uint* counter, unsigned size) {
    unsigned round = atomic_fetch_add(counter, 1) / size + 1;

    while (atomic_load(counter) < round * size) {
        sched_yield();
    }
}

static int allgather(void* arg, const void* send, void* recv, size_t bytes) {
    struct rank_info* info = arg;
    unsigned i;

    if (bytes > MAX_BYTES) {
        return -1;
    }
    memcpy(info->board->slots[info->rank], send, bytes);
    meet(&info->board->arrived, info->size);
    for (i = 0; i < info->size; ++i) {
        memcpy((char*)recv + i * bytes, info->board->slots[i], bytes);
    }
    meet(&info->board->left, info->size);
    return 0;
}

/* The short form: one call, which blocks. */
static ucg_status_t sum_ranks(ucg_group_h group, unsigned rank, double* sum) {
    double value = rank;

    return ucg_allreduce(group, &value, sum, 1, UCG_DT_FLOAT64, UCG_OP_SUM);
}

/* The same as a collective that is prepared once, could be started many times, and is waited for
 * when the program has done what it does meanwhile. */
static ucg_status_t sum_ranks_prepared(ucg_group_h group, unsigned rank, double* sum) {
    double value = rank;
    ucg_coll_params_t params = ucg_allreduce_params(&value, sum, 1, UCG_DT_FLOAT64, UCG_OP_SUM);
    ucg_coll_h coll;
    ucg_status_t status, freed;

    status = ucg_coll_init(group, &params, &coll);
    if (status != UCG_OK) {
        return status;
    }
    status = ucg_coll_start(coll);
    if (status == UCG_INPROGRESS) {
        status = ucg_coll_wait(coll);
    }
    freed = ucg_coll_free(coll);
    return status != UCG_OK ? status : freed;
}

static int run_rank(struct rank_info* info) {
    ucg_group_params_t params = {
        .rank = info->rank, .size = info->size, .oob_allgather = allgather, .oob_arg = info};
    double sum = -1, prepared = -1;
    /* All on this host. */
    ucg_context_params_t context_params = {.field_mask = UCG_CONTEXT_PARAM_FIELD_LOCAL_PROCESSES |
                                                         UCG_CONTEXT_PARAM_FIELD_LOCAL_RANK,
                                           .local_processes = info->size,
                                           .local_rank = info->rank};
    double expected = info->size * (info->size - 1) / 2.0;
    ucg_context_h context;
    ucg_group_h group;
    ucg_status_t status, ended;

    status = ucg_context_create(&context_params, NULL, &context);
    if (status != UCG_OK) {
        fprintf(stderr, "context: %s\n", ucg_status_string(status));
        return 1;
    }
    status = ucg_group_create(context, &params, &group);
    if (status == UCG_OK) {
        status = sum_ranks(group, info->rank, &sum);
        if (status == UCG_OK) {
            status = sum_ranks_prepared(group, info->rank, &prepared);
        }
        ended = ucg_group_destroy(group);
        status = status != UCG_OK ? status : ended;
    }
    ended = ucg_context_destroy(context);
    status = status != UCG_OK ? status : ended;
    if (status != UCG_OK || sum != expected || prepared != expected) {
        fprintf(stderr, "rank %u: %s, sums %g and %g, expected %g\n", info->rank,
                ucg_status_string(status), sum, prepared, expected);
        return 1;
    }
    return 0;
}

/* Kills the ranks that still run: they would wait for ever for one that is gone. */
static void kill_ranks(const pid_t* ranks, long count) {
    long i;

    for (i = 0; i < count; ++i) {
        if (ranks[i] > 0) {
            kill(ranks[i], SIGKILL);
        }
    }
}

/* Waits for all ranks. Returns whether one failed. */
static int wait_for_ranks(pid_t* ranks, long count) {
    int failed = 0;
    int status;
    pid_t ended;
    long i;

    while ((ended = wait(&status)) > 0) {
        for (i = 0; i < count; ++i) {
            ranks[i] = ranks[i] == ended ? 0 : ranks[i];
        }
        if (status != 0 && !failed) {
            failed = 1;
            kill_ranks(ranks, count);
        }
    }
    return failed;
}

int main(int argc, char** argv) {
    char* end = argc > 1 ? argv[1] : "";
    long size = argc > 1 ? strtol(argv[1], &end, 10) : 4;
    struct board* board =
        mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t ranks[MAX_RANKS];
    int failed;
    int rank;

    if (size < 1 || size > MAX_RANKS || *end != '\0') {
        fprintf(stderr, "usage: fork_allreduce [ranks 1..%d]\n", MAX_RANKS);
        return 2;
    }
    if (board == MAP_FAILED) {
        perror("fork_allreduce: mmap");
        return 1;
    }
    for (rank = 0; rank < size; ++rank) {
        ranks[rank] = fork();
        if (ranks[rank] == 0) {
            struct rank_info info = {board, (unsigned)rank, (unsigned)size};
            _exit(run_rank(&info));
        }
        if (ranks[rank] < 0) {
            perror("fork_allreduce: fork");
            kill_ranks(ranks, rank);
            return 1;
        }
    }
    failed = wait_for_ranks(ranks, size);
    printf("%ld ranks: %s\n", size, failed ? "failed" : "the sum is right everywhere");
    return failed;
}
