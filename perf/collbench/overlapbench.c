/*
 * overlapbench: how much of a nonblocking collective proceeds while the program computes, with any
 * library.
 *
 * It measures three times, as IMB-NBC and OSU's benchmarks do: that of the collective alone (pure),
 * that of a loop of additions alone that takes as long (cpu), and that of the start, the loop and
 * the wait (ovrl). The overlap is the part of the shorter of the first two that the third does not
 * show: (pure + cpu - ovrl) / min(pure, cpu). With --compute all every rank computes, so that no
 * processor is free where each rank has one. With --compute first rank 0 computes, and the others
 * wait at once, which is where ranks can help one another. With --polls N the loop is interrupted
 * by N calls of MPI_Test. With --cpu-us the loop has that length instead.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "perf/option_value.h"

enum { SIZES_MAX = 16, REPETITIONS_MAX = 9999, POLLS_MAX = 1000 };

enum { COLLECTIVES = 5 };

struct options {
    int repetitions;
    int warm_ups;
    int polls;
    int first_only; /* Whether rank 0 alone computes. */
    double cpu_us;  /* 0: as long as the collective takes. */
    int sizes[SIZES_MAX];
    int size_count;
    int chosen[COLLECTIVES];
};

struct buffers {
    char* send;
    char* recv;
    int rank;
    int count;
};

typedef void (*start_fn)(const struct buffers* b, int bytes, MPI_Request* request);

static void* root_sends(const struct buffers* b) {
    return b->rank == 0 ? b->send : b->recv;
}

static void start_bcast(const struct buffers* b, int bytes, MPI_Request* request) {
    MPI_Ibcast(root_sends(b), bytes, MPI_BYTE, 0, MPI_COMM_WORLD, request);
}

static void start_reduce(const struct buffers* b, int bytes, MPI_Request* request) {
    MPI_Ireduce(b->send, b->recv, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, 0,
                MPI_COMM_WORLD, request);
}

static void start_allreduce(const struct buffers* b, int bytes, MPI_Request* request) {
    MPI_Iallreduce(b->send, b->recv, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM,
                   MPI_COMM_WORLD, request);
}

static void start_allgather(const struct buffers* b, int bytes, MPI_Request* request) {
    MPI_Iallgather(b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, MPI_COMM_WORLD, request);
}

static void start_alltoall(const struct buffers* b, int bytes, MPI_Request* request) {
    MPI_Ialltoall(b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, MPI_COMM_WORLD, request);
}

static const struct {
    const char* name;
    start_fn start;
} collectives[COLLECTIVES] = {{"ibcast", start_bcast},
                              {"ireduce", start_reduce},
                              {"iallreduce", start_allreduce},
                              {"iallgather", start_allgather},
                              {"ialltoall", start_alltoall}};

/* ---- data: rank r sends r + 1 + i mod 7, as numbers of whatever the collective moves */

static void fill(struct buffers* b, int which, int bytes) {
    const int reduces = which == 1 || which == 2;
    const int blocks = which == 4 ? b->count : 1;

    for (int i = 0; reduces && i < bytes / (int)sizeof(double); i++) {
        ((double*)b->send)[i] = b->rank + 1 + i % 7;
    }
    for (long i = 0; !reduces && i < (long)bytes * blocks; i++) {
        b->send[i] = (char)(b->rank + 1 + i % 7);
    }
    memset(b->recv, 0, (size_t)bytes * (size_t)b->count);
}

/* Returns how many received values are wrong. */
static int check(const struct buffers* b, int which, int bytes) {
    int wrong = 0;

    if (which == 1 || which == 2) {
        for (int i = 0; (which == 2 || b->rank == 0) && i < bytes / (int)sizeof(double); i++) {
            const double sum = b->count * (b->count + 1) / 2.0 + b->count * (i % 7);
            wrong += ((double*)b->recv)[i] != sum;
        }
        return wrong;
    }
    if (which == 0) {
        for (int i = 0; b->rank != 0 && i < bytes; i++) {
            wrong += b->recv[i] != (char)(1 + i % 7);
        }
        return wrong;
    }
    for (int from = 0; from < b->count; from++) {
        for (int i = 0; i < bytes; i++) {
            const long at = which == 4 ? (long)b->rank * bytes + i : i;
            wrong += b->recv[(long)from * bytes + i] != (char)(from + 1 + at % 7);
        }
    }
    return wrong;
}

/* ---- computing */

static volatile double sink;

/* Adds `turns` numbers. */
static void compute(long turns) {
    double sum = 0;

    for (long i = 0; i < turns; i++) {
        sum += (double)i;
        __asm__ volatile("" : "+x"(sum));
    }
    sink = sum;
}

static double turns_per_us(void) {
    const long turns = 1000000;
    double best = 0;

    for (int i = 0; i < 20; i++) {
        const double begin = MPI_Wtime();
        compute(turns);
        const double rate = (double)turns / ((MPI_Wtime() - begin) * 1e6);
        best = rate > best ? rate : best;
    }
    return best;
}

static void compute_and_poll(long turns, int polls, MPI_Request* request) {
    int done = 0;

    for (int i = 0; i <= polls; i++) {
        compute(turns / (polls + 1));
        if (i < polls && request != NULL) {
            MPI_Test(request, &done, MPI_STATUS_IGNORE);
        }
    }
}

/* ---- one measurement */

struct times {
    double all;   /* The slowest rank, from the start to the end of the wait. */
    double start; /* The call that starts, on rank 0. */
    double wait;  /* The wait of rank 0. */
    double rest;  /* The slowest of the other ranks, from the start to the end. */
};

static double slowest(double own) {
    double most = 0;

    MPI_Allreduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static struct times run_once(const struct buffers* b, const struct options* o, int which, int bytes,
                             long turns, int communicates) {
    const int computes = turns > 0 && (b->rank == 0 || !o->first_only);
    MPI_Request request = MPI_REQUEST_NULL;
    double begin;
    double started;
    double waits;
    double end;

    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    if (communicates) {
        collectives[which].start(b, bytes, &request);
    }
    started = MPI_Wtime();
    if (computes) {
        compute_and_poll(turns, o->polls, communicates ? &request : NULL);
    }
    waits = MPI_Wtime();
    if (communicates) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    end = MPI_Wtime();
    return (struct times){slowest(end - begin) * 1e6,
                          slowest(b->rank == 0 ? started - begin : 0) * 1e6,
                          slowest(b->rank == 0 ? end - waits : 0) * 1e6,
                          slowest(b->rank == 0 ? 0 : end - begin) * 1e6};
}

static int compare_doubles(const void* a, const void* b) {
    const double x = *(const double*)a;
    const double y = *(const double*)b;

    return x < y ? -1 : x > y;
}

static double median(double* values, int count) {
    qsort(values, (size_t)count, sizeof(double), compare_doubles);
    return values[count / 2];
}

/* Returns the median of each time. */
static struct times run(const struct buffers* b, const struct options* o, int which, int bytes,
                        long turns, int communicates) {
    static double all[REPETITIONS_MAX];
    static double start[REPETITIONS_MAX];
    static double wait[REPETITIONS_MAX];
    static double rest[REPETITIONS_MAX];

    for (int i = -o->warm_ups; i < o->repetitions; i++) {
        const struct times t = run_once(b, o, which, bytes, turns, communicates);
        if (i >= 0) {
            all[i] = t.all;
            start[i] = t.start;
            wait[i] = t.wait;
            rest[i] = t.rest;
        }
    }
    return (struct times){median(all, o->repetitions), median(start, o->repetitions),
                          median(wait, o->repetitions), median(rest, o->repetitions)};
}

static int measure(struct buffers* b, const struct options* o, int which, int bytes, double rate) {
    struct times pure;
    struct times cpu;
    struct times both;
    double shorter;
    int wrong;
    long turns;

    fill(b, which, bytes);
    pure = run(b, o, which, bytes, 0, 1);
    turns = (long)(rate * (o->cpu_us > 0 ? o->cpu_us : pure.all));
    MPI_Bcast(&turns, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    cpu = run(b, o, which, bytes, turns, 0);
    memset(b->recv, 0, (size_t)bytes * (size_t)b->count);
    both = run(b, o, which, bytes, turns, 1);
    wrong = check(b, which, bytes);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    shorter = pure.all < cpu.all ? pure.all : cpu.all;
    if (b->rank == 0) {
        const double part = (pure.all + cpu.all - both.all) / shorter;
        printf("%-12s %9d %10.2f %10.2f %10.2f %8.1f %10.2f %10.2f %10.2f %s\n",
               collectives[which].name, bytes, pure.all, cpu.all, both.all,
               100 * (part < 0   ? 0
                      : part > 1 ? 1
                                 : part),
               both.start, both.wait, both.rest, wrong == 0 ? "ok" : "WRONG");
        fflush(stdout);
    }
    return wrong;
}

/* ---- options */

static const char usage[] =
    "Usage: mpirun ... overlapbench [options]\n"
    "  -c, --collectives LIST   of ibcast,ireduce,iallreduce,iallgather,ialltoall (default: all)\n"
    "  -s, --sizes LIST         multiples of 8 bytes, with k or M behind them\n"
    "                           (default 64k,1M,4M)\n"
    "  -r, --repetitions N      medians are of so many (default 101)\n"
    "      --compute WHO        all, or first: rank 0 alone, while the others wait (default all)\n"
    "      --polls N            calls of MPI_Test between the start and the wait (default 0)\n"
    "      --cpu-us N           how long to compute (default: as long as the collective takes)\n"
    "      --smoke              few of everything\n"
    "  -h, --help\n"
    "Columns, in us: pure, cpu, ovrl and the overlap in per cent as the head of the source says;\n"
    "start, wait: the two calls of rank 0, between which it has computed; rest: from the start to\n"
    "the end at the others, the slowest of them.\n";

static int add_size(const char* item, struct options* o, int say) {
    const long bytes = option_size("--sizes", item, 8, 1L << 28, say);

    if (bytes < 0) {
        return -1;
    }
    if (bytes % (long)sizeof(double) != 0) {
        return option_refused("--sizes", "multiples of 8", item, say);
    }
    if (o->size_count == SIZES_MAX) {
        return option_refused("--sizes", "16 at most", item, say);
    }
    o->sizes[o->size_count++] = (int)bytes;
    return 0;
}

static int choose(const char* item, struct options* o, int say) {
    for (int i = 0; i < COLLECTIVES; i++) {
        if (strcmp(item, collectives[i].name) == 0) {
            o->chosen[i] = 1;
            return 0;
        }
    }
    return option_refused("--collectives",
                          "names of ibcast, ireduce, iallreduce, iallgather and ialltoall", item,
                          say);
}

/* Calls `part` for each part of the list, until one is wrong. */
static int parse_list(const char* text, int (*part)(const char*, struct options*, int),
                      struct options* o, int say) {
    char* list = strdup(text);
    char* rest = list;
    int status = 0;

    for (char* item; status == 0 && (item = strsep(&rest, ",")) != NULL;) {
        status = part(item, o, say);
    }
    free(list);
    return status;
}

static int set_option(int c, const char* value, struct options* o, int say) {
    long number;

    switch (c) {
    case 'c': memset(o->chosen, 0, sizeof(o->chosen)); return parse_list(value, choose, o, say);
    case 's': o->size_count = 0; return parse_list(value, add_size, o, say);
    case 'r':
        number = option_count("--repetitions", value, 1, REPETITIONS_MAX, say);
        o->repetitions = (int)number;
        return number < 0 ? -1 : 0;
    case 'w':
        o->first_only = strcmp(value, "first") == 0;
        return o->first_only || strcmp(value, "all") == 0
                   ? 0
                   : option_refused("--compute", "all or first", value, say);
    case 'p':
        number = option_count("--polls", value, 0, POLLS_MAX, say);
        o->polls = (int)number;
        return number < 0 ? -1 : 0;
    case 'u':
        number = option_count("--cpu-us", value, 1, 1000000, say);
        o->cpu_us = (double)number;
        return number < 0 ? -1 : 0;
    case 'k':
        o->repetitions = 3;
        o->sizes[0] = 64;
        o->sizes[1] = 256 << 10;
        o->size_count = 2;
        return 0;
    default: return -1;
    }
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char** argv, struct options* o, int rank) {
    static const struct option longs[] = {
        {"collectives", 1, NULL, 'c'}, {"sizes", 1, NULL, 's'}, {"repetitions", 1, NULL, 'r'},
        {"compute", 1, NULL, 'w'},     {"polls", 1, NULL, 'p'}, {"cpu-us", 1, NULL, 'u'},
        {"smoke", 0, NULL, 'k'},       {"help", 0, NULL, 'h'},  {NULL, 0, NULL, 0}};
    int bad = 0;
    int c;

    opterr = rank == 0;
    while (!bad && (c = getopt_long(argc, argv, "c:s:r:h", longs, NULL)) != -1) {
        if (c == 'h') {
            if (rank == 0) {
                fputs(usage, stdout);
            }
            return 0;
        }
        bad = set_option(c, optarg, o, rank == 0) != 0;
    }
    if (bad || option_end(optind, argc, argv, rank == 0) != 0) {
        if (rank == 0) {
            fputs(usage, stderr);
        }
        return 2;
    }
    return -1;
}

int main(int argc, char** argv) {
    struct options o = {.repetitions = 101,
                        .warm_ups = 5,
                        .sizes = {64 << 10, 1 << 20, 4 << 20},
                        .size_count = 3,
                        .chosen = {1, 1, 1, 1, 1}};
    struct buffers b = {0};
    size_t most = 0;
    double rate;
    int wrong = 0;
    int status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.count);
    status = parse_options(argc, argv, &o, b.rank);
    if (status >= 0) {
        MPI_Finalize();
        return status;
    }
    for (int i = 0; i < o.size_count; i++) {
        most = (size_t)o.sizes[i] > most ? (size_t)o.sizes[i] : most;
    }
    b.send = malloc(most * (size_t)b.count);
    b.recv = malloc(most * (size_t)b.count);
    if (b.send == NULL || b.recv == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", 2 * most * (size_t)b.count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    rate = turns_per_us();
    if (b.rank == 0) {
        printf("# %d ranks, %s computes, %d polls\n%-12s %9s %10s %10s %10s %8s %10s %10s %10s\n",
               b.count, o.first_only ? "rank 0" : "every rank", o.polls, "# collective", "bytes",
               "pure", "cpu", "ovrl", "overlap", "start", "wait", "rest");
    }
    for (int which = 0; which < COLLECTIVES; which++) {
        for (int i = 0; o.chosen[which] && i < o.size_count; i++) {
            wrong += measure(&b, &o, which, o.sizes[i], rate);
        }
    }
    free(b.send);
    free(b.recv);
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
