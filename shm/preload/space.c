/* The segment of a process. */
#include "shm/preload/space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/guarded_room.h"
#include "shm/sealed_file.h"

struct heap_space heap_space = {.fd = -1};

/* Descriptors at the upper end of what select() can name. */
enum { HIGH_DESCRIPTORS = 64 };

static atomic_bool claimed;

bool heap_space_file_is_open(void) {
    struct stat info;

    return fstat(heap_space.fd, &info) == 0 && info.st_dev == heap_space.device &&
           info.st_ino == heap_space.inode;
}

/* Returns the file under a high number: programs number their own descriptors from 3 on, some of
 * them by constants. */
static int out_of_the_way(int fd) {
    struct rlimit files;
    int high;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur <= HIGH_DESCRIPTORS) {
        return fd;
    }
    high = files.rlim_cur < FD_SETSIZE ? (int)files.rlim_cur : FD_SETSIZE;
    high = fcntl(fd, F_DUPFD_CLOEXEC, high - HIGH_DESCRIPTORS);
    if (high < 0) {
        return fd;
    }
    close(fd);
    return high;
}

/* Maps the file between guard pages. What is not taken cannot be touched either: mlockall() gives
 * pages to all that can be, holes and all. Returns NULL if it cannot. */
static char* map_guarded(int fd, uint64_t bytes) {
    char* base = ucg_shm_guarded_room(bytes, UCG_SHM_HUGE_PAGE_BYTES);

    if (base != NULL &&
        mmap(base, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED) {
        ucg_shm_guarded_room_end(base, bytes);
        base = NULL;
    }
    return base;
}

/* Makes and maps the file, with fewer bytes than asked for where the address space has no room. */
static bool map_segment(struct heap_shape shape, const char** step_p) {
    struct stat info;

    while (true) {
        int fd = ucg_shm_sealed_file(shape.bytes, step_p);

        if (fd < 0) {
            return false;
        }
        fd = out_of_the_way(fd);
        char* base = map_guarded(fd, shape.bytes);
        if (base != NULL && fstat(fd, &info) == 0) {
            heap_space.base = base;
            heap_space.bytes = shape.bytes;
            heap_space.lease_bytes = shape.lease_bytes;
            heap_space.fd = fd;
            heap_space.device = info.st_dev;
            heap_space.inode = info.st_ino;
            return true;
        }
        *step_p = "mmap";
        close(fd);
        if (errno != ENOMEM || shape.bytes / 2 < heap_bytes_min) {
            return false;
        }
        shape = heap_shape_of(shape.bytes / 2, shape.lease_bytes * 2);
    }
}

bool heap_space_make(void) {
    const struct heap_shape shape = heap_shape_of_process();
    const char* step = NULL;

    if (shape.bytes == 0) {
        heap_warn("libucg_heap.so serves this program from ordinary memory: %s", shape.reason);
        return false;
    }
    if (!map_segment(shape, &step)) {
        heap_warn("libucg_heap.so serves this program from ordinary memory: %s failed: %s", step,
                  strerror(errno));
        return false;
    }
    /* A core file would back every hole with a page: it is to hold what is taken. */
    madvise(heap_space.base, heap_space.bytes, MADV_DONTDUMP);
    /* Leases count their pages, which are few and far between. */
    madvise(heap_space.base, heap_space.lease_bytes, MADV_NOHUGEPAGE);
    heap_space.huge_pages = heap_huge_pages_are_usual();
    atomic_store(&heap_space.taken, heap_space.lease_bytes);
    heap_space.shared = true;
    return true;
}

void heap_space_drop(void) {
    heap_space.shared = false;
    ucg_shm_guarded_room_end(heap_space.base, heap_space.bytes);
    heap_space.bytes = 0;
    if (heap_space_file_is_open()) {
        close(heap_space.fd);
    }
}

void* heap_space_take(size_t bytes, size_t alignment) {
    uint64_t taken = atomic_load_explicit(&heap_space.taken, memory_order_relaxed);
    uint64_t first;

    do {
        const uintptr_t at = (uintptr_t)heap_space.base + taken;

        first = taken + (((at + alignment - 1) & ~(uintptr_t)(alignment - 1)) - at);
        if (first > heap_space.bytes || bytes > heap_space.bytes - first) {
            return NULL;
        }
    } while (!atomic_compare_exchange_weak(&heap_space.taken, &taken, first + bytes));
    /* From `taken` on, with what was skipped for alignment: all that is taken is one mapping. */
    if (mprotect(heap_space.base + taken, first + bytes - taken, PROT_READ | PROT_WRITE) != 0) {
        return NULL;
    }
    madvise(heap_space.base + taken, first + bytes - taken, MADV_DODUMP);
    if (heap_space.huge_pages) {
        madvise(heap_space.base + taken, first + bytes - taken, MADV_HUGEPAGE);
    }
    return heap_space.base + first;
}

bool heap_space_holds(const void* address) {
    return (uintptr_t)address - (uintptr_t)heap_space.base < heap_space.bytes;
}

bool heap_space_shares(const void* address) {
    return heap_space.shared && heap_space_holds(address);
}

/* By address and not by descriptor: it needs none, and UCX, which watches madvise(), learns that
 * registrations of these pages have become void. */
bool heap_space_purge(void* address, size_t bytes) {
    if (heap_space.over_file) {
        /* Dropped pages of a private mapping would show the file's again. */
        return mmap(address, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    }
    return madvise(address, bytes, heap_space.shared ? MADV_REMOVE : MADV_DONTNEED) == 0;
}

/* ------------------------------------------------------------------ for libucg */

/* Returns why nobody can claim the segment; 0 if there is no reason. */
static int reason_against_claims(void) {
    if (!heap_space.shared) {
        return ENOTSUP;
    }
    return heap_space_file_is_open() ? 0 : EBADF;
}

int ucg_heap_can_claim_1(void) {
    const int error = reason_against_claims();

    return error == 0 && atomic_load(&claimed) ? EBUSY : error;
}

int ucg_heap_claim_1(struct ucg_heap_segment* segment_p) {
    const int error = reason_against_claims();

    if (error != 0) {
        return error;
    }
    if (atomic_exchange(&claimed, true)) {
        return EBUSY;
    }
    if (mprotect(heap_space.base, heap_space.lease_bytes, PROT_READ | PROT_WRITE) != 0) {
        atomic_store(&claimed, false);
        return ENOMEM;
    }
    munlock(heap_space.base, heap_space.lease_bytes); /* What is locked cannot be discarded. */
    *segment_p = (struct ucg_heap_segment){heap_space.base, heap_space.bytes,
                                           heap_space.lease_bytes, heap_space.fd};
    return 0;
}

void ucg_heap_release_1(void) {
    atomic_store(&claimed, false);
}
