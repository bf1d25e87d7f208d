/*
 * Address space for a mapping of a file. C, since the preloaded heap needs it before, and without,
 * a C++ runtime.
 */
#ifndef UCG_SHM_GUARDED_ROOM_H_
#define UCG_SHM_GUARDED_ROOM_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns room for `bytes` bytes between two pages that cannot be touched, so that code that runs
 * beyond its end does not write into its neighbour. Nor can the room itself be touched before
 * something is mapped over it. It begins at a multiple of `alignment`. On failure returns NULL,
 * with errno. REQUIRES: whole pages; `alignment` is a power of two, a page at least.
 */
void* ucg_shm_guarded_room(uint64_t bytes, uint64_t alignment);

/* Ends the room, and what is mapped there. */
void ucg_shm_guarded_room_end(void* room, uint64_t bytes);

/* The alignment with which a file that is mapped from its start can have huge pages of 2 MiB:
 * addresses and offsets in the file then agree modulo that. */
enum { UCG_SHM_HUGE_PAGE_BYTES = 2 << 20 };

#ifdef __cplusplus
}
#endif

#endif
