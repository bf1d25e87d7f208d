/*
 * collbench: times MPI collectives, with any library and any component.
 *
 * Prints one line per cell: collective, bytes, ranks, mode, median and minimum in microseconds over
 * the repetitions (each is the slowest rank's mean over the iterations), the one-way cache-line
 * ping-pong of ranks 0 and 1 in nanoseconds before and after the cell, in cycle mode also the
 * median times of the yielding barrier without an operation and of the operation without the
 * barrier, and "ok" or "WRONG".
 */
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collbench.h"
#include "perf/option_value.h"

enum {
    MAX_SIZES = 64,
    PAGE = 4096,
    /* Rounds that are checked. Before a cell on a communicator of its own is timed there are more
     * than a component may leave to another one before it sets that communicator up (16 of UCG's),
     * and after each cell, if they take little time, more than flag slots are deep (64). */
    ROUNDS_MIN = 2,
    ROUNDS_BEFORE = 20,
    ROUNDS_MAX = 80,
    ROUNDS_BYTES = 1 << 20
};
static const double kRoundsSeconds = 2e-3;

struct options {
    const char* collectives; /* NULL: the blocking ones. */
    int sizes[MAX_SIZES];
    int size_count;
    enum mode mode;
    int repetitions;
    double cell_seconds; /* Time for the repetitions of one cell together. */
    int offset;          /* Of the buffers, from the beginning of a page. */
    int writes_input;
    int root;
    int rotates; /* Whether the root is another rank each time. */
    int in_place;
    long memory; /* Bytes that a rank's buffers may have; 0: by what the host has. */
    int csv;
};

static const char* const mode_names[] = {"b2b", "sep", "cyc", "mpi", "late"};
enum { MODES = sizeof(mode_names) / sizeof(mode_names[0]) };

static const char usage[] =
    "Usage: mpirun ... collbench [options]\n"
    "  -c, --collectives LIST   comma-separated names, which --list prints, or forms: blocking\n"
    "                           (default), nonblocking, persistent, others (alltoallw, and\n"
    "                           neighbourhood collectives on a ring)\n"
    "  -s, --sizes LIST         bytes, 64k, 1M; default 8,64,1k,8k,64k,256k,1M\n"
    "                           (whole vector for bcast, reduce, allreduce, scan, exscan; one\n"
    "                           rank's block for the others)\n"
    "  -m, --mode MODE          b2b: back to back (default); sep: separated by an untimed "
    "barrier;\n"
    "                           cyc: cycle of a yielding barrier and the operation, and beside it\n"
    "                           that barrier alone (bare) and the difference (alone);\n"
    "                           mpi: as cyc, with MPI_Barrier;\n"
    "                           late: rank 0 comes late, each repetition by its part of --time, "
    "and\n"
    "                           the time is the processor time that another rank spends, at most,\n"
    "                           on waiting for it\n"
    "  -r, --repetitions N      per cell (default 9)\n"
    "  -t, --time SECONDS       per cell, all repetitions together (default 0.1); with cyc as "
    "much\n"
    "                           again for the barrier alone\n"
    "  -o, --offset BYTES       buffers begin so many bytes into a page (default 0; large ones of\n"
    "                           malloc: 16)\n"
    "  -w, --write-input        ranks write what they send anew before each operation, as "
    "programs\n"
    "                           do that have computed it; timed, but for sep\n"
    "      --root RANK          root of rooted collectives (default 0); rotate: each rank in turn\n"
    "      --in-place           with MPI_IN_PLACE, where the collective has it\n"
    "      --memory BYTES       for the buffers of a rank; cells that need more are left out\n"
    "                           (default: a quarter of what the host has available, divided by "
    "its\n"
    "                           ranks)\n"
    "      --csv                comma-separated, for perf/compare\n"
    "      --list               print the collectives and end\n"
    "      --smoke              one small size, two repetitions, almost no time\n"
    "  -h, --help\n"
    "Exit status: 0 all results right, 1 a wrong result, 2 wrong usage.\n";

static int parse_sizes(struct options* o, const char* list, int say) {
    char* copy = strdup(list);
    char* rest = copy;
    char* item;

    o->size_count = 0;
    while ((item = strsep(&rest, ",")) != NULL) {
        long bytes = option_size("--sizes", item, 1, 256L << 20, say);
        if (bytes < 0 || o->size_count == MAX_SIZES) {
            free(copy);
            return -1;
        }
        o->sizes[o->size_count++] = (int)bytes;
    }
    free(copy);
    return o->size_count > 0 ? 0 : -1;
}

static int parse_mode(struct options* o, const char* text, int say) {
    int i;

    for (i = 0; i < MODES; ++i) {
        if (strcmp(text, mode_names[i]) == 0) {
            o->mode = (enum mode)i;
            return 0;
        }
    }
    if (say) {
        fprintf(stderr, "--mode: expected b2b, sep, cyc, mpi or late, found '%s'\n", text);
    }
    return -1;
}

/* Returns whether `name` is the name of the call, or of those that it is selected with. */
static int means(const char* name, size_t length, const struct call* call) {
    const char* form = has(call, OTHER) ? "others" : collbench_form_names[call->form];

    return (strlen(call->name) == length && memcmp(name, call->name, length) == 0) ||
           (strlen(form) == length && memcmp(name, form, length) == 0);
}

static int is_collective(const char* name) {
    int i;

    for (i = 0; i < collbench_call_count; ++i) {
        if (means(name, strlen(name), &collbench_calls[i])) {
            return 1;
        }
    }
    return 0;
}

/* Returns 0 if all names of the list are names of collectives or forms. */
static int check_collectives(const char* list, int say) {
    char* copy = strdup(list);
    char* rest = copy;
    char* item;
    int bad = 0;

    while (!bad && (item = strsep(&rest, ",")) != NULL) {
        bad = !is_collective(item);
    }
    if (bad && say) {
        fprintf(stderr,
                "--collectives: expected names that --list prints, or of forms, found '%s'\n",
                list);
    }
    free(copy);
    return bad;
}

static void print_calls(void) {
    int i;

    for (i = 0; i < collbench_call_count; ++i) {
        printf("%s\n", collbench_calls[i].name);
    }
}

static int parse_root(struct options* o, const char* text, int ranks, int say) {
    o->rotates = strcmp(text, "rotate") == 0;
    o->root = o->rotates ? 0 : (int)option_count("--root", text, 0, ranks - 1, say);
    return o->root < 0;
}

static void smoke(struct options* o) {
    parse_sizes(o, "1k", 1);
    o->repetitions = 2;
    o->cell_seconds = 0.002;
}

/* Reads one option with a value or without; returns whether it is wrong. */
static int parse_option(int c, struct options* o, int ranks, int say) {
    switch (c) {
    case 'c': o->collectives = optarg; return check_collectives(optarg, say);
    case 's': return parse_sizes(o, optarg, say) != 0;
    case 'm': return parse_mode(o, optarg, say) != 0;
    case 'r':
        o->repetitions = (int)option_count("--repetitions", optarg, 1, MAX_REPETITIONS, say);
        return o->repetitions < 0;
    case 't': o->cell_seconds = option_seconds("--time", optarg, say); return o->cell_seconds < 0;
    case 'o':
        o->offset = (int)option_size("--offset", optarg, 0, PAGE - 1, say);
        return o->offset < 0;
    case 'w': o->writes_input = 1; return 0;
    case 'R': return parse_root(o, optarg, ranks, say);
    case 'i': o->in_place = 1; return 0;
    case 'M': o->memory = option_size("--memory", optarg, 1, LONG_MAX, say); return o->memory < 0;
    case 'v': o->csv = 1; return 0;
    case 'k': smoke(o); return 0;
    default: return 1;
    }
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char** argv, struct options* o, int rank, int ranks) {
    static const struct option longs[] = {
        {"collectives", 1, NULL, 'c'}, {"sizes", 1, NULL, 's'}, {"mode", 1, NULL, 'm'},
        {"repetitions", 1, NULL, 'r'}, {"time", 1, NULL, 't'},  {"offset", 1, NULL, 'o'},
        {"write-input", 0, NULL, 'w'}, {"root", 1, NULL, 'R'},  {"in-place", 0, NULL, 'i'},
        {"memory", 1, NULL, 'M'},      {"csv", 0, NULL, 'v'},   {"list", 0, NULL, 'l'},
        {"smoke", 0, NULL, 'k'},       {"help", 0, NULL, 'h'},  {NULL, 0, NULL, 0}};
    int bad = 0;
    int c;

    opterr = rank == 0;
    while ((c = getopt_long(argc, argv, "c:s:m:r:t:o:wh", longs, NULL)) != -1) {
        if (c == 'l' || c == 'h') {
            if (rank == 0) {
                c == 'l' ? print_calls() : (void)fputs(usage, stdout);
            }
            return 0;
        }
        bad |= parse_option(c, o, ranks, rank == 0);
    }
    if (o->in_place && o->writes_input) {
        bad |= option_refused("--in-place", "no --write-input", "both", rank == 0);
    }
    bad |= option_end(optind, argc, argv, rank == 0) != 0;
    if (bad && rank == 0) {
        fputs(usage, stderr);
    }
    return bad ? 2 : -1;
}

static int selected(const struct options* o, const struct call* call) {
    const char* name = o->collectives;

    if (name == NULL) {
        return call->form == FORM_BLOCKING && !has(call, OTHER);
    }
    while (*name != '\0') {
        size_t length = strcspn(name, ",");
        if (means(name, length, call)) {
            return 1;
        }
        name += length + (name[length] == ',');
    }
    return 0;
}

static void print_row(const struct cell* cell, const struct timing* t, const struct options* o,
                      int wrong) {
    const char* format = o->csv ? "%s,%d,%d,%s,%.4f,%.4f,%.0f,%.0f,"
                                : "%-22s %9d %4d %4s %12.3f %12.3f %7.0f %7.0f ";

    printf(format, cell->call->name, cell->bytes, cell->buffers->size, mode_names[cell->mode],
           t->median * 1e6, t->least * 1e6, t->ping_before_ns, t->ping_after_ns);
    if (cell->mode == MODE_CYC || cell->mode == MODE_MPI) {
        printf(o->csv ? "%.4f,%.4f," : "%10.3f %12.3f ", t->bare * 1e6, t->alone * 1e6);
    } else if (o->csv) {
        printf(",,");
    }
    printf("%s%s\n", o->csv ? "" : " ", wrong ? "WRONG" : "ok");
    fflush(stdout);
}

/* Returns whether a result was wrong in rounds in which all that is sent differs, back to back. */
static int check_rounds(const struct cell* cell, int rounds) {
    struct buffers* b = cell->buffers;
    int wrong = 0;
    int i;

    for (i = 0; i < rounds; ++i) {
        ++b->round;
        if (cell->rotates) {
            b->root = b->round % b->size;
        }
        buffers_fill(b, cell->call, cell->bytes);
        cell->call->run(b, cell->bytes);
        wrong |= cell->call->check(b, cell->bytes);
    }
    return wrong;
}

static int rounds_within(const struct cell* cell, double most) {
    const double bytes = (double)send_bytes(cell->buffers, cell->call, cell->bytes) +
                         (double)recv_bytes(cell->buffers, cell->call, cell->bytes);
    const double rounds = bytes * most > ROUNDS_BYTES ? ROUNDS_BYTES / bytes : most;

    return rounds < ROUNDS_MIN ? ROUNDS_MIN : (int)rounds;
}

/* Returns 0 if all results are right on all ranks. */
static int measure(const struct cell* cell, const struct options* o) {
    struct buffers* b = cell->buffers;
    struct timing timing;
    double most;
    int wrong;

    buffers_fill(b, cell->call, cell->bytes);
    if (cell->call->init != NULL) {
        cell->call->init(b, cell->bytes);
    }
    wrong = check_rounds(cell, has(cell->call, RING) ? ROUNDS_BEFORE
                                                     : rounds_within(cell, ROUNDS_BEFORE));
    buffers_fill(b, cell->call, cell->bytes);
    time_cell(cell, o->repetitions, o->cell_seconds, &timing);
    /* In place one result is the next operation's input. */
    wrong |= !b->in_place && cell->call->check(b, cell->bytes);
    most = kRoundsSeconds / (timing.median > 1e-9 ? timing.median : 1e-9);
    wrong |= check_rounds(cell, rounds_within(cell, most < ROUNDS_MAX ? most : ROUNDS_MAX));
    if (cell->call->init != NULL) {
        MPI_Request_free(&b->request);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, b->comm);
    if (b->rank == 0) {
        print_row(cell, &timing, o, wrong);
    }
    return wrong;
}

static int measure_on_ring(const struct cell* cell, const struct options* o) {
    struct buffers* b = cell->buffers;
    int wrong;

    b->ring = make_ring(b, cell->call->form);
    wrong = measure(cell, o);
    MPI_Comm_free(&b->ring);
    return wrong;
}

static void print_header(const struct options* o, int rank) {
    if (rank == 0 && o->csv) {
        puts("collective,bytes,ranks,mode,median_us,min_us,ping_before_ns,ping_after_ns,"
             "bare_us,alone_us,result");
    } else if (rank == 0) {
        printf("# %-20s %9s %4s %4s %12s %12s %7s %7s", "collective", "bytes", "np", "mode",
               "median us", "min us", "ping ns", "after");
        printf(o->mode == MODE_CYC || o->mode == MODE_MPI ? " %10s %12s\n" : "\n", "bare us",
               "alone us");
    }
}

static size_t memory_of(const struct buffers* b, const struct call* call, int bytes) {
    return send_bytes(b, call, bytes) + recv_bytes(b, call, bytes);
}

/* Returns why a cell is left out; NULL if it is not. */
static const char* reason_against(const struct options* o, const struct buffers* b,
                                  const struct call* call, int bytes) {
    if (has(call, REDUCES) && bytes % (int)sizeof(double) != 0) {
        return "no whole number of doubles";
    }
    if (o->in_place && !has(call, IN_PLACE)) {
        return "it has no MPI_IN_PLACE";
    }
    if (o->rotates && has(call, ROOTED) && call->init != NULL) {
        return "the root of a persistent call stays";
    }
    if (!displacements_fit(b, call, bytes)) {
        return "its displacements are above what int holds";
    }
    return memory_of(b, call, bytes) > (size_t)o->memory ? "its buffers need more than --memory"
                                                         : NULL;
}

/* Calls `visit` for every selected cell. */
static int for_each_cell(const struct options* o, struct cell* cell,
                         int (*visit)(const struct options* o, struct cell* cell)) {
    int result = 0;
    int i, k;

    for (i = 0; i < collbench_call_count; ++i) {
        cell->call = &collbench_calls[i];
        if (!selected(o, cell->call)) {
            continue;
        }
        for (k = 0; k < (has(cell->call, NO_SIZE) ? 1 : o->size_count); ++k) {
            cell->bytes = has(cell->call, NO_SIZE) ? 0 : o->sizes[k];
            result |= visit(o, cell);
        }
    }
    return result;
}

static int run_cell(const struct options* o, struct cell* cell) {
    const char* reason = reason_against(o, cell->buffers, cell->call, cell->bytes);

    if (reason == NULL) {
        return has(cell->call, RING) ? measure_on_ring(cell, o) : measure(cell, o);
    }
    if (cell->buffers->rank == 0) {
        fprintf(stderr, "collbench: %s of %d bytes is left out: %s\n", cell->call->name,
                cell->bytes, reason);
    }
    return 0;
}

/* Makes the buffers as long as the cell needs them, at least. */
static int lengthen(const struct options* o, struct cell* cell) {
    struct buffers* b = cell->buffers;

    if (reason_against(o, b, cell->call, cell->bytes) == NULL) {
        const size_t send = send_bytes(b, cell->call, cell->bytes);
        const size_t recv = recv_bytes(b, cell->call, cell->bytes);
        b->send_length = send > b->send_length ? send : b->send_length;
        b->recv_length = recv > b->recv_length ? recv : b->recv_length;
    }
    return 0;
}

static char* allocate(size_t bytes) {
    void* memory = NULL;

    if (posix_memalign(&memory, PAGE, bytes) != 0) {
        fprintf(stderr, "collbench: %zu bytes cannot be allocated\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(memory, 0, bytes);
    return memory;
}

static int processors(void) {
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Returns a quarter of the memory that hosts have available for each of their ranks; the least of
 * all ranks. Collective. */
static long memory_per_rank(MPI_Comm comm) {
    FILE* file = fopen("/proc/meminfo", "r");
    char line[256];
    MPI_Comm host;
    long kib = LONG_MAX >> 10;
    int ranks;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        sscanf(line, "MemAvailable: %ld", &kib);
    }
    if (file != NULL) {
        fclose(file);
    }
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &ranks);
    MPI_Comm_free(&host);
    kib /= 4L * ranks;
    MPI_Allreduce(MPI_IN_PLACE, &kib, 1, MPI_LONG, MPI_MIN, comm);
    return kib << 10;
}

static void make_buffers(const struct options* o, struct cell* cell) {
    struct buffers* b = cell->buffers;
    const size_t blocks = b->size < 2 ? 2 : b->size;

    for_each_cell(o, cell, lengthen);
    b->send = allocate(b->send_length + o->offset) + o->offset;
    b->recv = allocate(b->recv_length + o->offset) + o->offset;
    b->input = o->in_place ? MPI_IN_PLACE : b->send;
    b->counts = (int*)allocate(blocks * sizeof(int));
    b->displs = (int*)allocate(blocks * sizeof(int));
    b->byte_displs = (MPI_Aint*)allocate(blocks * sizeof(MPI_Aint));
    b->types = (MPI_Datatype*)allocate(blocks * sizeof(MPI_Datatype));
}

static void free_buffers(const struct options* o, struct buffers* b) {
    free(b->send - o->offset);
    free(b->recv - o->offset);
    free(b->counts);
    free(b->displs);
    free(b->byte_displs);
    free(b->types);
}

int main(int argc, char** argv) {
    struct options o = {.mode = MODE_B2B, .repetitions = 9, .cell_seconds = 0.1};
    struct buffers b = {0};
    struct cell cell = {.buffers = &b};
    int status, cpus;

    MPI_Init(&argc, &argv);
    b.comm = MPI_COMM_WORLD;
    MPI_Comm_rank(b.comm, &b.rank);
    MPI_Comm_size(b.comm, &b.size);
    parse_sizes(&o, "8,64,1k,8k,64k,256k,1M", 1);
    status = parse_options(argc, argv, &o, b.rank, b.size);
    if (status < 0) {
        o.memory = o.memory > 0 ? o.memory : memory_per_rank(b.comm);
        b.root = o.root;
        b.in_place = o.in_place;
        make_buffers(&o, &cell);
        cell.sync = sync_create(b.comm);
        cell.mode = o.mode;
        cell.rotates = o.rotates;
        cell.writes_input = o.writes_input;
        cpus = processors(); /* Bound ranks have one processor each, however many there are. */
        cell.yield = cpus > 1 && b.size > cpus;
        print_header(&o, b.rank);
        status = for_each_cell(&o, &cell, run_cell);
        sync_free(cell.sync);
        free_buffers(&o, &b);
    }
    MPI_Finalize();
    return status;
}
