/*
 * interbench: times collectives on an inter-communicator whose sides are the two halves of the
 * processes. Pure MPI, like collbench: run it with one component and with another, by turns.
 *
 * Each cell is the median of repetitions; one is the slowest process's mean over calls back to
 * back. With -b each call follows a barrier by messages, which no collective component serves:
 * printed is what the call adds to that cycle, and the cycle behind it. Otherwise rooted calls run
 * ahead.
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
    int rank; /* In the world. */
    int all;
    int remote;
    int root; /* As this process names it: the first of the first side. */
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

/* Dissemination. */
static void barrier_by_messages(const sides_t* s) {
    for (int distance = 1; distance < s->all; distance *= 2) {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (s->rank + distance) % s->all, 1, NULL, 0, MPI_BYTE,
                     (s->rank + s->all - distance) % s->all, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Seconds of one of so many calls, on the slowest process. `which` < 0: of the barrier alone. */
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
    /* The first calls make groups and connections, the next tell how many fit. */
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

static void measure_all(const sides_t* s, const char* list, char* sizes, double seconds,
                        int barrier) {
    for (char* at; NULL != (at = strsep(&sizes, ","));) {
        const int bytes = (int)option_size("-s", at, 1, LONGEST, 0);
        for (int i = 0; i < NAMES; i++) {
            if (NULL != list && !wanted(list, names[i])) {
                continue;
            }
            const timing_t timing = measure(s, i, bytes, seconds, barrier);
            if (0 == s->rank) {
                printf("%s,%d,%.9f,%.9f\n", names[i], bytes, timing.alone, timing.cycle);
                fflush(stdout);
            }
        }
    }
}

/* Are all parts of the list names or, where `is_sizes`, sizes? */
static int is_right(const char* list, int is_sizes, int say) {
    char* copy = strdup(list);
    char* rest = copy;
    int right = 1;
    for (char* item; right && NULL != (item = strsep(&rest, ","));) {
        if (is_sizes) {
            right = option_size("-s", item, 1, LONGEST, say) > 0;
            continue;
        }
        right = 0;
        for (int i = 0; i < NAMES; i++) {
            right |= 0 == strcmp(names[i], item);
        }
        if (!right && say) {
            fprintf(stderr, "-c: expected names of collectives, found '%s'\n", list);
        }
    }
    free(copy);
    return right;
}

static int usage(int status, int say) {
    if (say) {
        fputs("usage: mpirun -np N interbench [-c COLLECTIVES] [-s BYTES,...] [-t SECONDS] [-b]\n"
              "N is 2 at least; -S: almost no time\n"
              "prints: collective, bytes, seconds of a call, and of the cycle\n",
              0 == status ? stdout : stderr);
    }
    MPI_Finalize();
    return status;
}

int main(int argc, char** argv) {
    static char sizes[256] = "8,4096,65536";
    const char* list = NULL;
    double seconds = 0.05;
    int barrier = 0;
    int smoke = 0;
    int bad = 0;
    int option, rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    opterr = 0 == rank;
    while (-1 != (option = getopt(argc, argv, "c:s:t:bSh"))) {
        switch (option) {
        case 'c':
            list = optarg;
            bad |= !is_right(optarg, 0, 0 == rank);
            break;
        case 's':
            bad |= !is_right(optarg, 1, 0 == rank) || strlen(optarg) >= sizeof sizes;
            snprintf(sizes, sizeof sizes, "%s", optarg);
            break;
        case 't':
            seconds = option_seconds("-t", optarg, 0 == rank);
            bad |= seconds < 0;
            break;
        case 'b': barrier = 1; break;
        case 'S': smoke = 1; break;
        case 'h': return usage(0, 0 == rank);
        default: bad = 1;
        }
    }
    if (bad || optind < argc || ranks < 2) {
        return usage(2, 0 == rank);
    }
    if (smoke) {
        seconds = 0;
        snprintf(sizes, sizeof sizes, "8");
    }
    sides_t s = open_sides();
    measure_all(&s, list, sizes, seconds, barrier);
    free(s.send);
    free(s.receive);
    MPI_Comm_free(&s.comm);
    MPI_Finalize();
    return 0;
}
