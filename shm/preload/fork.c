/* What fork() makes of the segment. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "shm/memory_budget.h"
#include "shm/preload/space.h"

static bool guarded; /* Written at jemalloc's first allocation. */

/* Bytes [first, end) of the segment. */
struct range {
    uint64_t first;
    uint64_t end;
};

/* The copy of the segment for a child. In use between prepare and the end of a fork; handlers run
 * one fork at a time. */
static struct {
    char* data;           /* The copy, or NULL. */
    bool over_file;       /* Without a copy: the child maps the file privately. */
    bool by_file;         /* The program has not closed the file. */
    uint64_t bytes;       /* Length of the part of the segment that is copied or listed. */
    struct range* ranges; /* Where pages exist; or NULL. */
    size_t range_count;
    size_t range_room;
    uint64_t bridge;    /* Holes between ranges of at most so many bytes are mapped with them. */
    bool zero_bridges;  /* Without a copy: the child has memory to fill those holes with zeros. */
    char* frames;       /* Without a copy: what `stack` held; or NULL. */
    struct range stack; /* The frames of fork's caller, if they lie in the segment. */
} copy;

/* A copy takes at most 1/2 of the memory that is left: other processes of the host may fork at the
 * same moment. */
enum { COPY_SHARE = 2 };

/* The most ranges of the segment that a child maps. */
enum { MAPPINGS = 8192 };

/* Without a copy: so many bytes of a stack in the segment are copied, as many as the stacks of most
 * main programs may have. */
enum { FRAMES_BYTES = 8 << 20 };

/* mmap() and munmap() by the system calls' numbers, as in move_to(): where UCX watches memory these
 * functions are its own, and take locks of its. Here jemalloc's locks are held, or this is a child,
 * in which nobody is left to release a lock. UCX has no use for what it misses: it registers
 * neither copies nor lists, and nothing of a child's. */
static void* map(void* address, uint64_t bytes, long access, long flags, long fd, uint64_t offset) {
#ifdef __s390x__
    const unsigned long arguments[] = {(unsigned long)address, bytes,
                                       (unsigned long)access,  (unsigned long)flags,
                                       (unsigned long)fd,      offset};

    return (void*)(uintptr_t)syscall(SYS_mmap, arguments);
#else
    return (void*)(uintptr_t)syscall(SYS_mmap, address, bytes, access, flags, fd, offset);
#endif
}

static void* map_fresh(uint64_t bytes, long access, long flags) {
    return map(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static bool unmap(void* address, uint64_t bytes) {
    return syscall(SYS_munmap, address, bytes) == 0;
}

/* Finds the next pages in [from, end) that exist, of the file. A read of a hole of a shared mapping
 * would fill it. */
static bool next_in_file(uint64_t from, uint64_t end, struct range* range_p) {
    const off_t data = lseek(heap_space.fd, (off_t)from, SEEK_DATA);
    const off_t hole = data < 0 ? -1 : lseek(heap_space.fd, data, SEEK_HOLE);

    if (data < 0 || (uint64_t)data >= end) {
        return false;
    }
    range_p->first = (uint64_t)data;
    range_p->end = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
    return true;
}

/* Returns where the first pages are that are in memory, or not, of the `count` from `at` on that
 * mincore() has told; `count` if there are none. */
static size_t next_page(const unsigned char* told, size_t at, size_t count, bool in_memory) {
    while (at < count && ((told[at] & 1) != 0) != in_memory) {
        ++at;
    }
    return at;
}

/* Like next_in_file(), where the program has closed the file; of what malloc has taken. What was
 * leased is the larger hole, and a child has no use for its parent's rings. mincore() tells which
 * pages the file has in memory, not which have been swapped out: where there is swap all pages are
 * taken for existing ones. (/proc/self/pagemap would tell what this process has touched last.) */
static bool next_in_memory(uint64_t from, uint64_t end, struct range* range_p) {
    enum { PAGES = 1024, PAGES_AT_FIRST = 32 };
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned char told[PAGES];
    struct sysinfo machine;
    const bool swap = sysinfo(&machine) != 0 || machine.totalswap > 0;
    uint64_t room = PAGES_AT_FIRST;
    bool found = false;

    from = from < heap_space.lease_bytes ? heap_space.lease_bytes : from;
    range_p->end = end;
    while (from < end) {
        const uint64_t left = (end - from + page - 1) / page;
        const size_t count = (size_t)(left < room ? left : room);
        size_t at = 0;

        if (swap || mincore(heap_space.base + from, count * page, told) != 0) {
            memset(told, 1, count);
        }
        if (!found) {
            at = next_page(told, 0, count, true);
            found = at < count;
            range_p->first = from + at * page;
        }
        at = next_page(told, at, count, false);
        if (found && at < count) {
            range_p->end = from + at * page;
            return true;
        }
        from += count * page;
        room = room < PAGES ? 2 * room : room;
    }
    return found;
}

static bool next_pages(uint64_t from, uint64_t end, struct range* range_p) {
    return copy.by_file ? next_in_file(from, end, range_p) : next_in_memory(from, end, range_p);
}

/* Lists the ranges with pages. Threads that write large blocks meanwhile may make more; the last
 * entry then takes them all. Returns the bytes of the pages. */
static uint64_t list_pages(void) {
    struct range range = {0, 0};
    uint64_t existing = 0;
    size_t room = 1;
    void* memory;

    while (next_pages(range.end, copy.bytes, &range)) {
        existing += range.end - range.first;
        ++room;
    }
    memory = map_fresh(room * sizeof(*copy.ranges), PROT_READ | PROT_WRITE, 0);
    if (memory == MAP_FAILED) {
        return existing; /* The child cannot have memory, and says so. */
    }
    copy.ranges = memory;
    copy.range_room = room;
    copy.range_count = 0;
    for (range.end = 0; next_pages(range.end, copy.bytes, &range);) {
        if (copy.range_count == copy.range_room) {
            copy.ranges[copy.range_count - 1].end = copy.bytes;
            break;
        }
        copy.ranges[copy.range_count++] = range;
    }
    return existing;
}

static uint64_t hole_before(size_t i) {
    return copy.ranges[i].first - copy.ranges[i - 1].end;
}

/* Chooses which holes are mapped with the ranges around them. Without a copy each range costs the
 * child two mappings, and a process has 65530 (vm.max_map_count). So of more than MAPPINGS ranges
 * those with the smallest holes between them are mapped as one. In such a hole the child reads
 * zeros until the parent writes there, as it reads all else until then. But the hole may be free
 * memory that both will use, and jemalloc knows it for zeros; so the child makes these pages its
 * own, as zeros, where that takes no more memory than a copy might have taken. */
static void choose_bridges(uint64_t available) {
    uint64_t bridged = 0;
    size_t mappings;

    copy.bridge = 0;
    do {
        bridged = 0;
        mappings = 1;
        for (size_t i = 1; i < copy.range_count; ++i) {
            if (hole_before(i) <= copy.bridge) {
                bridged += hole_before(i);
            } else {
                ++mappings;
            }
        }
        if (mappings > MAPPINGS) {
            copy.bridge = copy.bridge == 0 ? (uint64_t)sysconf(_SC_PAGESIZE) : 2 * copy.bridge;
        }
    } while (mappings > MAPPINGS);
    copy.zero_bridges = bridged <= available / COPY_SHARE;
}

/* Returns the last of the ranges that are mapped as one with range `i`, the first of them. */
static size_t last_mapped_with(size_t i) {
    while (i + 1 < copy.range_count && hole_before(i + 1) <= copy.bridge) {
        ++i;
    }
    return i;
}

typedef bool (*piece_function)(struct range piece);

/* Calls the function for what of the segment the child can touch, piece by piece: all that malloc
 * has taken, and of what was leased what exists. A limit of data (RLIMIT_DATA) counts memory that
 * can be touched, whether or not it has pages, and what can be leased is larger than what most
 * programs allocate. Returns whether the function did for every piece. */
static bool for_each_piece(piece_function function) {
    const struct range taken = {heap_space.lease_bytes, copy.bytes};

    for (size_t i = 0; i < copy.range_count && copy.ranges[i].first < taken.first; ++i) {
        struct range piece = {copy.ranges[i].first, 0};

        i = last_mapped_with(i);
        piece.end = copy.ranges[i].end < taken.first ? copy.ranges[i].end : taken.first;
        if (!function(piece)) {
            return false;
        }
    }
    return taken.first == taken.end || function(taken);
}

/* Maps memory that cannot be touched yet. It is unlocked before it can be, lest
 * mlockall(MCL_FUTURE) fills its holes. Returns NULL if it cannot. */
static char* reserve(uint64_t bytes) {
    char* data = map_fresh(bytes, PROT_NONE, MAP_NORESERVE);

    if (data == MAP_FAILED) {
        return NULL;
    }
    munlock(data, bytes);
    return data;
}

static bool allow(char* base, struct range piece) {
    return mprotect(base + piece.first, piece.end - piece.first, PROT_READ | PROT_WRITE) == 0;
}

static bool allow_in_copy(struct range piece) {
    return allow(copy.data, piece);
}

static bool make_copy(void) {
    copy.data = reserve(copy.bytes);
    if (copy.data != NULL && !for_each_piece(allow_in_copy)) {
        unmap(copy.data, copy.bytes);
        copy.data = NULL;
    }
    return copy.data != NULL;
}

/* Returns whether make_copy() could map a copy of what malloc has taken, up to `end`. */
static bool copy_can_be_mapped(uint64_t end) {
    const struct range taken = {heap_space.lease_bytes, end};
    char* data = reserve(end);
    const bool can = data != NULL && allow(data, taken);

    if (data != NULL) {
        unmap(data, end);
    }
    return can;
}

/* Copies a range by reading the file, which does not mind what mprotect() forbids, such as a guard
 * page of the program. */
static void copy_range(char* to, struct range range) {
    while (range.first < range.end) {
        const ssize_t got =
            pread(heap_space.fd, to, (size_t)(range.end - range.first), (off_t)range.first);

        if (got == 0 || (got < 0 && errno != EINTR)) {
            memcpy(to, heap_space.base + range.first, (size_t)(range.end - range.first));
            return;
        }
        to += got > 0 ? got : 0;
        range.first += got > 0 ? (uint64_t)got : 0;
    }
}

/* Moves a mapping. By the system call's number and not by mremap(): where UCX watches memory it
 * replaces that function by its own, which, up to UCX 1.13 at least, passes on four of the five
 * arguments, not the new address. */
static bool move_to(char* to, char* from, uint64_t bytes) {
    return syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
           (long)(uintptr_t)to;
}

/* Maps a range of the segment a second time, readable, without a descriptor: that is what mremap()
 * does with an old size of zero. Returns NULL if it cannot. */
static char* map_again(struct range range) {
    const uint64_t bytes = range.end - range.first;
    const long at = syscall(SYS_mremap, heap_space.base + range.first, 0L, bytes, MREMAP_MAYMOVE);
    char* again = (char*)(uintptr_t)at;

    if (at == -1) {
        return NULL;
    }
    if (mprotect(again, bytes, PROT_READ) != 0) {
        unmap(again, bytes);
        return NULL;
    }
    return again;
}

/* Copies the pages that were listed. Without the file they are read where they are mapped; through
 * a second mapping, since the program may have made pages unreadable. */
static void copy_pages(void) {
    const struct range taken = {heap_space.lease_bytes, copy.bytes};
    char* again = copy.by_file ? NULL : map_again(taken);

    for (size_t i = 0; i < copy.range_count; ++i) {
        const struct range listed = copy.ranges[i];

        for (struct range range = {0, listed.first}; next_pages(range.end, listed.end, &range);) {
            char* to = copy.data + range.first;

            if (copy.by_file) {
                copy_range(to, range);
            } else {
                memcpy(to,
                       again != NULL ? again + (range.first - taken.first)
                                     : heap_space.base + range.first,
                       (size_t)(range.end - range.first));
            }
        }
    }
    if (again != NULL) {
        unmap(again, taken.end - taken.first);
    }
}

/* Copies the frames of fork's caller, if they lie in the segment. The child cannot see its parent's
 * until it writes to them: the parent returns to them at once. */
static bool copy_frames(void) {
    const uint64_t bytes = copy.stack.end - copy.stack.first;

    if (bytes == 0) {
        return true;
    }
    copy.frames = map_fresh(bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    if (copy.frames == MAP_FAILED) {
        copy.frames = NULL;
        return false;
    }
    for (struct range range = {0, copy.stack.first};
         next_pages(range.end, copy.stack.end, &range);) {
        copy_range(copy.frames + (range.first - copy.stack.first), range);
    }
    return true;
}

/* Warns once in a process, however often it forks. */
static void tell_no_copy(uint64_t needed, uint64_t available) {
    static bool told;
    const unsigned mebi = 20;

    if (!told) {
        told = true;
        heap_warn("a forked child gets no copy of %llu MiB of large blocks, for which %llu MiB of "
                  "memory are left: until it writes to them itself it sees what this process "
                  "writes to them after the fork. That does no harm to a child that calls exec or "
                  "is waited for; run other programs without libucg_heap.so",
                  (unsigned long long)(needed >> mebi), (unsigned long long)(available >> mebi));
    }
}

bool heap_fork_can_copy(void) {
    const uint64_t end = atomic_load(&heap_space.taken);
    static atomic_bool told;
    struct range range = {0, 0};
    uint64_t needed = 0;
    uint64_t available;
    const unsigned mebi = 20;

    if (!heap_space.shared || heap_space_file_is_open()) {
        return true;
    }
    heap_extents_purge();
    while (next_in_memory(range.end, end, &range)) {
        needed += range.end - range.first;
    }
    available = ucg_shm_memory_budget("").available;
    if (needed <= available / COPY_SHARE && copy_can_be_mapped(end)) {
        return true;
    }
    if (!atomic_exchange(&told, true)) {
        heap_warn("fork() fails, since the program has closed the descriptor of the node heap and "
                  "a copy of %llu MiB of large blocks does not fit into the memory or the address "
                  "space; %llu MiB of memory are left",
                  (unsigned long long)(needed >> mebi), (unsigned long long)(available >> mebi));
    }
    return false;
}

/* Ends the program if the handlers run on a stack in the segment. Our fork() sees to it that they
 * do not (stack.c). */
static void end_on_stack_in_segment(void) {
    if (heap_space_holds(__builtin_frame_address(0)) ||
        heap_space_holds((const void*)pthread_self())) {
        heap_warn("a call other than fork() forks (daemon, forkpty) on a stack in a large block "
                  "that malloc gave; the child would run on its parent's stack, so the program "
                  "ends. Run it without libucg_heap.so");
        abort();
    }
}

/* Finds the frames of fork's caller in the segment. Only of use where there is no copy. */
static void find_frames(void) {
    const char* lowest = heap_stack_of_fork();

    copy.stack = (struct range){0, 0};
    if (heap_space_holds(lowest)) {
        const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

        copy.stack.first = (uint64_t)(lowest - heap_space.base) / page * page;
        copy.stack.end = copy.stack.first + FRAMES_BYTES;
        copy.stack.end = copy.stack.end < copy.bytes ? copy.stack.end : copy.bytes;
    }
}

/* Runs last of all prepare handlers, with every lock of jemalloc held: what jemalloc knows of the
 * blocks and what is copied of them is of one moment. */
static void prepare_fork(void) {
    uint64_t needed;
    uint64_t available;

    if (!heap_space.shared) {
        return;
    }
    end_on_stack_in_segment();
    copy.bytes = atomic_load(&heap_space.taken);
    copy.range_count = 0;
    find_frames();
    copy.by_file = heap_space_file_is_open();
    needed = list_pages();
    available = ucg_shm_memory_budget("").available;
    choose_bridges(available);
    if (copy.ranges == NULL) {
        return;
    }
    if (needed <= available / COPY_SHARE && make_copy()) {
        copy_pages();
    } else if (copy.by_file) {
        tell_no_copy(needed, available);
        copy.over_file = copy_frames();
    }
}

static void forget_copy(void) {
    if (copy.ranges != NULL) {
        unmap(copy.ranges, copy.range_room * sizeof(*copy.ranges));
        copy.ranges = NULL;
    }
    copy.data = NULL;
    copy.frames = NULL;
    copy.over_file = false;
}

static void parent_after_fork(void) {
    if (copy.data != NULL) {
        unmap(copy.data, copy.bytes);
    }
    if (copy.frames != NULL) {
        unmap(copy.frames, copy.stack.end - copy.stack.first);
    }
    forget_copy();
}

static bool move_piece(struct range piece) {
    return move_to(heap_space.base + piece.first, copy.data + piece.first, piece.end - piece.first);
}

/* Moves the copy to the segment's addresses; its holes stay behind. */
static bool move_copy(void) {
    return for_each_piece(move_piece) && unmap(copy.data, copy.bytes);
}

/* Maps the file privately where pages existed at the fork, and at small holes between them:
 * jemalloc takes all other pages for zeros. */
static bool lie_over_file(void) {
    for (size_t first = 0, last = 0; first < copy.range_count; first = ++last) {
        const uint64_t from = copy.ranges[first].first;

        last = last_mapped_with(first);
        if (map(heap_space.base + from, copy.ranges[last].end - from, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, heap_space.fd, from) == MAP_FAILED) {
            return false;
        }
        for (size_t i = first + 1; copy.zero_bridges && i <= last; ++i) {
            memset(heap_space.base + copy.ranges[i - 1].end, 0, hole_before(i));
        }
    }
    heap_space.over_file = true;
    return copy.frames == NULL || move_to(heap_space.base + copy.stack.first, copy.frames,
                                          copy.stack.end - copy.stack.first);
}

static bool allow_in_segment(struct range piece) {
    return allow(heap_space.base, piece);
}

/* Gives a child memory of its own at the segment's addresses. Leases reach beyond what exists of
 * them: that can be read, as zeros, which is no data by the system's count. */
static bool map_own_memory(void) {
    if (copy.data == NULL && !copy.over_file) {
        errno = ENOMEM;
        return false;
    }
    if (map(heap_space.base, heap_space.bytes, PROT_NONE,
            MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ||
        mprotect(heap_space.base, heap_space.lease_bytes, PROT_READ) != 0) {
        return false;
    }
    return copy.data != NULL ? move_copy() : for_each_piece(allow_in_segment) && lie_over_file();
}

/* Runs first of all handlers in the child. */
static void child_after_fork(void) {
    if (!heap_space.shared) {
        return;
    }
    if (!map_own_memory()) {
        heap_warn("a forked child gets no memory of its own and ends, lest it write into its "
                  "parent's (errno %d)",
                  errno);
        abort();
    }
    forget_copy();
    heap_space.shared = false;
    if (heap_space_file_is_open()) {
        close(heap_space.fd); /* The parent's memory goes with the parent. */
    }
}

int __real_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

int heap_space_guard_fork(void) {
    const int status = __real_pthread_atfork(prepare_fork, parent_after_fork, child_after_fork);

    guarded = guarded || status == 0;
    return status;
}

bool heap_space_fork_is_guarded(void) {
    return guarded;
}

int heap_space_before_fork(void (*prepare)(void)) {
    return __real_pthread_atfork(prepare, NULL, NULL);
}
