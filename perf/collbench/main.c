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
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collbench.h"
#include "perf/option_value.h"

enum { MAX_SIZES = 64, PAGE = 4096 };

struct options {
    const char* collectives; /* NULL: the blocking ones. */
    int sizes[MAX_SIZES];
    int size_count;
    enum mode mode;
    int repetitions;
    double cell_seconds; /* Time for the repetitions of one cell together. */
    int offset;          /* Of the buffers, from the beginning of a page. */
    int writes_input;
    int csv;
};

static const char* const mode_names[] = {"b2b", "sep", "cyc", "mpi", "late"};
enum { MODES = sizeof(mode_names) / sizeof(mode_names[0]) };

static const char usage[] =
    "Usage: mpirun ... collbench [options]\n"
    "  -c, --collectives LIST   comma-separated names, which --list prints, or forms: blocking\n"
    "                           (default), nonblocking, persistent\n"
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

/* Returns whether `name` is the name of the call, or of its form. */
static int means(const char* name, size_t length, const struct call* call) {
    const char* form = collbench_form_names[call->form];

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

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char** argv, struct options* o, int rank) {
    static const struct option longs[] = {
        {"collectives", 1, NULL, 'c'}, {"sizes", 1, NULL, 's'}, {"mode", 1, NULL, 'm'},
        {"repetitions", 1, NULL, 'r'}, {"time", 1, NULL, 't'},  {"offset", 1, NULL, 'o'},
        {"write-input", 0, NULL, 'w'}, {"csv", 0, NULL, 'v'},   {"list", 0, NULL, 'l'},
        {"smoke", 0, NULL, 'k'},       {"help", 0, NULL, 'h'},  {NULL, 0, NULL, 0}};
    int c;
    int bad = 0;

    opterr = rank == 0;
    while ((c = getopt_long(argc, argv, "c:s:m:r:t:o:wh", longs, NULL)) != -1) {
        switch (c) {
        case 'c':
            o->collectives = optarg;
            bad |= check_collectives(optarg, rank == 0);
            break;
        case 's': bad |= parse_sizes(o, optarg, rank == 0) != 0; break;
        case 'm': bad |= parse_mode(o, optarg, rank == 0) != 0; break;
        case 'r':
            o->repetitions =
                (int)option_count("--repetitions", optarg, 1, MAX_REPETITIONS, rank == 0);
            break;
        case 't': o->cell_seconds = option_seconds("--time", optarg, rank == 0); break;
        case 'o': o->offset = (int)option_size("--offset", optarg, 0, PAGE - 1, rank == 0); break;
        case 'w': o->writes_input = 1; break;
        case 'v': o->csv = 1; break;
        case 'k':
            parse_sizes(o, "1k", 1);
            o->repetitions = 2;
            o->cell_seconds = 0.002;
            break;
        case 'l':
            if (rank == 0) {
                print_calls();
            }
            return 0;
        case 'h':
            if (rank == 0) {
                fputs(usage, stdout);
            }
            return 0;
        default: bad = 1;
        }
    }
    bad |= option_end(optind, argc, argv, rank == 0) != 0;
    if (bad || o->repetitions < 0 || o->cell_seconds < 0 || o->offset < 0) {
        if (rank == 0) {
            fputs(usage, stderr);
        }
        return 2;
    }
    return -1;
}

static int selected(const struct options* o, const struct call* call) {
    const char* name = o->collectives;

    if (name == NULL) {
        return call->form == FORM_BLOCKING;
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

/* Returns 0 if the result is right on all ranks. */
static int measure(const struct cell* cell, const struct options* o) {
    struct buffers* b = cell->buffers;
    struct timing timing;
    int wrong;

    buffers_fill(b, cell->call, cell->bytes);
    if (cell->call->init != NULL) {
        cell->call->init(b, cell->bytes);
    }
    time_cell(cell, o->repetitions, o->cell_seconds, &timing);
    if (cell->call->init != NULL) {
        MPI_Request_free(&b->request);
    }
    wrong = cell->call->check(b, cell->bytes);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, b->comm);
    if (b->rank == 0) {
        print_row(cell, &timing, o, wrong);
    }
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

static int run_all(const struct options* o, struct cell* cell) {
    int wrong = 0;
    int i, k;

    print_header(o, cell->buffers->rank);
    for (i = 0; i < collbench_call_count; ++i) {
        cell->call = &collbench_calls[i];
        if (!selected(o, cell->call)) {
            continue;
        }
        for (k = 0; k < (cell->call->has_size ? o->size_count : 1); ++k) {
            cell->bytes = cell->call->has_size ? o->sizes[k] : 0;
            if (!cell->call->reduces || cell->bytes % (int)sizeof(double) == 0) {
                wrong |= measure(cell, o);
            } else if (cell->buffers->rank == 0) {
                fprintf(stderr,
                        "collbench: %s of %d bytes is left out: no whole number of "
                        "doubles\n",
                        cell->call->name, cell->bytes);
            }
        }
    }
    return wrong;
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

int main(int argc, char** argv) {
    struct options o = {NULL, {0}, 0, MODE_B2B, 9, 0.1, 0, 0, 0};
    struct buffers b;
    struct cell cell = {0};
    size_t largest = 0;
    int status, i, cpus;

    MPI_Init(&argc, &argv);
    b.comm = MPI_COMM_WORLD;
    MPI_Comm_rank(b.comm, &b.rank);
    MPI_Comm_size(b.comm, &b.size);
    parse_sizes(&o, "8,64,1k,8k,64k,256k,1M", 1);
    status = parse_options(argc, argv, &o, b.rank);
    if (status < 0) {
        for (i = 0; i < o.size_count; ++i) {
            largest = (size_t)o.sizes[i] > largest ? (size_t)o.sizes[i] : largest;
        }
        b.send = allocate(largest * b.size + o.offset) + o.offset;
        b.recv = allocate(largest * b.size + o.offset) + o.offset;
        b.counts = (int*)allocate(b.size * sizeof(int));
        b.displs = (int*)allocate(b.size * sizeof(int));
        cell.buffers = &b;
        cell.sync = sync_create(b.comm);
        cell.mode = o.mode;
        cell.writes_input = o.writes_input;
        cpus = processors(); /* Bound ranks have one processor each, however many there are. */
        cell.yield = cpus > 1 && b.size > cpus;
        status = run_all(&o, &cell);
        sync_free(cell.sync);
        free(b.send - o.offset);
        free(b.recv - o.offset);
        free(b.counts);
        free(b.displs);
    }
    MPI_Finalize();
    return status;
}
