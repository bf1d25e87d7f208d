/* The segment, for the files that share it: space.c and fork.c. */
#ifndef UCG_SHM_PRELOAD_SPACE_H_
#define UCG_SHM_PRELOAD_SPACE_H_

#include <stdatomic.h>
#include <sys/types.h>

#include "shm/preload/heap.h"

/* Written before main, and by a forked child while it has one thread; except `taken`, which only
 * rises. */
struct heap_space {
    char* base;
    uint64_t bytes;
    uint64_t lease_bytes;
    _Atomic uint64_t taken; /* Everything below belongs to libucg or jemalloc. */
    bool shared;            /* False in a forked child: the same addresses, memory of its own. */
    bool huge_pages;        /* What is taken is to have huge pages. */
    bool over_file;         /* In a child without a copy: some of it still shows the file. */
    int fd;
    dev_t device; /* Of the file, since programs close descriptors that they did not open. */
    ino_t inode;
};
extern struct heap_space heap_space;

/* Returns whether the descriptor is still the file's. */
bool heap_space_file_is_open(void);

#endif
