/* The parts of libucg_heap.so. README.md says what they promise together. */
#ifndef UCG_SHM_PRELOAD_HEAP_H_
#define UCG_SHM_PRELOAD_HEAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/process_heap.h"

/* ------------------------------------------------------------------ limits.c */

/* Where the segment's bytes go: [0, lease_bytes) to libucg, the rest to the program. */
struct heap_shape {
    uint64_t bytes; /* 0: do without; `reason` says why. */
    uint64_t lease_bytes;
    const char* reason;
};

struct heap_shape heap_shape_of_process(void);
/* The shape for a segment of `bytes` bytes. */
struct heap_shape heap_shape_of(uint64_t bytes, uint64_t memory_bytes);
extern const uint64_t heap_bytes_min;

/* ------------------------------------------------------------------ space.c */

/* The segment and how much of it is taken. One per process; made once, before main. */

/* Makes the segment. False, with the reason told, when there is none. */
bool heap_space_make(void);
/* Zeroed, page-aligned memory of the segment; NULL when it is full. Never comes back: what
 * jemalloc does not need it purges and keeps for itself. Thread-safe. */
void* heap_space_take(size_t bytes, size_t alignment);
bool heap_space_holds(const void* address);
/* The same, but false in a forked child, whose memory is its own. */
bool heap_space_shares(const void* address);
/* Gives the pages of a range that was taken back to the system; it reads as zeros then. */
bool heap_space_purge(void* address, size_t bytes);
/* Registers what keeps a forked child's memory apart from its parent's. */
int heap_space_guard_fork(void);
/* Registers what is to run before a fork: earlier than all that was registered so far. */
int heap_space_before_fork(void (*prepare)(void));

/* ------------------------------------------------------------------ stack.c */

/* Looks up the fork() that ours calls. False when there is none. */
bool heap_stack_find_fork(void);
/* Where the frames begin to which this thread's fork() returns, when they are not those that the
 * handlers run on; or NULL. */
const void* heap_stack_of_fork(void);

/* ------------------------------------------------------------------ extents.c */

/* Lets jemalloc take its large blocks from the segment. False, with the reason told, if not. */
bool heap_extents_install(void);

/* ------------------------------------------------------------------ report.c */

/* One warning on standard error, as the library's log writes it, unless UCG_LOG_LEVEL is error.
 * Allocates nothing. */
__attribute__((format(printf, 1, 2))) void heap_warn(const char* format, ...);

#endif
