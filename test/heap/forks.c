/*
 * fork() when the memory is a shared mapping: a child's memory must be its own.
 *
 *   forks apart       child and grandchild change everything; the parent sees nothing of it
 *   forks threads     the same while other threads allocate and free
 *   forks streams     the same while other threads use streams
 *   forks closed      the same after the program closed every descriptor that it did not open
 *   forks holes       then holes in the heap stay holes, in the parent and in the child
 *   forks refused     then, with too little memory for a copy, fork fails
 *   forks no_room     the same with no address space for a copy
 *   forks within      fork within the C library cannot fail then: the child ends and says why
 *   forks waited      the same while the parent does nothing but wait: so also without a copy
 *   forks start       posix_spawn, system, popen and vfork
 *   forks zeros       what a child gets fresh is zero
 *   forks freed       what was freed is not copied
 *   forks returned    what a child frees goes back to the system
 *   forks small       a thread with little stack forks, and a signal handler on a stack of its own
 *   forks guarded     a page that nobody may read lies in a large block
 *   forks bare        the same after the program closed every descriptor that it did not open
 *   forks scattered N P         a heap with N pieces of P pages, and holes between them
 *   forks scattered N P write   the same while the parent writes into the holes
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap_maps.h"

enum { BLOCKS = 40, THREADS = 3, FORKS = 8, SKIPPED = 77 };

extern char** environ;

static unsigned char* blocks[BLOCKS];
static atomic_bool stop;
static atomic_int small_forks;

static size_t bytes_of(int i) {
    return (size_t)1000 << (i % 11);
}

static void fill(unsigned char value) {
    for (int i = 0; i < BLOCKS; ++i) {
        memset(blocks[i], value, bytes_of(i));
    }
}

static bool filled(unsigned char value) {
    for (int i = 0; i < BLOCKS; ++i) {
        if (blocks[i][0] != value || memcmp(blocks[i], blocks[i] + 1, bytes_of(i) - 1) != 0) {
            return false;
        }
    }
    return true;
}

/* In the child of a process with one thread, a program may use any function. */
static bool child_can_allocate(void) {
    for (int i = 0; i < BLOCKS; ++i) {
        unsigned char* block = calloc(1, bytes_of(i));

        if (block == NULL || block[0] != 0 || memcmp(block, block + 1, bytes_of(i) - 1) != 0 ||
            in_heap(block)) {
            return false;
        }
        memset(block, 9, bytes_of(i));
        if (i % 2 == 0) {
            free(block);
        }
    }
    return true;
}

static bool ended_well(pid_t child) {
    int status = -1;

    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static int grandchild(void) {
    if (!filled(2)) {
        return 21;
    }
    fill(3);
    return child_can_allocate() && filled(3) ? 0 : 22;
}

static int child(void) {
    pid_t second;

    if (!filled(1)) {
        return 11;
    }
    fill(2);
    if (!child_can_allocate()) {
        return 12;
    }
    second = fork();
    if (second == 0) {
        _exit(grandchild());
    }
    return ended_well(second) && filled(2) ? 0 : 13;
}

static void allocate_blocks(void) {
    for (int i = 0; i < BLOCKS; ++i) {
        blocks[i] = malloc(bytes_of(i));
    }
}

static int waited(void) {
    allocate_blocks();
    for (int round = 0; round < 3; ++round) {
        pid_t first;

        fill(1);
        first = fork();
        if (first == 0) {
            alarm(60);
            _exit(child());
        }
        if (!ended_well(first) || !filled(1)) {
            fprintf(stderr, "round %d: the child or its parent saw the other's memory\n", round);
            return 1;
        }
    }
    return in_heap(blocks[10]) ? 0 : 1;
}

/* The parent goes on changing its blocks while the child looks at its own copies. */
static int apart(int rounds) {
    allocate_blocks();
    for (int round = 0; round < rounds; ++round) {
        pid_t first;

        fill(1);
        first = fork();
        if (first == 0) {
            alarm(60);
            _exit(child());
        }
        if (!filled(1)) {
            return 1;
        }
        fill(4);
        if (!ended_well(first) || !filled(4)) {
            fprintf(stderr, "round %d: the child or its parent saw the other's memory\n", round);
            return 1;
        }
    }
    return in_heap(blocks[10]) ? 0 : 1;
}

static void* allocate_all_the_time(void* argument) {
    const unsigned char value = (unsigned char)(uintptr_t)argument;

    for (size_t i = 0; !atomic_load(&stop); ++i) {
        const size_t bytes = (size_t)500 << (i % 12);
        unsigned char* block = calloc(1, bytes);

        if (block == NULL || block[0] != 0 || block[bytes - 1] != 0) {
            abort();
        }
        memset(block, value, bytes);
        if (block[bytes / 2] != value) {
            abort();
        }
        free(block);
    }
    return NULL;
}

static void* write_all_the_time(void* argument) {
    (void)argument;
    while (!atomic_load(&stop)) {
        FILE* stream = fopen("/dev/null", "we");
        char buffer[1 << 15];

        if (stream == NULL) {
            abort();
        }
        setvbuf(stream, buffer, _IOFBF, sizeof(buffer));
        for (int i = 0; i < 100; ++i) {
            fprintf(stream, "line %d\n", i);
        }
        fclose(stream);
    }
    return NULL;
}

static int among_threads(void* (*work)(void*)) {
    pthread_t threads[THREADS];
    int failures;

    for (int i = 0; i < THREADS; ++i) {
        pthread_create(&threads[i], NULL, work, (void*)(uintptr_t)(i + 50));
    }
    failures = apart(FORKS);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
    return failures;
}

static void close_all(void) {
    for (int fd = 3; fd < 1024; ++fd) {
        close(fd);
    }
    /* Other files take the numbers. */
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
    }
    for (int fd = 3; fd < 20; ++fd) {
        close(fd);
    }
}

static int closed(void) {
    close_all();
    return apart(2);
}

static int holes(void) {
    enum { BYTES = 64 << 20, SLACK_KB = 16 << 10 };
    static unsigned char there[BYTES / 4096];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char* block = malloc(BYTES);
    const long before = resident_kb();
    struct sysinfo machine;
    size_t pages = 0;
    pid_t second;

    if (sysinfo(&machine) != 0 || machine.totalswap > 0) {
        return SKIPPED; /* Then nothing tells a hole from what was swapped out. */
    }
    block[0] = 1;
    block[BYTES - 1] = 2;
    close_all();
    second = fork();
    if (second == 0) {
        const long after = resident_kb();

        _exit(block[0] == 1 && block[BYTES - 1] == 2 && after < before + SLACK_KB ? 0 : 1);
    }
    if (!ended_well(second) ||
        mincore((void*)((uintptr_t)block / page * page), BYTES, there) != 0) {
        return 1;
    }
    for (size_t i = 0; i < BYTES / page; ++i) {
        pages += there[i] & 1;
    }
    return pages < SLACK_KB / 4 ? 0 : 1;
}

static int refused(bool address_space) {
    const struct rlimit nothing_more = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
    int failures = 0;

    allocate_blocks();
    fill(1);
    close_all();
    if (!address_space && setrlimit(RLIMIT_AS, &nothing_more) != 0) {
        return 1;
    }
    for (int i = 0; i < 2; ++i) {
        const pid_t first = fork();
        const int error = errno;

        if (first == 0) {
            _exit(0);
        }
        failures += first == -1 && error == ENOMEM && filled(1) ? 0 : 1;
    }
    return failures;
}

/* The child ends rather than write into its parent's memory. */
static int within(void) {
    const struct rlimit nothing_more = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
    void* library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    union {
        void* address;
        pid_t (*function)(void);
    } found = {library == NULL ? NULL : dlsym(library, "fork")};
    int status = -1;
    pid_t first;

    allocate_blocks();
    fill(1);
    close_all();
    if (found.address == NULL || setrlimit(RLIMIT_AS, &nothing_more) != 0) {
        return 1;
    }
    first = found.function();
    if (first == 0) {
        fill(2);
        _exit(0);
    }
    return first > 0 && waitpid(first, &status, 0) == first && WIFSIGNALED(status) &&
                   WTERMSIG(status) == SIGABRT && filled(1)
               ? 0
               : 1;
}

static bool vforked(void) {
    const pid_t second = vfork();

    if (second == 0) {
        execl("/bin/true", "true", (char*)NULL);
        _exit(1);
    }
    return ended_well(second) && filled(1);
}

/* The names are in brackets since these calls are banned elsewhere; here it is tested that they
 * work. */
static int start(void) {
    char* arguments[] = {"true", NULL};
    char line[16] = "";
    pid_t spawned;
    FILE* pipe;

    if (apart(1) != 0) {
        return 1;
    }
    fill(1);
    if (posix_spawn(&spawned, "/bin/true", NULL, NULL, arguments, environ) != 0 ||
        !ended_well(spawned) || (system)("exit 0") != 0 || !vforked()) {
        return 1;
    }
    pipe = (popen)("echo here", "re");
    if (pipe == NULL || fgets(line, sizeof(line), pipe) == NULL || strcmp(line, "here\n") != 0 ||
        pclose(pipe) != 0) {
        return 1;
    }
    spawned = fork();
    if (spawned == 0) {
        execl("/bin/true", "true", (char*)NULL);
        _exit(1);
    }
    return ended_well(spawned) && filled(1) ? 0 : 1;
}

/* Memory that was freed, purged and used again meanwhile must not be taken for zeros. */
static int zeros(void) {
    unsigned char* kept = malloc(1 << 20);

    memset(kept, 7, 1 << 20);
    for (int round = 0; round < 20; ++round) {
        unsigned char* block = malloc(1 << 20);
        pid_t second;

        memset(block, 5, 1 << 20);
        free(block);
        second = fork();
        if (second == 0) {
            _exit(child_can_allocate() ? 0 : 1);
        }
        if (!ended_well(second)) {
            return 1;
        }
    }
    return kept[0] == 7 ? 0 : 1;
}

/* The blocks are small enough to be kept for reuse for a while. */
static int freed(void) {
    enum { COUNT = 24, BYTES = 8 << 20, SLACK_KB = 48 << 10 };
    static unsigned char* kept[COUNT];
    const long before = resident_kb();
    pid_t second;

    for (int i = 0; i < COUNT; ++i) {
        kept[i] = malloc(BYTES);
        memset(kept[i], 6, BYTES);
    }
    for (int i = 1; i < COUNT; ++i) {
        free(kept[i]);
    }
    second = fork();
    if (second == 0) {
        const bool whole = kept[0][0] == 6 && memcmp(kept[0], kept[0] + 1, BYTES - 1) == 0;

        fprintf(stderr, "%ld kB, in the child %ld\n", before, resident_kb());
        _exit(whole && resident_kb() < before + SLACK_KB ? 0 : 1);
    }
    return ended_well(second) ? 0 : 1;
}

/* The test runs with MALLOC_CONF=dirty_decay_ms:0, so that no time has to pass. */
static int returned(void) {
    const size_t bytes = (size_t)100 << 20;
    unsigned char* volatile block = malloc(bytes);
    pid_t second;

    memset(block, 1, bytes);
    second = fork();
    if (second == 0) {
        long written, after;

        memset(block, 2, bytes);
        written = resident_kb();
        free(block);
        after = resident_kb();
        if (after > written - (90 << 10)) {
            fprintf(stderr, "written %ld kB, freed %ld\n", written, after);
            _exit(1);
        }
        _exit(0);
    }
    return ended_well(second) && block[0] == 1 && block[bytes - 1] == 1 ? 0 : 1;
}

static void fork_once(int signal) {
    const pid_t second = fork();

    (void)signal;
    if (second == 0) {
        _exit(0);
    }
    atomic_fetch_add(&small_forks, ended_well(second) ? 1 : 0);
}

static void* fork_in_thread(void* argument) {
    fork_once(0);
    return argument;
}

static int small(void) {
    struct sigaction action = {.sa_handler = fork_once, .sa_flags = SA_ONSTACK};
    stack_t stack = {.ss_size = 16 << 10};
    pthread_attr_t attributes;
    pthread_t thread;

    allocate_blocks();
    fill(1);
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, 32 << 10) != 0 ||
        pthread_create(&thread, &attributes, fork_in_thread, NULL) != 0) {
        return 1;
    }
    pthread_join(thread, NULL);
    stack.ss_sp =
        mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) != 0 ||
        sigaction(SIGUSR1, &action, NULL) != 0 || raise(SIGUSR1) != 0) {
        return 1;
    }
    return atomic_load(&small_forks) == 2 ? 0 : 1;
}

static int guarded(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = 64 * page;
    void* memory = NULL;
    unsigned char* block;
    pid_t second;

    if (posix_memalign(&memory, page, bytes) != 0) {
        return 1;
    }
    block = memory;
    memset(block, 8, bytes);
    if (mprotect(block + 10 * page, page, PROT_NONE) != 0) {
        return 1;
    }
    second = fork();
    if (second == 0) {
        _exit(block[0] == 8 && memcmp(block, block + 1, 10 * page - 1) == 0 &&
                      memcmp(block, block + 11 * page, 53 * page) == 0 && !in_heap(block)
                  ? 0
                  : 1);
    }
    return ended_well(second) && in_heap(block) ? 0 : 1;
}

/* Each piece is the start of a block; the memory behind it has never been touched. */
static int scattered(int pieces, size_t piece_pages, bool write_holes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = piece_pages * page;
    const size_t last = HEAP_BYTES_MIN - 1;
    unsigned char** pointers = malloc((size_t)pieces * sizeof(*pointers));
    int ends[2] = {-1, -1};
    bool right = pipe(ends) == 0;
    char token = 'x';
    pid_t second;

    for (int i = 0; i < pieces; ++i) {
        pointers[i] = malloc(last + 1);
        memset(pointers[i], 5, bytes);
    }
    second = fork();
    if (second == 0) {
        right = right && read(ends[0], &token, 1) == 1;
        for (int i = 0; i < pieces && right; ++i) {
            right = pointers[i][0] == 5 && memcmp(pointers[i], pointers[i] + 1, bytes - 1) == 0 &&
                    pointers[i][last] == 0;
            pointers[i][0] = 6;
        }
        _exit(right && child_can_allocate() ? 0 : 1);
    }
    for (int i = 0; i < pieces && write_holes; ++i) {
        pointers[i][last] = 7;
    }
    right = right && write(ends[1], &token, 1) == 1 && ended_well(second);
    for (int i = 0; i < pieces && right; ++i) {
        right = pointers[i][0] == 5;
    }
    return right ? 0 : 1;
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "";

    alarm(120);
    if (strcmp(what, "apart") == 0) {
        return apart(5);
    }
    if (strcmp(what, "threads") == 0) {
        return among_threads(allocate_all_the_time);
    }
    if (strcmp(what, "streams") == 0) {
        return among_threads(write_all_the_time);
    }
    if (strcmp(what, "closed") == 0) {
        return closed();
    }
    if (strcmp(what, "holes") == 0) {
        return holes();
    }
    if (strcmp(what, "refused") == 0 || strcmp(what, "no_room") == 0) {
        return refused(strcmp(what, "refused") == 0);
    }
    if (strcmp(what, "within") == 0) {
        return within();
    }
    if (strcmp(what, "waited") == 0) {
        return waited();
    }
    if (strcmp(what, "start") == 0) {
        return start();
    }
    if (strcmp(what, "freed") == 0) {
        return freed();
    }
    if (strcmp(what, "returned") == 0) {
        return returned();
    }
    if (strcmp(what, "small") == 0) {
        return small();
    }
    if (strcmp(what, "zeros") == 0) {
        return zeros();
    }
    if (strcmp(what, "guarded") == 0) {
        return guarded();
    }
    if (strcmp(what, "bare") == 0) {
        close_all();
        return guarded();
    }
    return strcmp(what, "scattered") == 0 && argc > 3
               ? scattered((int)strtol(argv[2], NULL, 10), (size_t)strtol(argv[3], NULL, 10),
                           argc > 4)
               : 1;
}
