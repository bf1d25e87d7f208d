/*
 * Every function that allocates, in several threads, against a shadow of what was written.
 *
 *   allocations shadow SEED    random calls; what a block holds must be what was written to it
 *   allocations alignments     memalign and aligned_alloc round odd alignments up
 *   allocations place          large blocks lie in the heap, small ones do not
 *   allocations flat           a million blocks later the process is no larger
 *   allocations returned       what is freed goes back to the system
 *   allocations dumped         core files hold what is allocated, not the segment's holes
 *   allocations huge           large blocks can have huge pages; asked for where they are usual
 *   allocations late           frees after every destructor
 *   allocations locked         mlockall backs what is allocated, not the segment's holes
 *   allocations limited        more than the address space allows fails with NULL, the rest works
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap_maps.h"

enum { THREADS = 4, SLOTS = 64, CALLS = 1500, SKIPPED = 77 };
enum { COLLAPSE = 25 }; /* MADV_COLLAPSE, newer than some headers. */

struct block {
    unsigned char* data;
    size_t bytes;
    unsigned char mark;
};

struct worker {
    pthread_t thread;
    uint64_t random;
    struct block blocks[SLOTS];
    const char* wrong;
};

static uint64_t next(uint64_t* state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Most sizes are small, some are around the threshold, and a few are huge. */
static size_t random_bytes(uint64_t* random) {
    static const size_t limits[] = {64, 512, 4096, 16384, 20000, 70000, 300000, 5000000};
    const size_t limit = limits[next(random) % (sizeof(limits) / sizeof(limits[0]))];

    return next(random) % limit;
}

/* Marks both ends and a few bytes in between: to mark every byte would only measure memory. */
static void mark(struct block* block, unsigned char value) {
    block->mark = value;
    memset(block->data, value, block->bytes);
}

static bool holds(const unsigned char* data, size_t bytes, unsigned char value) {
    if (bytes == 0) {
        return true;
    }
    return data[0] == value && memcmp(data, data + 1, bytes - 1) == 0;
}

static bool aligned(const void* data, size_t alignment) {
    return ((uintptr_t)data & (alignment - 1)) == 0;
}

static const char* allocate(struct block* block, uint64_t* random) {
    const size_t alignment = (size_t)16 << (next(random) % 12);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void* data = NULL;

    block->bytes = random_bytes(random) + 1;
    switch (next(random) % 8) {
    case 0:
        data = calloc(block->bytes, 1);
        if (data != NULL && !holds(data, block->bytes, 0)) {
            return "calloc gave what is not zero";
        }
        break;
    case 1:
        if (posix_memalign(&data, alignment, block->bytes) != 0 || !aligned(data, alignment)) {
            return "posix_memalign";
        }
        break;
    case 2:
        data = aligned_alloc(alignment, block->bytes);
        if (!aligned(data, alignment)) {
            return "aligned_alloc";
        }
        break;
    case 3:
        data = memalign(alignment, block->bytes);
        if (!aligned(data, alignment)) {
            return "memalign";
        }
        break;
    case 4:
        data = next(random) % 2 ? valloc(block->bytes) : pvalloc(block->bytes);
        if (!aligned(data, page)) {
            return "valloc or pvalloc";
        }
        break;
    case 5: data = reallocarray(NULL, block->bytes, 1); break;
    default: data = malloc(block->bytes);
    }
    block->data = data;
    if (data == NULL || malloc_usable_size(data) < block->bytes) {
        return "no memory, or less than was asked for";
    }
    return NULL;
}

static const char* resize(struct block* block, uint64_t* random) {
    const size_t bytes = random_bytes(random) + 1;
    unsigned char* data = realloc(block->data, bytes);

    if (data == NULL || !holds(data, bytes < block->bytes ? bytes : block->bytes, block->mark)) {
        return "realloc lost what the block held";
    }
    block->data = data;
    block->bytes = bytes;
    return NULL;
}

static void* work(void* argument) {
    struct worker* worker = argument;

    for (int call = 0; call < CALLS && worker->wrong == NULL; ++call) {
        struct block* block = &worker->blocks[next(&worker->random) % SLOTS];

        if (block->data == NULL) {
            worker->wrong = allocate(block, &worker->random);
        } else if (!holds(block->data, block->bytes, block->mark)) {
            worker->wrong = "a block holds what was not written to it";
        } else if (next(&worker->random) % 3 == 0) {
            worker->wrong = resize(block, &worker->random);
        } else {
            free(block->data);
            block->data = NULL;
        }
        if (worker->wrong == NULL && block->data != NULL) {
            mark(block, (unsigned char)next(&worker->random));
        }
    }
    return NULL;
}

/* One thread frees blocks of another. */
static int shadow(uint64_t seed) {
    static struct worker workers[THREADS];
    int failures = 0;

    for (int i = 0; i < THREADS; ++i) {
        workers[i].random = (seed + 1) * 0x9e3779b97f4a7c15 + (uint64_t)i;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].wrong != NULL) {
            fprintf(stderr, "seed %llu, thread %d: %s\n", (unsigned long long)seed, i,
                    workers[i].wrong);
            ++failures;
        }
        for (int k = 0; k < SLOTS; ++k) {
            free(workers[i].blocks[k].data);
        }
    }
    return failures;
}

/* As in the C library, whose aligned_alloc was memalign until 2.38. */
static int alignments(void) {
    static const size_t asked[] = {0, 1, 3, 8, 24, 100, 4096, 4097, 100000};
    static const size_t given[] = {16, 16, 16, 16, 32, 128, 4096, 8192, 131072};
    void* (*const functions[])(size_t, size_t) = {memalign, aligned_alloc};
    int failures = 0;

    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); ++i) {
        for (size_t k = 0; k < 2; ++k) {
            for (size_t bytes = 0; bytes <= HEAP_BYTES_MIN; bytes += HEAP_BYTES_MIN / 4) {
                unsigned char* block = functions[k](asked[i], bytes);

                if (block == NULL || !aligned(block, given[i]) ||
                    malloc_usable_size(block) < bytes ||
                    (bytes == HEAP_BYTES_MIN && !in_heap(block))) {
                    fprintf(stderr, "function %zu, alignment %zu, %zu bytes: %p\n", k, asked[i],
                            bytes, (void*)block);
                    ++failures;
                } else {
                    memset(block, 1, bytes);
                }
                free(block);
            }
        }
    }
    for (size_t k = 0; k < 2; ++k) {
        volatile size_t huge = SIZE_MAX / 2 + 2;

        errno = 0;
        failures += functions[k](huge, 1) == NULL && errno == EINVAL ? 0 : 1;
        errno = 0;
        failures += functions[k](64, SIZE_MAX - 100) == NULL && errno == ENOMEM ? 0 : 1;
    }
    return failures;
}

static void* place_in_thread(void* argument) {
    int* failures = argument;

    for (size_t bytes = HEAP_BYTES_MIN; bytes <= (size_t)64 << 20; bytes *= 4) {
        void* block = malloc(bytes);
        void* zeros = calloc(1, bytes);
        void* page = NULL;

        if (posix_memalign(&page, 4096, bytes) != 0 || !in_heap(block) || !in_heap(zeros) ||
            !in_heap(page)) {
            fprintf(stderr, "%zu bytes are not in the heap\n", bytes);
            ++*failures;
        }
        free(block);
        free(zeros);
        free(page);
    }
    return NULL;
}

static int place(void) {
    int failures = 0;
    pthread_t thread;
    void* small = malloc(1000);

    place_in_thread(&failures);
    pthread_create(&thread, NULL, place_in_thread, &failures);
    pthread_join(thread, NULL);
    if (in_heap(small)) {
        fprintf(stderr, "small blocks are in the heap\n");
        ++failures;
    }
    free(small);
    return failures;
}

static int flat(void) {
    enum { ROUNDS = 1000000, SLACK_KB = 32 << 10 };
    static unsigned char* blocks[256];
    uint64_t random = 12345;
    long before = 0;

    for (int i = 0; i < ROUNDS; ++i) {
        unsigned char** block = &blocks[next(&random) % 256];

        free(*block);
        *block = malloc(1 + next(&random) % (next(&random) % 8 == 0 ? 200000 : 20000));
        (*block)[0] = 1;
        if (i == ROUNDS / 4) {
            before = resident_kb();
        }
    }
    if (resident_kb() > before + SLACK_KB) {
        fprintf(stderr, "grew from %ld to %ld kB\n", before, resident_kb());
        return 1;
    }
    return 0;
}

/* The test runs with MALLOC_CONF=dirty_decay_ms:0, so that no time has to pass. */
static int returned(void) {
    const size_t bytes = (size_t)100 << 20;
    unsigned char* volatile block = malloc(bytes);
    long before, filled, after;

    before = resident_kb();
    memset(block, 1, bytes);
    filled = resident_kb();
    free(block);
    after = resident_kb();
    block = calloc(bytes, 1);
    if (filled < before + (90 << 10) || after > before + (10 << 10) || !holds(block, bytes, 0)) {
        fprintf(stderr, "%ld kB, filled %ld, freed %ld\n", before, filled, after);
        return 1;
    }
    return 0;
}

static int dumped(void) {
    enum { BLOCKS = 20, BLOCK_BYTES = 3 << 20, HEAP_KB_MAX = 256 << 10 };
    int failures = 0;

    for (int i = 0; i < BLOCKS; ++i) {
        unsigned char* block = malloc(BLOCK_BYTES);
        bool first = false, last = false;
        const long kb = dumped_kb(block, &first);

        dumped_kb(block + BLOCK_BYTES - 1, &last);
        if (!first || !last || kb > HEAP_KB_MAX) {
            fprintf(stderr, "block %d: a core file has its ends %d %d, %ld kB of the heap\n", i,
                    first, last, kb);
            ++failures;
        }
    }
    return failures;
}

/* Returns whether a setting of the system for huge pages is this one. */
static bool huge_setting(const char* name, const char* value) {
    char text[128];
    FILE* file;
    bool is = false;

    snprintf(text, sizeof(text), "/sys/kernel/mm/transparent_hugepage/%s", name);
    file = fopen(text, "re");
    if (file != NULL) {
        is = fgets(text, sizeof(text), file) != NULL && strstr(text, value) != NULL;
        fclose(file);
    }
    return is;
}

/* Linux 6.1 makes huge pages of small ones whatever the settings are, if addresses and offsets
 * allow that. */
static int huge(void) {
    const size_t bytes = (size_t)64 << 20;
    const size_t page = (size_t)2 << 20;
    const bool usual = huge_setting("enabled", "[always]");
    unsigned char* block = malloc(bytes);
    unsigned char* within = (unsigned char*)(((uintptr_t)block + bytes / 2) & ~(page - 1));
    struct huge_pages there;

    memset(block, 1, bytes);
    there = huge_pages_at(within);
    if (!in_heap(within) || !there.possible || there.asked_for != usual ||
        (usual && huge_setting("shmem_enabled", "[advise]") && there.mapped_kb == 0)) {
        fprintf(stderr, "huge pages are possible %d, asked for %d, mapped %ld kB\n", there.possible,
                there.asked_for, there.mapped_kb);
        return 1;
    }
    if (madvise(within, page, COLLAPSE) == 0 && huge_pages_at(within).mapped_kb == 0) {
        fprintf(stderr, "a huge page is mapped as small ones\n");
        return 1;
    }
    return holds(block, bytes, 1) ? 0 : 1;
}

/* The test runs with a heap of 256 MiB. */
static int locked(void) {
    enum { BLOCK_BYTES = 8 << 20, SLACK_KB = 48 << 10 };
    const long before = resident_kb();
    unsigned char* block;
    int status = -1;
    pid_t child;
    long after;

    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        return SKIPPED;
    }
    block = malloc(BLOCK_BYTES);
    memset(block, 1, BLOCK_BYTES);
    after = resident_kb();
    if (!in_heap(block) || after < before + BLOCK_BYTES / 1024 || after > before + SLACK_KB) {
        fprintf(stderr, "%ld kB, then %ld\n", before, after);
        return 1;
    }
    child = fork();
    if (child == 0) {
        _exit(holds(block, BLOCK_BYTES, 1) && resident_kb() < before + SLACK_KB ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

static void* late_block;

static void free_late(void) {
    free(late_block);
    late_block = malloc(100000);
    memset(late_block, 1, 100000);
    free(late_block);
}

static int limited(void) {
    void* volatile huge = malloc((size_t)1 << 45);
    unsigned char* volatile fine = malloc(1 << 20);

    if (huge != NULL || fine == NULL) {
        return 1;
    }
    memset(fine, 1, 1 << 20);
    fine = realloc(fine, 3 << 20);
    return fine != NULL && holds(fine, 1 << 20, 1) ? 0 : 1;
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "";
    int failures = 1;

    if (strcmp(what, "shadow") == 0 && argc > 2) {
        failures = shadow(strtoull(argv[2], NULL, 10));
    } else if (strcmp(what, "place") == 0) {
        failures = place();
    } else if (strcmp(what, "alignments") == 0) {
        failures = alignments();
    } else if (strcmp(what, "flat") == 0) {
        failures = flat();
    } else if (strcmp(what, "returned") == 0) {
        failures = returned();
    } else if (strcmp(what, "dumped") == 0) {
        failures = dumped();
    } else if (strcmp(what, "huge") == 0) {
        failures = huge();
    } else if (strcmp(what, "late") == 0) {
        late_block = malloc(50000);
        failures = atexit(free_late);
    } else if (strcmp(what, "locked") == 0) {
        return locked();
    } else if (strcmp(what, "limited") == 0) {
        failures = limited();
    }
    return failures == 0 ? 0 : 1;
}
