/*
 * alltoall_blocks: times MPI_Alltoall in blocks as Faraj and Yuan do (2005, section 6). A block is
 * some calls in a row after a barrier; its time is that of the slowest rank, per call. With a seed
 * it times MPI_Alltoallv with messages of 0 to twice as many bytes. One call of the first size
 * comes before all blocks, since it makes connections. For each block rank 0 prints a line with the
 * bytes, the microseconds of a call, and the processor seconds that all ranks used; at the end it
 * prints "ok" or "WRONG".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <mpi.h>

#include "perf/option_value.h"

enum { SIZES_MAX = 64 };

struct options {
    long sizes[SIZES_MAX];
    int size_count;
    int calls; /* Calls in a block. */
    int blocks;
    long seed; /* 0: MPI_Alltoall. */
};

/* The data of one rank. */
struct exchange {
    int rank;
    int ranks;
    int* counts[2]; /* Of the sent and the received blocks. */
    int* offsets[2];
    unsigned char* in;
    unsigned char* out;
};

static int parse(struct options* o, int argc, char** argv, int say) {
    char* word;

    o->size_count = 0;
    if (argc != 4 && argc != 5) {
        return -1;
    }
    for (word = argv[1]; word != NULL && o->size_count < SIZES_MAX;) {
        char* comma = strchr(word, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        o->sizes[o->size_count] = option_size("BYTES", word, 1, 1L << 24, say);
        if (o->sizes[o->size_count++] < 0) {
            return -1;
        }
        word = comma == NULL ? NULL : comma + 1;
    }
    o->calls = (int)option_count("CALLS", argv[2], 1, 1L << 20, say);
    o->blocks = (int)option_count("BLOCKS", argv[3], 1, 1L << 20, say);
    o->seed = argc == 5 ? option_count("SEED", argv[4], 1, 1L << 30, say) : 0;
    return word == NULL && o->calls > 0 && o->blocks > 0 && o->seed >= 0 ? 0 : -1;
}

/* The last step of splitmix64: evenly distributed, and the same for the sender and the receiver. */
static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

static int message_bytes(long bytes, long seed, int ranks, int from, int to) {
    const uint64_t pair = (uint64_t)from * (uint64_t)ranks + (uint64_t)to + 1;
    if (seed == 0) {
        return (int)bytes;
    }
    return (int)(mixed(pair * 0x9e3779b97f4a7c15ULL + (uint64_t)seed) % (uint64_t)(2 * bytes + 1));
}

static unsigned char content(int from, int to, int index) {
    return (unsigned char)(31 * from + 7 * to + index);
}

static void prepare(long bytes, long seed, struct exchange* e) {
    size_t total[2] = {0, 0};
    int peer;
    int i;

    for (i = 0; i < 2; ++i) {
        e->counts[i] = malloc((size_t)e->ranks * sizeof(int));
        e->offsets[i] = malloc((size_t)e->ranks * sizeof(int));
        for (peer = 0; peer < e->ranks; ++peer) {
            e->counts[i][peer] = i == 0 ? message_bytes(bytes, seed, e->ranks, e->rank, peer)
                                        : message_bytes(bytes, seed, e->ranks, peer, e->rank);
            e->offsets[i][peer] = (int)total[i];
            total[i] += (size_t)e->counts[i][peer];
        }
    }
    e->in = malloc(total[0] + 1);
    e->out = calloc(total[1] + 1, 1);
    for (peer = 0; peer < e->ranks; ++peer) {
        for (i = 0; i < e->counts[0][peer]; ++i) {
            e->in[e->offsets[0][peer] + i] = content(e->rank, peer, i);
        }
    }
}

static void release(struct exchange* e) {
    int i;

    for (i = 0; i < 2; ++i) {
        free(e->counts[i]);
        free(e->offsets[i]);
    }
    free(e->in);
    free(e->out);
}

static int is_right(const struct exchange* e) {
    int peer;
    int i;

    for (peer = 0; peer < e->ranks; ++peer) {
        for (i = 0; i < e->counts[1][peer]; ++i) {
            if (e->out[e->offsets[1][peer] + i] != content(peer, e->rank, i)) {
                return 0;
            }
        }
    }
    return 1;
}

static double processor_seconds(void) {
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void call(long bytes, long seed, const struct exchange* e) {
    if (seed == 0) {
        MPI_Alltoall(e->in, (int)bytes, MPI_BYTE, e->out, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
    } else {
        MPI_Alltoallv(e->in, e->counts[0], e->offsets[0], MPI_BYTE, e->out, e->counts[1],
                      e->offsets[1], MPI_BYTE, MPI_COMM_WORLD);
    }
}

static void time_block(const struct options* o, long bytes, const struct exchange* e) {
    double start;
    double mine;
    double slowest = 0;
    double used;
    double all_used = 0;
    int i;

    MPI_Barrier(MPI_COMM_WORLD);
    used = processor_seconds();
    start = MPI_Wtime();
    for (i = 0; i < o->calls; ++i) {
        call(bytes, o->seed, e);
    }
    mine = (MPI_Wtime() - start) / o->calls * 1e6;
    used = processor_seconds() - used;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&used, &all_used, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (e->rank == 0) {
        printf("%ld %.3f %.3f\n", bytes, slowest, all_used);
    }
}

/* Times all blocks of one size. Returns whether the last call's result was right. */
static int time_size(const struct options* o, int index, struct exchange* e) {
    int right;
    int i;

    prepare(o->sizes[index], o->seed, e);
    if (index == 0) {
        call(o->sizes[index], o->seed, e);
    }
    for (i = 0; i < o->blocks; ++i) {
        time_block(o, o->sizes[index], e);
    }
    right = is_right(e);
    release(e);
    return right;
}

static const char kUsage[] = "Usage: mpirun ... alltoall_blocks BYTES,... CALLS BLOCKS [SEED]\n"
                             "BYTES: for each rank, 64k, 1M; with SEED the mean, and "
                             "MPI_Alltoallv. Exit status: 0 right, 1 wrong, 2 usage.\n";

int main(int argc, char** argv) {
    struct options o;
    int wants_help;
    struct exchange e;
    int right = 1;
    int i;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &e.ranks);
    wants_help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (wants_help || parse(&o, argc, argv, e.rank == 0) != 0) {
        if (e.rank == 0) {
            fputs(kUsage, wants_help ? stdout : stderr);
        }
        MPI_Finalize();
        return wants_help ? 0 : 2;
    }
    for (i = 0; i < o.size_count; ++i) {
        right = time_size(&o, i, &e) && right;
    }
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (e.rank == 0) {
        puts(right ? "ok" : "WRONG");
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
