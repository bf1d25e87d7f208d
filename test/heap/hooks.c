/*
 * A program whose mmap() and munmap() are its own, as they are where UCX watches memory: what is
 * called then may take locks, which in a forked child another thread of the parent may hold. The
 * library calls neither of them in the child's handler.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap_maps.h"

enum { BLOCK_BYTES = 2 << 20, FORKS = 3 };

static pid_t parent;
static atomic_bool forking;
static atomic_int calls;

static void note(void) {
    if (atomic_load(&forking) && getpid() != parent) {
        atomic_fetch_add(&calls, 1);
    }
}

__attribute__((visibility("default"))) void* mmap(void* address, size_t bytes, int access,
                                                  int flags, int fd, off_t offset) {
    note();
    return (void*)syscall(SYS_mmap, address, bytes, (long)access, (long)flags, (long)fd, offset);
}

__attribute__((visibility("default"))) int munmap(void* address, size_t bytes) {
    note();
    return (int)syscall(SYS_munmap, address, bytes);
}

int main(void) {
    unsigned char* block = malloc(BLOCK_BYTES);
    int good = 0;

    parent = getpid();
    memset(block, 1, BLOCK_BYTES);
    for (int i = 0; i < FORKS; ++i) {
        int status = -1;
        pid_t child;

        atomic_store(&forking, true);
        child = fork();
        atomic_store(&forking, false);
        if (child == 0) {
            if (atomic_load(&calls) > 0) {
                fprintf(stderr, "%d calls of mmap or munmap in the child\n", atomic_load(&calls));
            }
            _exit(atomic_load(&calls) == 0 && block[BLOCK_BYTES - 1] == 1 && !in_heap(block) ? 0
                                                                                             : 1);
        }
        good += child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 1 : 0;
    }
    return in_heap(block) && good == FORKS ? 0 : 1;
}
