/*
 * How much memory this process may still use: of the machine, of the control groups it is in and
 * of the memory nodes (NUMA) that it may use.
 * In C, without allocating and on little stack, for the preloaded library, which asks while its
 * allocator is locked, on the stack of whatever thread forks; all others use budget.hpp.
 */
#ifndef UCG_SHM_MEMORY_BUDGET_H_
#define UCG_SHM_MEMORY_BUDGET_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ucg_shm_budget {
    uint64_t total;     /* Bytes that could be used if nothing else were. */
    uint64_t available; /* Bytes that can be used now; caches that can be dropped count. */
};

/* Returns the budget by /proc/meminfo, by the files of the control groups (version 1 and 2) as far
 * up as a mount shows them, and by those of the memory nodes in the process's cpuset and in the
 * calling thread's policy. What cannot be read limits nothing; a process that has no address space
 * left has no memory either. `root` is prefixed to every path. */
struct ucg_shm_budget ucg_shm_memory_budget(const char* root);

#ifdef __cplusplus
}
#endif

#endif
