/*
 * What the tests of this folder put in trouble: one program, one part for each argument. Prints
 * "PART ok" from rank 0 when every result was right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "faults: wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int rank_in(MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

static int size_of(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

static int* integers(int count) {
    int* data = malloc((size_t)count * sizeof *data);
    require(NULL != data, "memory of the program");
    return data;
}

/** An allreduce and a broadcast of `count` integers whose results are known. */
static void reduce_and_spread(MPI_Comm comm, int count, int salt) {
    const int size = size_of(comm);
    const int rank = rank_in(comm);
    int* mine = integers(count);
    int* sum = integers(count);
    for (int i = 0; i < count; i++) {
        mine[i] = rank + salt + i;
        sum[i] = -1;
    }
    MPI_Allreduce(mine, sum, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++) {
        require(sum[i] == size * (size - 1) / 2 + size * (salt + i), "allreduce");
    }
    if (rank != salt % size) {
        memset(sum, 0, (size_t)count * sizeof *sum);
    }
    MPI_Bcast(sum, count, MPI_INT, salt % size, comm);
    require(sum[count - 1] == size * (size - 1) / 2 + size * (salt + count - 1), "bcast");
    free(sum);
    free(mine);
}

/** An alltoall of blocks whose contents are known. */
static void exchange(MPI_Comm comm, int count, int salt) {
    const int size = size_of(comm);
    const int rank = rank_in(comm);
    int* out = integers(size * count);
    int* in = integers(size * count);
    for (int i = 0; i < size * count; i++) {
        out[i] = salt + 1000 * rank + i / count;
        in[i] = -1;
    }
    MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, comm);
    for (int i = 0; i < size * count; i++) {
        require(in[i] == salt + 1000 * (i / count) + rank, "alltoall");
    }
    MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, comm);
    for (int i = 0; i < size * count; i++) {
        require(in[i] == salt + 1000 * (i / count), "allgather");
    }
    free(in);
    free(out);
}

static void use(MPI_Comm comm, int count, int salt) {
    reduce_and_spread(comm, count, salt);
    exchange(comm, count, salt);
    MPI_Barrier(comm);
}

/* ------------------------------------------------------------------ check, limit */

/** Runs short, long and very long collectives on the world and on both halves of it. */
static void check(void) {
    static const int counts[] = {1, 1000, 100000};
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank_in(MPI_COMM_WORLD) % 2, 0, &half);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        use(MPI_COMM_WORLD, counts[i], (int)i);
        use(half, counts[i], (int)i + 1);
    }
    MPI_Comm_free(&half);
}

/** Bytes of address space that the process has now. */
static rlim_t address_space(void) {
    unsigned long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    require(NULL != file && 1 == fscanf(file, "%lu", &pages), "/proc/self/statm");
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/** The lowest number that no descriptor has. */
static rlim_t next_descriptor(void) {
    const int fd = dup(0);
    require(fd >= 0, "dup");
    close(fd);
    return (rlim_t)fd;
}

/**
 * Lowers a limit after MPI_Init, which has needs of its own, and before the first collective. "as"
 * limits the address space to that many bytes more than now, "nofile" the descriptors to that many
 * more than now, "fsize" files to that many bytes. It does so on all ranks, or on one rank only.
 */
static void limit(const char* what, const char* amount, const char* only_rank) {
    static const struct {
        const char* name;
        int resource;
    } kinds[] = {{"as", RLIMIT_AS}, {"fsize", RLIMIT_FSIZE}, {"nofile", RLIMIT_NOFILE}};
    size_t kind = 0;
    while (kind < 2 && 0 != strcmp(kinds[kind].name, what)) {
        kind++;
    }
    rlim_t value = strtoul(amount, NULL, 10);
    value += RLIMIT_AS == kinds[kind].resource ? address_space() : 0;
    value += RLIMIT_NOFILE == kinds[kind].resource ? next_descriptor() : 0;
    const struct rlimit limits = {value, value};
    if (NULL == only_rank || rank_in(MPI_COMM_WORLD) == strtol(only_rank, NULL, 10)) {
        require(0 == setrlimit(kinds[kind].resource, &limits), "setrlimit");
    }
    check();
}

/* ------------------------------------------------------------------ mismatch */

/**
 * Prints what an erroneous program is told. Ranks that are told of an error abort one after
 * another, so that the first one ends the job: mpirun of Open MPI 4.1 often crashes when several
 * ranks abort at a time (rml/oob, from PMIx's log), and the processes that it has started may then
 * stay.
 */
static void tell_failure(const char* what, int error) {
    int class;
    MPI_Error_class(error, &class);
    printf("rank %d: the %s failed%s\n", rank_in(MPI_COMM_WORLD), what,
           MPI_ERR_TRUNCATE == class ? ", as Open MPI says it" : "");
    fflush(stdout);
    usleep(200000 * (unsigned)rank_in(MPI_COMM_WORLD));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/** The ranks disagree about the length of a broadcast. */
static void mismatch(const char* bytes) {
    const int count = (int)strtol(bytes, NULL, 10);
    const int mine = 0 == rank_in(MPI_COMM_WORLD) ? count : count / 2;
    char* data = calloc(1, (size_t)count);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    const int error = MPI_Bcast(data, mine, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (MPI_SUCCESS != error) {
        tell_failure("broadcast", error);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
}

/** Sends blocks of `counts` elements from `much`, and receives half as many of each. */
static int call_alltoall_with_two_lengths(int of_one_type, const int* much, const int* counts,
                                          int* little) {
    enum { RANKS_MAX = 16 };
    int halves[RANKS_MAX];
    int places[RANKS_MAX];
    int half_places[RANKS_MAX];
    MPI_Datatype types[RANKS_MAX];
    const int unit = of_one_type ? 1 : (int)sizeof(int);
    for (int i = 0; i < RANKS_MAX; i++) {
        halves[i] = counts[i] / 2;
        places[i] = i * counts[i] * unit;
        half_places[i] = i * halves[i] * unit;
        types[i] = MPI_INT;
    }
    return of_one_type ? MPI_Alltoallv(much, counts, places, MPI_INT, little, halves, half_places,
                                       MPI_INT, MPI_COMM_WORLD)
                       : MPI_Alltoallw(much, counts, places, types, little, halves, half_places,
                                       types, MPI_COMM_WORLD);
}

/** Calls the collective with 8 integers for each rank on one side, and 4 on the other: with the
 *  vector that begins at `little`, which ends there, the library must leave the rest alone. */
static int call_with_two_lengths(const char* collective, int* much, int* little) {
    enum { MUCH = 8, LITTLE = 4, RANKS_MAX = 16 };
    int counts[RANKS_MAX];
    int places[RANKS_MAX];
    for (int i = 0; i < RANKS_MAX; i++) {
        counts[i] = MUCH;
        places[i] = i * MUCH;
    }
    const MPI_Comm comm = MPI_COMM_WORLD;
    if (0 == strcmp(collective, "scatter")) {
        return MPI_Scatter(little, LITTLE, MPI_INT, much, MUCH, MPI_INT, 0, comm);
    }
    if (0 == strcmp(collective, "gather")) {
        return MPI_Gather(much, MUCH, MPI_INT, little, LITTLE, MPI_INT, 0, comm);
    }
    if (0 == strcmp(collective, "allgather")) {
        return MPI_Allgather(little, LITTLE, MPI_INT, much, MUCH, MPI_INT, comm);
    }
    if (0 == strcmp(collective, "allgatherv")) {
        return MPI_Allgatherv(little, LITTLE, MPI_INT, much, counts, places, MPI_INT, comm);
    }
    if (0 == strcmp(collective, "alltoall")) {
        return MPI_Alltoall(little, LITTLE, MPI_INT, much, MUCH, MPI_INT, comm);
    }
    if (0 == strcmp(collective, "alltoallv") || 0 == strcmp(collective, "alltoallw")) {
        return call_alltoall_with_two_lengths('v' == collective[8], much, counts, little);
    }
    if (0 == strcmp(collective, "gatherv")) {
        return MPI_Gatherv(little, LITTLE, MPI_INT, much, counts, places, MPI_INT, 0, comm);
    }
    return MPI_Scatterv(much, counts, places, MPI_INT, little, LITTLE, MPI_INT, 0, comm);
}

/** Rank 0 gives its own block other lengths on the two sides of a collective. */
static void own_block(const char* collective) {
    enum { INTEGERS_MAX = 16 * 8, LITTLE_MAX = 16 * 4 };
    int* much = calloc(INTEGERS_MAX, sizeof(int));
    int* little = calloc(2 * LITTLE_MAX, sizeof(int));
    for (int i = 0; i < INTEGERS_MAX; i++) {
        much[i] = 1;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank_in(MPI_COMM_WORLD)) {
        const int error = call_with_two_lengths(collective, much, little);
        for (int i = 4 * size_of(MPI_COMM_WORLD); i < 2 * LITTLE_MAX; i++) {
            require(0 == little[i], "an array that is not written beyond its end");
        }
        require(MPI_SUCCESS != error, "an error");
        tell_failure(collective, error);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(much);
    free(little);
}

/**
 * The other ranks want less of a broadcast than its root sends, and go on as if nothing had
 * happened. The root has sent all that it had to, and waits in the next collective for ranks that
 * do not come.
 */
static void go_on(const char* bytes) {
    const int count = (int)strtol(bytes, NULL, 10);
    const int mine = 0 == rank_in(MPI_COMM_WORLD) ? count : count / 2;
    char* data = calloc(1, (size_t)count);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(data, mine, MPI_BYTE, 0, MPI_COMM_WORLD);
    int sum = 0;
    const int one = 1;
    const int error = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    require(MPI_SUCCESS != error || sum == size_of(MPI_COMM_WORLD), "an allreduce afterwards");
    printf("rank %d went on\n", rank_in(MPI_COMM_WORLD));
    fflush(stdout);
    free(data);
}

/** Only rank 1 reduces in place. MPI does not allow it; Open MPI computes the right result. */
static void in_place(const char* bytes) {
    const int count = (int)(strtol(bytes, NULL, 10) / (long)sizeof(int));
    const int size = size_of(MPI_COMM_WORLD);
    const int rank = rank_in(MPI_COMM_WORLD);
    int* mine = integers(count);
    int* sum = integers(count);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < count; i++) {
            mine[i] = rank + i + round;
            sum[i] = 1 == rank ? mine[i] : -1;
        }
        const int error = MPI_Allreduce(1 == rank ? MPI_IN_PLACE : mine, sum, count, MPI_INT,
                                        MPI_SUM, MPI_COMM_WORLD);
        if (MPI_SUCCESS != error) {
            tell_failure("allreduce", error);
        }
        for (int i = 0; i < count; i++) {
            require(sum[i] == size * (size - 1) / 2 + size * (i + round), "allreduce");
        }
    }
    free(sum);
    free(mine);
}

/* ------------------------------------------------------------------ communicators */

/** The value in kB of a "Key: value kB" line of a file in /proc. */
static long kilobytes(const char* path, const char* key) {
    char line[256];
    long value = 0;
    FILE* file = fopen(path, "r");
    require(NULL != file, path);
    while (NULL != fgets(line, sizeof line, file)) {
        if (0 == strncmp(line, key, strlen(key))) {
            value += strtol(line + strlen(key), NULL, 10);
        }
    }
    fclose(file);
    return value;
}

/** Counts the open descriptors. *leased_kb becomes the memory of the library's own segment,
 * which is what is leased. */
static int descriptors(long* leased_kb) {
    int count = 0;
    *leased_kb = 0;
    for (int fd = 0; fd < 4096; fd++) {
        char path[64];
        char target[16] = "";
        struct stat info;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof target - 1) > 0) {
            count++;
            if (0 == strncmp(target, "/memfd:ucg", 10) && 0 == fstat(fd, &info)) {
                *leased_kb += (long)info.st_blocks / 2;
            }
        }
    }
    return count;
}

static int mappings(void) {
    int count = 0;
    FILE* file = fopen("/proc/self/maps", "r");
    require(NULL != file, "/proc/self/maps");
    for (int c = getc(file); EOF != c; c = getc(file)) {
        count += '\n' == c;
    }
    fclose(file);
    return count;
}

/**
 * All ranks have left the collectives that used the freed memory, and each has waited for another
 * one since: memory that a peer might still have read goes back to its owner when the owner next
 * waits.
 */
static void settle(void) {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int late = 0; late < ranks; late++) {
        if (late == rank_in(MPI_COMM_WORLD)) {
            usleep(10000);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/** Every rank prints what it holds. Mapped memory is counted as address space, whether or not it
 * has pages. */
static void tell_usage(int round, int highest_id) {
    settle();
    long leased_kb;
    const int open = descriptors(&leased_kb);
    printf("usage rank %d round %d: %ld kB resident, %ld kB mapped, %d mappings, %d descriptors, "
           "%ld kB leased, ids to %d\n",
           rank_in(MPI_COMM_WORLD), round, kilobytes("/proc/self/smaps", "Rss:"),
           kilobytes("/proc/self/status", "VmSize:"), mappings(), open, leased_kb, highest_id);
    fflush(stdout);
}

/** Makes a communicator of one of the kinds in turn, and runs short and longer collectives on
 * it. */
static MPI_Comm new_communicator(int i) {
    MPI_Comm comm;
    if (0 == i % 4) {
        MPI_Comm_split(MPI_COMM_WORLD, rank_in(MPI_COMM_WORLD) % 2, 0, &comm);
    } else {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    use(comm, 1 + i % 4 * 2000, i);
    return comm;
}

/** Makes `count` communicators, `alive` of which exist at a time. */
static void communicators(int count, int alive) {
    MPI_Comm* comms = malloc((size_t)alive * sizeof *comms);
    int highest_id = 0;
    require(NULL != comms, "memory of the program");
    for (int i = 1; i <= count; i++) {
        MPI_Comm* comm = &comms[i % alive];
        if (i > alive) {
            use(*comm, 1, i);
            MPI_Comm_free(comm);
        }
        *comm = new_communicator(i);
        highest_id = MPI_Comm_c2f(*comm) > highest_id ? MPI_Comm_c2f(*comm) : highest_id;
        if (count / 10 == i || count == i) {
            tell_usage(i, highest_id);
        }
    }
    for (int i = 0; i < alive; i++) {
        MPI_Comm_free(&comms[i]);
    }
    free(comms);
    tell_usage(count + 1, highest_id);
}

/* ------------------------------------------------------------------ children */

/** Runs in a child, which never calls MPI. */
static void be_child(int kind) {
    if (0 == kind) {
        _exit(7);
    }
    if (1 == kind) {
        exit(7); /* This runs the exit handlers of the libraries. */
    }
    if (2 == kind) {
        execl("/bin/sh", "sh", "-c", "ls -l /proc/self/fd; exit 7", (char*)NULL);
    }
    char* touched = malloc(1 << 20);
    memset(touched, kind, 1 << 20); /* This makes copies of pages that the parent uses. */
    usleep(20000);
    _exit(7);
}

static void bear_child(int kind, MPI_Comm comm, int salt) {
    fflush(stdout);
    int status = 0;
    const pid_t child = fork();
    require(child >= 0, "fork");
    if (0 == child) {
        be_child(kind);
    }
    use(comm, 5000, salt); /* The child lives meanwhile. */
    require(child == waitpid(child, &status, 0), "waitpid");
    require(WIFEXITED(status) && 7 == WEXITSTATUS(status), "a child's end");
    use(comm, 5000, salt + 1);
}

/** Starts children before the first collective and in the middle of others. */
static void children(void) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 20; i++) {
        bear_child(i % 4, 0 == i % 2 ? comm : MPI_COMM_WORLD, i);
    }
    MPI_Comm_free(&comm);
}

/* ------------------------------------------------------------------ late */

/** Rank 0 comes late to a barrier. The other ranks print how often they gave their processor
 * away until then, and how much of it they used all the same. */
static void late(long milliseconds) {
    struct rusage before, after;
    use(MPI_COMM_WORLD, 1, 0); /* After this, nothing remains that is done only once. */
    MPI_Barrier(MPI_COMM_WORLD);
    getrusage(RUSAGE_SELF, &before);
    if (0 == rank_in(MPI_COMM_WORLD)) {
        usleep((useconds_t)milliseconds * 1000);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    getrusage(RUSAGE_SELF, &after);
    if (0 != rank_in(MPI_COMM_WORLD)) {
        const long used_us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec +
                              after.ru_stime.tv_sec - before.ru_stime.tv_sec) *
                                 1000000 +
                             after.ru_utime.tv_usec - before.ru_utime.tv_usec +
                             after.ru_stime.tv_usec - before.ru_stime.tv_usec;
        printf("waited rank %d: %ld naps, %ld us used\n", rank_in(MPI_COMM_WORLD),
               after.ru_nvcsw - before.ru_nvcsw, used_us);
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ------------------------------------------------------------------ parts */

int main(int argc, char** argv) {
    const char* part = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    if (0 == strcmp(part, "check")) {
        check();
    } else if (0 == strcmp(part, "limit") && argc > 3) {
        limit(argv[2], argv[3], argv[4]);
    } else if (0 == strcmp(part, "mismatch") && argc > 2) {
        mismatch(argv[2]);
    } else if (0 == strcmp(part, "own_block") && argc > 2) {
        own_block(argv[2]);
    } else if (0 == strcmp(part, "go_on") && argc > 2) {
        go_on(argv[2]);
    } else if (0 == strcmp(part, "in_place") && argc > 2) {
        in_place(argv[2]);
    } else if (0 == strcmp(part, "communicators") && argc > 3) {
        communicators((int)strtol(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10));
    } else if (0 == strcmp(part, "children")) {
        children();
    } else if (0 == strcmp(part, "late") && argc > 2) {
        late(strtol(argv[2], NULL, 10));
    } else {
        require(0, "no such part");
    }
    if (0 == rank_in(MPI_COMM_WORLD)) {
        printf("%s ok\n", part);
    }
    MPI_Finalize();
    return 0;
}
