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
    uint64_t bytes; /* 0: there is to be no segment; `reason` says why. */
    uint64_t lease_bytes;
    const char* reason;
};

/* Returns the shape that the limits of this process allow. */
struct heap_shape heap_shape_of_process(void);
/* Returns the shape of a segment of `bytes` bytes on a machine with `memory_bytes` of memory. */
struct heap_shape heap_shape_of(uint64_t bytes, uint64_t memory_bytes);
/* Returns whether ordinary memory of this system gets huge pages without being asked for. */
bool heap_huge_pages_are_usual(void);
/* The smallest segment. */
extern const uint64_t heap_bytes_min;

/* ------------------------------------------------------------------ space.c */

/* The segment and how much of it is taken. One per process; made once, before main. */

/* Makes the segment. Returns false, and warns why, if there is none. */
bool heap_space_make(void);
/* Ends the segment. REQUIRES: nothing has been taken. */
void heap_space_drop(void);
/* Returns zeroed, page-aligned memory of the segment; NULL when it is full. It is never given back:
 * jemalloc purges what it does not need and keeps it. Thread-safe. */
void* heap_space_take(size_t bytes, size_t alignment);
/* Returns whether the address lies in the segment. */
bool heap_space_holds(const void* address);
/* Like heap_space_holds(), but false in a forked child, whose memory is its own. */
bool heap_space_shares(const void* address);
/* Gives the pages of a range that was taken back to the system; it reads as zeros then. Returns
 * whether it could. */
bool heap_space_purge(void* address, size_t bytes);

/* ------------------------------------------------------------------ fork.c */

/* Registers the handlers that keep a forked child's memory apart from its parent's. Returns 0 or a
 * code of errno. */
int heap_space_guard_fork(void);
/* Returns whether they are registered, which they are before jemalloc serves its first block. */
bool heap_space_fork_is_guarded(void);
/* Registers a handler that runs before a fork, earlier than all that were registered so far.
 * Returns 0 or a code of errno. */
int heap_space_before_fork(void (*prepare)(void));
/* Returns whether a forked child can have a copy of the large blocks; true where it needs none,
 * since it can map the file. Otherwise warns, once. */
bool heap_fork_can_copy(void);

/* ------------------------------------------------------------------ stack.c */

/* Looks up the fork() that ours calls. Returns false if there is none. */
bool heap_stack_find_fork(void);
/* Returns where the stack frames begin to which this thread's fork() returns, if the handlers run
 * on another stack; else NULL. */
const void* heap_stack_of_fork(void);

/* ------------------------------------------------------------------ extents.c */

/* Lets jemalloc take its large blocks from the segment; warns if that concerns some of them only.
 * Returns false, and warns why, if it cannot: then nothing comes from the segment. */
bool heap_extents_install(void);
/* Purges the blocks that were freed. Runs before jemalloc's own handler takes its locks. */
void heap_extents_purge(void);

/* ------------------------------------------------------------------ report.c */

/* Writes a warning to standard error, as the library's log would, unless UCG_LOG_LEVEL is error.
 * Allocates nothing. */
__attribute__((format(printf, 1, 2))) void heap_warn(const char* format, ...);

#endif
