/* fork() for callers whose stack lies in the segment.
 *
 * Malloc gives stacks, too: to coroutines, to handlers of signals, to threads. Parent and child
 * would run on the same pages from the moment the child exists until its memory is its own, and
 * what the child then gets would be older than the frames that it runs on. So such a call runs on a
 * stack of its own, of ordinary memory, and meanwhile nothing is written to the caller's.
 *
 * A thread whose whole stack the program allocated has its thread-local storage there, too, and the
 * C library's record of it, into which the kernel writes the child's number at once. These pages
 * cannot be kept apart: made private for a while, they would be other futexes to whoever begins to
 * join the thread meanwhile. There fork() fails, which programs expect of it. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "shm/preload/heap.h"

typedef pid_t (*fork_function)(void);

/* Length of that stack, on which the handlers of all libraries run; pages come as they are touched.
 */
enum { STACK_BYTES = 1 << 20 };

/* More than the one frame has below its address in which that stack is entered. */
enum { FRAME_BYTES = 4096 };

/* A call of fork() on that stack. Lies at its lower end. */
struct detour {
    ucontext_t caller;
    ucontext_t here;
    fork_function fork;
    pid_t child;
    int error;
};

static _Atomic(fork_function) system_fork;
static _Thread_local const void* caller_stack __attribute__((tls_model("initial-exec")));

const void* heap_stack_of_fork(void) {
    return caller_stack;
}

bool heap_stack_find_fork(void) {
    union {
        void* address;
        fork_function function;
    } found = {dlsym(RTLD_NEXT, "fork")};

    atomic_store(&system_fork, found.function);
    return found.function != NULL;
}

/* Calls fork() on the other stack. The arguments are the halves of a pointer to struct detour,
 * since makecontext() passes numbers of type int. */
static void fork_here(unsigned high, unsigned low) {
    struct detour* detour = (struct detour*)(uintptr_t)((uint64_t)high << 32 | low);

    detour->child = detour->fork();
    detour->error = errno;
}

/* Calls fork() on a stack of its own. Signals wait meanwhile: their handlers' stack may be the
 * caller's, of which the kernel would not see that its frames are in use. */
static pid_t fork_on_own_stack(fork_function function) {
    const size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = guard + STACK_BYTES;
    char* room = mmap(NULL, bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    struct detour* detour;
    pid_t child;
    int error;

    if (room == MAP_FAILED) {
        return -1;
    }
    if (mprotect(room + guard, STACK_BYTES, PROT_READ | PROT_WRITE) != 0) {
        munmap(room, bytes);
        return -1; /* munmap() of what is mapped leaves errno alone. */
    }
    detour = (struct detour*)(room + guard);
    detour->fork = function;
    getcontext(&detour->here);
    sigfillset(&detour->here.uc_sigmask);
    detour->here.uc_stack.ss_sp = detour + 1;
    detour->here.uc_stack.ss_size = STACK_BYTES - sizeof(*detour);
    detour->here.uc_link = &detour->caller;
    makecontext(&detour->here, (void (*)(void))fork_here, 2,
                (unsigned)((uint64_t)(uintptr_t)detour >> 32), (unsigned)(uintptr_t)detour);
    caller_stack = (const char*)__builtin_frame_address(0) - FRAME_BYTES;
    swapcontext(&detour->caller, &detour->here);
    caller_stack = NULL;
    child = detour->child;
    error = detour->error;
    munmap(room, bytes);
    if (child < 0) {
        errno = error;
    }
    return child;
}

static pid_t refuse(void) {
    static atomic_bool told;

    if (!atomic_exchange(&told, true)) {
        heap_warn("fork() fails in a thread whose stack lies in a large block that malloc gave "
                  "(pthread_attr_setstack): the child would change its parent's record of the "
                  "thread. Give it a stack by mmap, or run the program without libucg_heap.so");
    }
    errno = ENOSYS;
    return -1;
}

__attribute__((visibility("default"))) pid_t fork(void) {
    if (atomic_load(&system_fork) == NULL && !heap_stack_find_fork()) {
        errno = ENOSYS;
        return -1;
    }
    if (heap_space_shares((const void*)pthread_self())) {
        return refuse();
    }
    if (!heap_fork_can_copy()) {
        errno = ENOMEM;
        return -1;
    }
    return heap_space_shares(__builtin_frame_address(0))
               ? fork_on_own_stack(atomic_load(&system_fork))
               : atomic_load(&system_fork)();
}
