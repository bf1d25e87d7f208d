/* What fork() makes of the segment. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/memory_budget.h"
#include "shm/preload/space.h"

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

/* Finds the next pages in [from, end) that exist. It asks the file, since a read of a hole of a
 * shared mapping would fill it. */
static bool next_pages(uint64_t from, uint64_t end, struct range* range_p) {
    const off_t data = lseek(heap_space.fd, (off_t)from, SEEK_DATA);
    const off_t hole = data < 0 ? -1 : lseek(heap_space.fd, data, SEEK_HOLE);

    if (data < 0 || (uint64_t)data >= end) {
        return false;
    }
    range_p->first = (uint64_t)data;
    range_p->end = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
    return true;
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

static bool allow_in_copy(struct range piece) {
    return mprotect(copy.data + piece.first, piece.end - piece.first, PROT_READ | PROT_WRITE) == 0;
}

/* Maps the memory for a copy. It is unlocked before it can be touched, lest mlockall(MCL_FUTURE)
 * fills its holes. */
static bool make_copy(void) {
    char* data = map_fresh(copy.bytes, PROT_NONE, MAP_NORESERVE);

    if (data == MAP_FAILED) {
        return false;
    }
    munlock(data, copy.bytes);
    copy.data = data;
    if (!for_each_piece(allow_in_copy)) {
        unmap(data, copy.bytes);
        copy.data = NULL;
    }
    return copy.data != NULL;
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

/* Copies the pages that were listed. */
static void copy_pages(void) {
    for (size_t i = 0; i < copy.range_count; ++i) {
        const struct range listed = copy.ranges[i];

        for (struct range range = {0, listed.first}; next_pages(range.end, listed.end, &range);) {
            copy_range(copy.data + range.first, range);
        }
    }
}

/* Moves a mapping. By the system call's number and not by mremap(): where UCX watches memory it
 * replaces that function by its own, which, up to UCX 1.13 at least, passes on four of the five
 * arguments, not the new address. */
static bool move_to(char* to, char* from, uint64_t bytes) {
    return syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
           (long)(uintptr_t)to;
}

/* Maps a range of the segment a second time, without a descriptor: that is what mremap() does with
 * an old size of zero. */
static char* map_again(struct range range) {
    const uint64_t bytes = range.end - range.first;
    const long at = syscall(SYS_mremap, heap_space.base + range.first, 0L, bytes, MREMAP_MAYMOVE);

    return at == -1 ? NULL : (char*)(uintptr_t)at;
}

/* Copies all that malloc has taken, where the program has closed the descriptor, so that which
 * pages exist cannot be asked. What was leased is not copied: it is the larger hole, and a child
 * has no use for its parent's rings. */
static void copy_all_taken(void) {
    const struct range taken = {heap_space.lease_bytes, copy.bytes};
    char* again = map_again(taken);
    const char* from = heap_space.base + taken.first;

    if (again != NULL && mprotect(again, taken.end - taken.first, PROT_READ) == 0) {
        from = again; /* Readable where the program may have made pages unreadable. */
    }
    memcpy(copy.data + taken.first, from, taken.end - taken.first);
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
    if (!heap_space_file_is_open()) {
        if (make_copy()) {
            copy_all_taken();
        }
        return;
    }
    needed = list_pages();
    available = ucg_shm_memory_budget("").available;
    choose_bridges(available);
    if (copy.ranges == NULL) {
        return;
    }
    if (needed <= available / COPY_SHARE && make_copy()) {
        copy_pages();
    } else {
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
    return mprotect(heap_space.base + piece.first, piece.end - piece.first,
                    PROT_READ | PROT_WRITE) == 0;
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
    return __real_pthread_atfork(prepare_fork, parent_after_fork, child_after_fork);
}

int heap_space_before_fork(void (*prepare)(void)) {
    return __real_pthread_atfork(prepare, NULL, NULL);
}
