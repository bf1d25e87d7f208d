/* When things happen: at jemalloc's first allocation, and before main. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "shm/preload/heap.h"

enum { MALLOC_ALIGNMENT = 16 };

typedef void (*fork_handler)(void);

int __real_pthread_atfork(fork_handler prepare, fork_handler parent, fork_handler child);
int __wrap_pthread_atfork(fork_handler prepare, fork_handler parent, fork_handler child);

/* The linker leads all of this library's registrations here (--wrap). jemalloc registers its
 * handlers at the first allocation of the process, which ld.so makes. Ours have to be there before:
 * handlers of the earliest registration run last before a fork, and first after it. */
int __wrap_pthread_atfork(fork_handler prepare, fork_handler parent, fork_handler child) {
    const int status = heap_space_guard_fork();

    return status != 0 ? status : __real_pthread_atfork(prepare, parent, child);
}

/* Constructors of other libraries may have allocated before: that memory is ordinary memory, and
 * jemalloc knows which is which. There is no destructor: the process may free to its very end. */
__attribute__((constructor)) static void start(void) {
    heap_stack_find_fork();
    if (heap_space_make() && !heap_extents_install()) {
        heap_space_drop();
    }
}

/* memalign() and aligned_alloc() of this library (--defsym), in the place of jemalloc's, which
 * refuse what the C library rounds up: an alignment that is zero or no power of two. */
__attribute__((visibility("default"))) void* heap_memalign(size_t alignment, size_t bytes);

void* heap_memalign(size_t alignment, size_t bytes) {
    size_t whole = MALLOC_ALIGNMENT;
    void* block = NULL;
    int error;

    if (alignment > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    while (whole < alignment) {
        whole *= 2;
    }
    error = posix_memalign(&block, whole, bytes);
    if (error != 0) {
        errno = error;
        return NULL;
    }
    return block;
}

/* The one function of the C library's allocator that jemalloc leaves out: left to the C library, it
 * would return what our free() does not know. */
__attribute__((visibility("default"))) void* pvalloc(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (bytes + page - 1) & ~(page - 1);

    if (whole < bytes) {
        errno = ENOMEM;
        return NULL;
    }
    return aligned_alloc(page, whole == 0 ? page : whole);
}
