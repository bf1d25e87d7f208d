/*
 * An anonymous file for shared memory. C, since the preloaded heap needs it before, and without, a
 * C++ runtime.
 */
#ifndef UCG_SHM_SEALED_FILE_H_
#define UCG_SHM_SEALED_FILE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the descriptor, closed on exec, of a new memfd of `bytes` zeros, none of them backed by a
 * page yet, sealed against a change of size. On failure returns -1, with errno, and sets *step_p to
 * the failed step's name. REQUIRES: bytes <= RLIMIT_FSIZE; a longer file is a signal and not an
 * error. Allocates nothing.
 */
int ucg_shm_sealed_file(uint64_t bytes, const char** step_p);

#ifdef __cplusplus
}
#endif

#endif
