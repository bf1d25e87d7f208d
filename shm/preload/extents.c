/* Which memory jemalloc uses for what.
 *
 * Allocations from `oversize_threshold` on come from one arena of jemalloc's, the others from the
 * usual arenas of the threads. Only that one arena takes its memory from the segment: smaller
 * blocks, jemalloc's own records and the C library's (streams, thread-local storage) stay in
 * ordinary memory, which a forked child shares copy-on-write and which peers cannot write to. */
#include <jemalloc/jemalloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "shm/preload/heap.h"

/* The least threshold that jemalloc takes, HEAP_BYTES_MIN, is four of the pages that it was built
 * with, a size class of its own: 16 KiB, or 256 KiB where its pages have 64. Its thread caches must
 * end below it, or they would be filled from the threads' arenas: CACHED_BYTES_MAX is the class
 * before. Both come from the build, which asks jemalloc: this text has to be constant. */
enum { PAGES_MIN = 4 };
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

/* Options of jemalloc, which it reads at the first allocation, before any constructor runs.
 * MALLOC_CONF, which it reads later, may say otherwise. */
const char* malloc_conf =
    "oversize_threshold:" TEXT(HEAP_BYTES_MIN) ",tcache_max:" TEXT(CACHED_BYTES_MAX);

/* More than any system maps, less than jemalloc refuses outright. */
static const size_t impossible_bytes = (size_t)1 << 60;

/* Free space of so many bytes is purged at once. The C library's own allocator never keeps blocks
 * of so many bytes either. */
static const size_t eager_bytes = (size_t)32 << 20;

static atomic_bool segment_full;

/* The name "arena.<arena of large blocks>.purge", translated by mallctlnametomib(). */
static size_t purge_mib[3];
static size_t purge_mib_length = sizeof(purge_mib) / sizeof(*purge_mib);
static bool knows_purge;

static void* ordinary_memory(size_t bytes, size_t alignment) {
    const size_t slack = alignment - 1;
    char* base = mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char* first;

    if (base == MAP_FAILED) {
        return NULL;
    }
    /* What was mapped too much for the sake of the alignment is never touched. */
    first = (char*)(((uintptr_t)base + slack) & ~(uintptr_t)slack);
    return first;
}

static void* take(extent_hooks_t* hooks, void* address, size_t bytes, size_t alignment, bool* zero,
                  bool* commit, unsigned arena) {
    void* memory;

    (void)hooks;
    (void)arena;
    if (address != NULL) {
        return NULL; /* jemalloc grows blocks in place only into memory that it has already. */
    }
    memory = heap_space_take(bytes, alignment);
    if (memory == NULL) {
        memory = ordinary_memory(bytes, alignment);
        if (memory != NULL && !atomic_exchange(&segment_full, true)) {
            heap_warn("the node heap is full: further memory of this program is ordinary memory, "
                      "which peers cannot read in place");
        }
    }
    *zero = true;
    *commit = true;
    return memory;
}

/* Purges a range, which reads as zeros afterwards. Returns true if it cannot, as do all hooks. */
static bool purge(extent_hooks_t* hooks, void* address, size_t bytes, size_t offset, size_t length,
                  unsigned arena) {
    char* first = (char*)address + offset;

    (void)hooks;
    (void)bytes;
    (void)arena;
    return heap_space_holds(first) ? !heap_space_purge(first, length)
                                   : madvise(first, length, MADV_DONTNEED) != 0;
}

/* Allows or refuses a split. Constructors that ran before ours have left the arena with ordinary
 * memory. As long as the segment has room, that memory is not divided further: jemalloc then gives
 * up its addresses (the pages are purged) and takes from the segment instead. */
static bool split(extent_hooks_t* hooks, void* address, size_t bytes, size_t first, size_t second,
                  bool committed, unsigned arena) {
    (void)hooks;
    (void)bytes;
    (void)first;
    (void)second;
    (void)committed;
    (void)arena;
    return !heap_space_holds(address) && !atomic_load(&segment_full);
}

/* Allows or refuses a merge. A block must not straddle the end of the segment: peers could not read
 * half of it. */
static bool merge(extent_hooks_t* hooks, void* first, size_t first_bytes, void* second,
                  size_t second_bytes, bool committed, unsigned arena) {
    (void)hooks;
    (void)first_bytes;
    (void)second_bytes;
    (void)committed;
    (void)arena;
    return heap_space_holds(first) != heap_space_holds(second);
}

/* Without `dalloc` jemalloc purges what it gives up and keeps the addresses for its next needs. All
 * memory is committed, so `commit` and `decommit` have nothing to do. */
static extent_hooks_t segment_hooks = {
    .alloc = take,
    .purge_forced = purge,
    .split = split,
    .merge = merge,
};

static bool set_number(unsigned arena, const char* what, void* value, size_t bytes) {
    char name[64];

    snprintf(name, sizeof(name), "arena.%u.%s", arena, what);
    return mallctl(name, NULL, NULL, value, bytes) == 0;
}

/* Sets when freed blocks are purged. jemalloc expects huge and rare blocks in this arena and purges
 * them as they are freed. Here it serves common ones: purging a block of 16 KiB costs hundreds of
 * times what the block costs. So it gets what other arenas have, the usual time until pages decay;
 * and free space from `eager_bytes` on is purged at once, since only then a large computation's
 * memory is certain to be there for the next process. */
static bool set_decay(unsigned arena) {
    ssize_t milliseconds = 0;
    size_t bytes = sizeof(milliseconds);
    size_t threshold = eager_bytes;

    return mallctl("arenas.dirty_decay_ms", &milliseconds, &bytes, NULL, 0) == 0 &&
           set_number(arena, "dirty_decay_ms", &milliseconds, bytes) &&
           set_number(arena, "oversize_threshold", &threshold, sizeof(threshold));
}

/* Finds the arena of large blocks, which follows those of the threads. It does not exist before the
 * first large allocation; an allocation that fails makes it without any ordinary memory in it. */
static bool find_arena(unsigned* arena_p) {
    volatile size_t bytes = impossible_bytes;
    size_t length = sizeof(*arena_p);
    void* volatile nothing = malloc(bytes); /* Volatile: compilers know how such calls end. */

    free(nothing);
    return nothing == NULL && mallctl("opt.narenas", arena_p, &length, NULL, 0) == 0;
}

/* Returns whether large blocks come from the segment. Earlier blocks may be used again, so one
 * block that does not proves nothing. */
static bool serves_large_blocks(void) {
    enum { PROBES = 16 };
    void* volatile blocks[PROBES];
    bool served = false;

    for (int i = 0; i < PROBES; ++i) {
        blocks[i] = malloc(HEAP_BYTES_MIN);
        served = served || heap_space_holds(blocks[i]);
    }
    for (int i = 0; i < PROBES; ++i) {
        free(blocks[i]);
    }
    return served;
}

static bool find_purge(unsigned arena) {
    char name[64];

    snprintf(name, sizeof(name), "arena.%u.purge", arena);
    knows_purge = mallctlnametomib(name, purge_mib, &purge_mib_length) == 0;
    return knows_purge;
}

/* Keeps what was freed out of the copies that fork makes. Registered after jemalloc's handlers, so
 * it runs before them. */
static bool purge_before_fork(unsigned arena) {
    return find_purge(arena) && heap_space_before_fork(heap_extents_purge) == 0;
}

void heap_extents_purge(void) {
    if (knows_purge) {
        mallctlbymib(purge_mib, purge_mib_length, NULL, NULL, NULL, 0);
    }
}

/* Returns the page size of jemalloc; zero where it cannot be asked. */
static size_t page_of_jemalloc(void) {
    size_t page = 0;
    size_t length = sizeof(page);

    return mallctl("arenas.page", &page, &length, NULL, 0) == 0 ? page : 0;
}

/* Says that blocks which are smaller than another threshold than ours, or which the threads' caches
 * hold, come from ordinary memory. */
static void tell_some(void) {
    const size_t page = page_of_jemalloc();

    if (page > HEAP_BYTES_MIN / PAGES_MIN) {
        heap_warn("libucg_heap.so serves only some of this program's large blocks from memory that "
                  "peers can read: it was built for a jemalloc with pages of %d bytes, and this "
                  "one has pages of %zu",
                  HEAP_BYTES_MIN / PAGES_MIN, page);
    } else {
        heap_warn("libucg_heap.so serves only some of this program's large blocks from memory that "
                  "peers can read: so says MALLOC_CONF (oversize_threshold, tcache_max)");
    }
}

bool heap_extents_install(void) {
    extent_hooks_t* hooks = &segment_hooks;
    unsigned arena = 0;

    if (!find_arena(&arena) || !heap_space_fork_is_guarded() ||
        !set_number(arena, "extent_hooks", &hooks, sizeof(void*))) {
        heap_warn("libucg_heap.so serves this program from ordinary memory: the program brings its "
                  "own malloc (or a tool such as valgrind replaces it), or MALLOC_CONF leaves no "
                  "arena for large blocks (narenas, oversize_threshold)");
        return false;
    }
    /* From here on blocks come from the segment. */
    if (!purge_before_fork(arena) || !set_decay(arena) || !serves_large_blocks()) {
        tell_some();
    }
    return true;
}
