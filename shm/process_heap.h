/*
 * What a program that runs with libucg_heap.so preloaded offers to libucg in the same process: the
 * segment that serves the program's large allocations. libucg refers to these functions weakly; a
 * null address means that nothing is preloaded. C, because the preloaded library must not bring a
 * C++ runtime into programs that have none.
 */
#ifndef UCG_SHM_PROCESS_HEAP_H_
#define UCG_SHM_PROCESS_HEAP_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ucg_heap_segment {
    void* base;           /* Mapped shared until the process ends; for access, see below. */
    uint64_t bytes;       /* Length of the file and of the mapping. */
    uint64_t lease_bytes; /* [0, lease_bytes) is for the claimer; the rest is the program's. */
    int descriptor; /* Of the memfd; borrowed until the claim ends. A duplicate would stay open
                     * in a forked child, and the memory with it. */
};

/*
 * The suffix is the version of this interface; another layout gets another name, so that a library
 * and a preload of different releases do not find one another.
 *
 * Takes the segment for one user. Returns 0, or a code of errno: EBUSY while another one has it,
 * ENOTSUP when the program's memory is ordinary memory (the reason was told when the program
 * started, or this is a forked child, whose memory is its own), EBADF when the program closed the
 * descriptor, ENOMEM. Thread-safe. Access: a claim makes [0, lease_bytes) readable and writable,
 * and the claimer takes the access back (mprotect) from what it will not use, since mlockall()
 * backs what can be touched; of the rest, what malloc has taken can be touched.
 */
__attribute__((visibility("default"), weak)) int
ucg_heap_claim_1(struct ucg_heap_segment* segment_p);

/* Returns what a claim would return now, without ENOMEM. Thread-safe; changes nothing. */
__attribute__((visibility("default"), weak)) int ucg_heap_can_claim_1(void);

/* Ends a claim. What was leased must have been discarded: the next claimer finds zeros. */
__attribute__((visibility("default"), weak)) void ucg_heap_release_1(void);

#ifdef __cplusplus
}
#endif

#endif
