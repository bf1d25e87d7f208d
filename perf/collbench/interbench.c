/*
 * interbench: times collectives on an inter-communicator whose sides are the two halves of the
 * processes. Pure MPI, like collbench: to compare components, run it alternately with each.
 *
 * Each cell is the median of repetitions. A repetition is the slowest process's mean over calls
 * back to back. With -b each call follows a barrier by messages, which no collective component
 * serves: printed are the time that the call adds to that cycle, and the time of the cycle. Without
 * -b rooted calls run ahead.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "perf/option_value.h"

enum { REPETITIONS = 15, LONGEST = 1 << 20 };

typedef struct {
    MPI_Comm comm;
    int rank; /* In MPI_COMM_WORLD. */
    int all;
    int remote;
    int root; /* As this process names the first process of the first side. */
    char* send;
    char* receive;
} sides_t;

static const char* const names[] = {"barrier",
                                    "bcast",
                                    "gather",
                                    "scatter",
                                    "reduce",
                                    "allreduce",
                                    "allgather",
                                    "alltoall",
                                    "ibcast",
                                    "igather",
                                    "iscatter",
                                    "ireduce",
                                    "iallreduce",
                                    "iallgather",
                                    "ialltoall",
                                    "reduce_scatter_block",
                                    "ireduce_scatter_block"};
enum { NAMES = sizeof names / sizeof *names };

static void call(const sides_t* s, int which, int bytes) {
    const int words = bytes / (int)sizeof(double);
    const int part = words / s->remote > 0 ? words / s->remote : 1;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (which) {
    case 0: MPI_Barrier(s->comm); break;
    case 1: MPI_Bcast(s->send, bytes, MPI_BYTE, s->root, s->comm); break;
    case 2:
        MPI_Gather(s->send, bytes, MPI_BYTE, s->receive, bytes, MPI_BYTE, s->root, s->comm);
        break;
    case 3:
        MPI_Scatter(s->send, bytes, MPI_BYTE, s->receive, bytes, MPI_BYTE, s->root, s->comm);
        break;
    case 4: MPI_Reduce(s->send, s->receive, words, MPI_DOUBLE, MPI_SUM, s->root, s->comm); break;
    case 5: MPI_Allreduce(s->send, s->receive, words, MPI_DOUBLE, MPI_SUM, s->comm); break;
    case 6: MPI_Allgather(s->send, bytes, MPI_BYTE, s->receive, bytes, MPI_BYTE, s->comm); break;
    case 7: MPI_Alltoall(s->send, bytes, MPI_BYTE, s->receive, bytes, MPI_BYTE, s->comm); break;
    case 8: MPI_Ibcast(s->send, bytes, MPI_BYTE, s->root, s->comm, &request); break;
    case 9:
        MPI_Igather(s->send, bytes, MPI_BYTE, s->receive, bytes, MPI_BYTE, s->root, s->comm,
                    &request);
        break;
    case 10:
        MPI_Iscatter(s->send, bytes, MPI_BYTE, s->receive, bytes, MPI_BYTE, s->root, s->comm,
                     &request);
        break;
    case 11:
        MPI_Ireduce(s->send, s->receive, words, MPI_DOUBLE, MPI_SUM, s->root, s->comm, &request);
        break;
    case 12:
        MPI_Iallreduce(s->send, s->receive, words, MPI_DOUBLE, MPI_SUM, s->comm, &request);
        break;
    case 13:
        MPI_Iallgather(s->send, bytes, MPI_BYTE, s->receive, bytes, MPI_BYTE, s->comm, &request);
        break;
    case 14:
        MPI_Ialltoall(s->send, bytes, MPI_BYTE, s->receive, bytes, MPI_BYTE, s->comm, &request);
        break;
    case 15:
        MPI_Reduce_scatter_block(s->send, s->receive, part, MPI_DOUBLE, MPI_SUM, s->comm);
        break;
    default:
        MPI_Ireduce_scatter_block(s->send, s->receive, part, MPI_DOUBLE, MPI_SUM, s->comm,
                                  &request);
        break;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int by_size(const void* left, const void* right) {
    const double a = *(const double*)left;
    const double b = *(const double*)right;
    return (a > b) - (a < b);
}

/* A dissemination barrier. */
static void barrier_by_messages(const sides_t* s) {
    for (int distance = 1; distance < s->all; distance *= 2) {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (s->rank + distance) % s->all, 1, NULL, 0, MPI_BYTE,
                     (s->rank + s->all - distance) % s->all, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Returns the seconds of one of `calls` calls on the slowest process. `which` < 0: of the
 * barrier alone. */
static double repeat(const sides_t* s, int which, int bytes, int calls, int barrier) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < calls; i++) {
        if (barrier) {
            barrier_by_messages(s);
        }
        if (which >= 0) {
            call(s, which, bytes);
        }
    }
    double took = (MPI_Wtime() - begin) / calls;
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return took;
}

typedef struct {
    double alone;
    double cycle;
} timing_t;

static timing_t measure(const sides_t* s, int which, int bytes, double seconds, int barrier) {
    double alone[REPETITIONS];
    double cycle[REPETITIONS];
    /* The first calls make groups and connections; the next ones tell how many calls fit. */
    (void)repeat(s, which, bytes, 50, barrier);
    const int calls = (int)(seconds / REPETITIONS / repeat(s, which, bytes, 50, barrier)) + 1;
    for (int i = 0; i < REPETITIONS; i++) {
        const double bare = barrier ? repeat(s, -1, bytes, calls, barrier) : 0;
        cycle[i] = repeat(s, which, bytes, calls, barrier);
        alone[i] = cycle[i] - bare;
    }
    qsort(alone, REPETITIONS, sizeof *alone, by_size);
    qsort(cycle, REPETITIONS, sizeof *cycle, by_size);
    const timing_t timing = {alone[REPETITIONS / 2], cycle[REPETITIONS / 2]};
    return timing;
}

static int wanted(const char* list, const char* name) {
    const size_t length = strlen(name);
    for (const char* at = list; NULL != at; at = strchr(at, ',')) {
        at += ',' == *at;
        if (0 == strncmp(at, name, length) && ('\0' == at[length] || ',' == at[length])) {
            return 1;
        }
    }
    return 0;
}

static sides_t open_sides(void) {
    sides_t s;
    MPI_Comm side;
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.all);
    const int second = s.rank >= s.all / 2;
    MPI_Comm_split(MPI_COMM_WORLD, second, s.rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, second ? 0 : s.all / 2, 1, &s.comm);
    MPI_Comm_free(&side);
    MPI_Comm_remote_size(s.comm, &s.remote);
    s.root = 0;
    if (!second) {
        s.root = 0 == s.rank ? MPI_ROOT : MPI_PROC_NULL;
    }
    s.send = calloc((size_t)s.remote + 1, LONGEST);
    s.receive = calloc((size_t)s.remote + 1, LONGEST);
    return s;
}

static void measure_all(const sides_t* s, const char* list, const char* sizes, double seconds,
                        int barrier) {
    char* copy = strdup(sizes);
    char* rest = copy;
    for (char* at; NULL != (at = strsep(&rest, ","));) {
        const int bytes = (int)option_size("--sizes", at, 1, LONGEST, 0);
        for (int i = 0; i < NAMES; i++) {
            if (NULL != list && !wanted(list, names[i])) {
                continue;
            }
            if (NULL != strstr(names[i], "reduce") && bytes % (int)sizeof(double) != 0) {
                if (0 == s->rank) {
                    fprintf(stderr,
                            "interbench: %s of %d bytes is left out: no whole number of doubles\n",
                            names[i], bytes);
                }
                continue;
            }
            const timing_t timing = measure(s, i, bytes, seconds, barrier);
            if (0 == s->rank) {
                printf("%s,%d,%.9f,%.9f\n", names[i], bytes, timing.alone, timing.cycle);
                fflush(stdout);
            }
        }
    }
    free(copy);
}

/* Returns whether all parts of the list are names of collectives or, if `is_sizes`, sizes. */
static int is_right(const char* list, int is_sizes, int say) {
    char* copy = strdup(list);
    char* rest = copy;
    int right = 1;
    for (char* item; right && NULL != (item = strsep(&rest, ","));) {
        if (is_sizes) {
            right = option_size("--sizes", item, 1, LONGEST, say) > 0;
            continue;
        }
        right = 0;
        for (int i = 0; i < NAMES; i++) {
            right |= 0 == strcmp(names[i], item);
        }
        if (!right) {
            option_refused("--collectives", "names of collectives", item, say);
        }
    }
    free(copy);
    return right;
}

static const char usage[] =
    "Usage: mpirun -np N ... interbench [options]     N is 2 at least\n"
    "  -c, --collectives LIST   of barrier,bcast,gather,scatter,reduce,allreduce,allgather,\n"
    "                           alltoall,reduce_scatter_block and, with an i before them, all\n"
    "                           but barrier (default: all)\n"
    "  -s, --sizes LIST         bytes, at most 1M (default 8,4k,64k)\n"
    "  -t, --time SECONDS       per cell, all repetitions together (default 0.05)\n"
    "  -b, --barrier            a barrier by messages before each call\n"
    "  -S, --smoke              8 bytes, almost no time\n"
    "  -h, --help\n"
    "Prints collective, bytes, seconds of a call, and of the cycle.\n";

struct options {
    const char* collectives; /* NULL: all. */
    const char* sizes;
    double seconds;
    int barrier;
};

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char** argv, struct options* o, int say) {
    static const struct option longs[] = {{"collectives", 1, NULL, 'c'},
                                          {"sizes", 1, NULL, 's'},
                                          {"time", 1, NULL, 't'},
                                          {"barrier", 0, NULL, 'b'},
                                          {"smoke", 0, NULL, 'S'},
                                          {"help", 0, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int bad = 0;
    int c;
    opterr = say;
    while (-1 != (c = getopt_long(argc, argv, "c:s:t:bSh", longs, NULL))) {
        switch (c) {
        case 'c':
            o->collectives = optarg;
            bad |= !is_right(optarg, 0, say);
            break;
        case 's':
            o->sizes = optarg;
            bad |= !is_right(optarg, 1, say);
            break;
        case 't':
            o->seconds = option_seconds("--time", optarg, say);
            bad |= o->seconds < 0;
            break;
        case 'b': o->barrier = 1; break;
        case 'S':
            o->seconds = 0;
            o->sizes = "8";
            break;
        case 'h':
            if (say) {
                fputs(usage, stdout);
            }
            return 0;
        default: bad = 1;
        }
    }
    if (bad || 0 != option_end(optind, argc, argv, say)) {
        if (say) {
            fputs(usage, stderr);
        }
        return 2;
    }
    return -1;
}

int main(int argc, char** argv) {
    struct options o = {NULL, "8,4k,64k", 0.05, 0};
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int status = parse_options(argc, argv, &o, 0 == rank);
    if (status < 0 && ranks < 2) {
        fputs("interbench: each side has a process at least: mpirun -np 2\n", stderr);
        status = 2;
    }
    if (status >= 0) {
        MPI_Finalize();
        return status;
    }
    sides_t s = open_sides();
    measure_all(&s, o.collectives, o.sizes, o.seconds, o.barrier);
    free(s.send);
    free(s.receive);
    MPI_Comm_free(&s.comm);
    MPI_Finalize();
    return 0;
}
