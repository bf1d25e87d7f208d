/* The segment of a process, and what fork() makes of it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/preload/heap.h"
#include "shm/sealed_file.h"

/* Written before main and by a forked child while it is alone; but for `taken`, which only rises.
 */
static struct {
    char* base;
    uint64_t bytes;
    uint64_t lease_bytes;
    _Atomic uint64_t taken; /* Everything below belongs to libucg or jemalloc. */
    bool shared;            /* False in a forked child: the same addresses, memory of its own. */
    int fd;
    dev_t device; /* Of the file, since programs close descriptors that they did not open. */
    ino_t inode;
} space = {.fd = -1};

/* Descriptors at the upper end of what select() can name. */
enum { HIGH_DESCRIPTORS = 64 };

static atomic_bool claimed;

/* Between prepare and the end of a fork; handlers run one fork at a time. */
static struct {
    char* data;
    uint64_t bytes;
} copy;

static bool descriptor_is_ours(void) {
    struct stat info;

    return fstat(space.fd, &info) == 0 && info.st_dev == space.device && info.st_ino == space.inode;
}

/* Programs number their own descriptors from 3 on, some of them by constants. */
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

/* Fewer bytes than asked for where the address space has no room for them. */
static bool map_segment(struct heap_shape shape, const char** step_p) {
    struct stat info;

    while (true) {
        int fd = ucg_shm_sealed_file(shape.bytes, step_p);

        if (fd < 0) {
            return false;
        }
        fd = out_of_the_way(fd);
        void* base =
            mmap(NULL, shape.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (base != MAP_FAILED && fstat(fd, &info) == 0) {
            space.base = base;
            space.bytes = shape.bytes;
            space.lease_bytes = shape.lease_bytes;
            space.fd = fd;
            space.device = info.st_dev;
            space.inode = info.st_ino;
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
    atomic_store(&space.taken, space.lease_bytes);
    space.shared = true;
    return true;
}

void* heap_space_take(size_t bytes, size_t alignment) {
    uint64_t taken = atomic_load_explicit(&space.taken, memory_order_relaxed);
    uint64_t first;

    do {
        const uintptr_t at = (uintptr_t)space.base + taken;

        first = taken + (((at + alignment - 1) & ~(uintptr_t)(alignment - 1)) - at);
        if (first > space.bytes || bytes > space.bytes - first) {
            return NULL;
        }
    } while (!atomic_compare_exchange_weak(&space.taken, &taken, first + bytes));
    return space.base + first;
}

bool heap_space_holds(const void* address) {
    return (uintptr_t)address - (uintptr_t)space.base < space.bytes;
}

/* By address and not by descriptor: it needs none, and UCX, which watches madvise(), learns that
 * registrations of these pages have become void. */
bool heap_space_purge(void* address, size_t bytes) {
    return madvise(address, bytes, space.shared ? MADV_REMOVE : MADV_DONTNEED) == 0;
}

/* ------------------------------------------------------------------ fork */

/* The pages of [0, bytes) that exist; reading a hole of a shared mapping would fill it. */
static void copy_existing(char* target, uint64_t bytes) {
    off_t first = 0;

    while ((first = lseek(space.fd, first, SEEK_DATA)) >= 0 && (uint64_t)first < bytes) {
        off_t end = lseek(space.fd, first, SEEK_HOLE);

        if (end < 0 || (uint64_t)end > bytes) {
            end = (off_t)bytes;
        }
        memcpy(target + first, space.base + first, (size_t)(end - first));
        first = end;
    }
}

/* Runs last of all prepare handlers, with every lock of jemalloc held: what jemalloc knows of the
 * blocks and what is copied of them is of one moment. */
static void prepare_fork(void) {
    if (!space.shared) {
        return;
    }
    copy.bytes = atomic_load(&space.taken);
    copy.data = mmap(NULL, copy.bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy.data == MAP_FAILED) {
        copy.data = NULL;
        heap_warn("no address space for a copy of the heap: a forked child sees changes that this "
                  "process makes to large blocks after the fork");
        return;
    }
    if (descriptor_is_ours()) {
        copy_existing(copy.data, copy.bytes);
    } else {
        /* Which pages exist cannot be asked any more. What was leased stays behind: it is the
         * larger hole, and a child has no use for its parent's rings. */
        memcpy(copy.data + space.lease_bytes, space.base + space.lease_bytes,
               copy.bytes - space.lease_bytes);
    }
}

static void parent_after_fork(void) {
    if (copy.data != NULL) {
        munmap(copy.data, copy.bytes);
        copy.data = NULL;
    }
}

/* Not by mremap(): where UCX watches memory it puts its own function in the place of that one, and
 * up to UCX 1.13 at least it passes four of the five arguments on, not the new address. */
static bool move_to_base(char* data, uint64_t bytes) {
    return syscall(SYS_mremap, data, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, space.base) ==
           (long)(uintptr_t)space.base;
}

/* A private mapping of the file is the best that is left when there was no room for a copy. */
static bool map_own_memory(void) {
    const int fixed = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;

    if (copy.data == NULL) {
        return descriptor_is_ours() && mmap(space.base, space.bytes, PROT_READ | PROT_WRITE, fixed,
                                            space.fd, 0) != MAP_FAILED;
    }
    return mmap(space.base, space.bytes, PROT_READ | PROT_WRITE, fixed | MAP_ANONYMOUS, -1, 0) !=
               MAP_FAILED &&
           move_to_base(copy.data, copy.bytes);
}

/* Runs first of all handlers in the child. */
static void child_after_fork(void) {
    if (!space.shared) {
        return;
    }
    if (!map_own_memory()) {
        heap_warn("a forked child gets no memory of its own and ends, lest it write into its "
                  "parent's (errno %d)",
                  errno);
        abort();
    }
    copy.data = NULL;
    space.shared = false;
    if (descriptor_is_ours()) {
        close(space.fd); /* The parent's memory goes with the parent. */
    }
}

int __real_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

int heap_space_guard_fork(void) {
    return __real_pthread_atfork(prepare_fork, parent_after_fork, child_after_fork);
}

/* ------------------------------------------------------------------ for libucg */

int ucg_heap_claim_1(struct ucg_heap_segment* segment_p) {
    if (!space.shared) {
        return ENOTSUP;
    }
    if (!descriptor_is_ours()) {
        return EBADF;
    }
    if (atomic_exchange(&claimed, true)) {
        return EBUSY;
    }
    *segment_p = (struct ucg_heap_segment){space.base, space.bytes, space.lease_bytes, space.fd};
    return 0;
}

void ucg_heap_release_1(void) {
    atomic_store(&claimed, false);
}
