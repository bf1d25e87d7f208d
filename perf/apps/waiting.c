/*
 * Measures what proceeds while ranks wait in a collective: rank 0 reads memory of rank 1 by
 * passive-target gets, and sends it messages by rendezvous, while all other ranks are in a barrier.
 * MPI's progress rule requires both to complete; how soon depends on how the library waits.
 *
 * The phases are: one lock, get and unlock; and one message to a receive that was posted before the
 * barrier. Both are measured back to back, and ("_alone") each time after the ranks have waited for
 * a while with nothing to do. A further phase, "idle", is the processor time that a waiting rank
 * uses, in us per second of waiting.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps.h"
#include "perf/option_value.h"

static const char help[] =
    "usage: waiting [options]\n"
    "\n"
    "Rank 0 gets memory of rank 1 and sends it messages while all others wait in MPI_Barrier.\n"
    "\n"
    "  --count N    gets and messages that follow one another (default 2000)\n"
    "  --alone N    gets and messages that come after a pause (default 20)\n"
    "  --pause MS   that pause, in milliseconds (default 10)\n"
    "  --bytes N    of a message; k and M are 1024 and 1048576 (default 64k)\n"
    "  --csv        rows as phase,bytes,calls,mean_us,result\n"
    "  --smoke      almost no work\n"
    "  -h, --help   this text\n";

struct options {
    long count;
    long alone;
    long pause_ms;
    long bytes;
    int csv;
};

static int rank_of_world(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static double processor_time(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

static void pause_for(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Rank 0 gets the words of rank 1's window one by one. Returns how many were wrong. */
static int get_words(struct phases* p, const char* name, long count, long pause_ms) {
    enum { WORDS = 1024 };
    long* memory = allocate(WORDS * sizeof *memory);
    long got = -1;
    int wrong = 0;
    MPI_Win window;

    for (int i = 0; i < WORDS; ++i) {
        memory[i] = 1000 + i;
    }
    MPI_Win_create(memory, WORDS * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 0; i < count && rank_of_world() == 0; ++i) {
        double start;
        pause_for(pause_ms);
        start = MPI_Wtime();
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
        MPI_Get(&got, 1, MPI_LONG, 1, i % WORDS, 1, MPI_LONG, window);
        MPI_Win_unlock(1, window);
        phases_add(p, name, sizeof got, MPI_Wtime() - start);
        wrong += got != 1000 + i % WORDS;
    }
    if (rank_of_world() != 0) {
        phases_add(p, name, sizeof got, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    free(memory);
    return wrong;
}

/* Rank 0 sends to receives that rank 1 has posted before it waits. Returns how many were wrong. */
static int messages(struct phases* p, const char* name, long bytes, long count, long pause_ms) {
    const int rank = rank_of_world();
    char* memory = allocate((size_t)bytes);
    int wrong = 0;

    for (long i = 0; i < count; ++i) {
        MPI_Request receive = MPI_REQUEST_NULL;
        if (rank == 1) {
            MPI_Irecv(memory, (int)bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &receive);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            double start;
            memset(memory, (int)(i % 100) + 1, (size_t)bytes);
            pause_for(pause_ms);
            start = MPI_Wtime();
            MPI_Send(memory, (int)bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            phases_add(p, name, bytes, MPI_Wtime() - start);
        } else {
            phases_add(p, name, bytes, 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        wrong += memory[bytes - 1] != (rank <= 1 ? i % 100 + 1 : 0);
    }
    free(memory);
    return wrong;
}

/* Measures the processor time that the slowest of the other ranks uses while rank 0 is late. */
static void idle(struct phases* p, long pause_ms) {
    double used;
    MPI_Barrier(MPI_COMM_WORLD);
    used = processor_time();
    if (rank_of_world() == 0) {
        pause_for(100 * pause_ms);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    used = processor_time() - used;
    phases_add(p, "idle", 0,
               rank_of_world() == 0 ? 0 : used / (0.1 * (double)(pause_ms > 0 ? pause_ms : 1)));
}

static int measure(const struct options* o) {
    struct phases p = {.count = 0};
    int wrong = get_words(&p, "get", o->count, 0);

    wrong += get_words(&p, "get_alone", o->alone, o->pause_ms);
    wrong += messages(&p, "message", o->bytes, o->count, 0);
    wrong += messages(&p, "message_alone", o->bytes, o->alone, o->pause_ms);
    idle(&p, o->pause_ms);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    phases_print(&p, "", o->csv, wrong, MPI_COMM_WORLD);
    return wrong > 0;
}

/* Returns the exit status if the program is to end now, else -1. */
static int parse(int argc, char** argv, struct options* o) {
    static const struct option known[] = {
        {"count", required_argument, NULL, 'c'}, {"alone", required_argument, NULL, 'a'},
        {"pause", required_argument, NULL, 'p'}, {"bytes", required_argument, NULL, 'b'},
        {"csv", no_argument, NULL, 'v'},         {"smoke", no_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    const int say = rank_of_world() == 0;
    int bad = 0;

    opterr = say;
    for (int option; (option = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        switch (option) {
        case 'c': o->count = option_count("--count", optarg, 1, 1L << 30, say); break;
        case 'a': o->alone = option_count("--alone", optarg, 1, 1L << 20, say); break;
        case 'p': o->pause_ms = option_count("--pause", optarg, 0, 100000, say); break;
        case 'b': o->bytes = option_size("--bytes", optarg, 1, 1L << 30, say); break;
        case 'v': o->csv = 1; break;
        case 's':
            o->count = 20;
            o->alone = o->pause_ms = 1;
            break;
        case 'h':
            if (say) {
                fputs(help, stdout);
            }
            return 0;
        default: bad = 1;
        }
    }
    if (bad || optind < argc || o->count < 0 || o->alone < 0 || o->pause_ms < 0 || o->bytes < 0) {
        if (say) {
            fputs(help, stderr);
        }
        return 2;
    }
    return -1;
}

int main(int argc, char** argv) {
    struct options o = {2000, 20, 10, 64 << 10, 0};
    int size;
    int status;

    MPI_Init(&argc, &argv);
    status = parse(argc, argv, &o);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (status < 0 && size < 2) {
        fputs("waiting: needs two ranks\n", stderr);
        status = 2;
    }
    if (status < 0) {
        status = measure(&o);
    }
    MPI_Finalize();
    return status;
}
