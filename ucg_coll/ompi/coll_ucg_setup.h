/*
 * How groups are made: which processes take part, and how they exchange data when libucg asks them
 * to.
 */
#ifndef MCA_COLL_UCG_SETUP_H
#define MCA_COLL_UCG_SETUP_H

#include "coll_ucg.h"

/** The processes that make a group, seen from one of them. The functions are collective over these
 *  processes and work before there is a group; they return what functions of Open MPI return. */
typedef struct coll_ucg_exchange {
    mca_coll_ucg_module_t* module;
    uint32_t rank;
    uint32_t size;
    int root; /**< For the group of one root: the root, as given in the call. */
    /** Gathers `bytes` bytes of each process in the order of ranks. */
    int (*gather)(struct coll_ucg_exchange* exchange, const void* source, void* target, int bytes);
    /** Finds the greatest number of all processes. Allocates no memory. NULL for a side of an
     *  inter-communicator, whose processes have agreed together with the other side. */
    int (*find_worst)(struct coll_ucg_exchange* exchange, const int* mine, int* worst);
    bool with_side; /**< This process's side of an inter-communicator gets its group first. */
    bool failed;    /**< It failed, and the others may not know of that. */
} coll_ucg_exchange_t;

/** Makes a group when its processes have their turn. Returns the same status on all of them.
 *  UCG_ERR_UNSUPPORTED: they do without one, and somebody has said so. UCG_ERR_BUSY: one of them is
 *  making the group of another communicator, or the memory that it shares for such a group, and
 *  they may try again later. */
ucg_status_t coll_ucg_make_group_by(coll_ucg_exchange_t* exchange, ucg_group_h* group_p);

/** Returns how many further calls the previous modules serve before the next try; before the latest
 *  try there were `*pause`, which is updated. */
int coll_ucg_pause_after_busy(int* pause);

/** Makes a group without waiting for a turn: a step of coll_ucg_make_group_by(). */
ucg_status_t coll_ucg_create_group(coll_ucg_exchange_t* exchange, ucg_context_h context,
                                   ucg_group_h* group_p);

/** Makes another group of the processes of the module's group. They exchange by that group, which
 *  is faster than the previous modules. Collective, in the order of the module's calls. Returns the
 *  same status on all of them; UCG_ERR_UNSUPPORTED: there is none, at least now. */
ucg_status_t coll_ucg_make_further_group(mca_coll_ucg_module_t* module, ucg_group_h* group_p);

/** Replaces each number by the least that a process of the module's group has there. */
ucg_status_t coll_ucg_find_least(mca_coll_ucg_module_t* module, uint64_t* numbers, size_t count);

/** Has the library polled for a module that has got its group. */
void coll_ucg_poll_for(mca_coll_ucg_module_t* module);

/** Says once, from the first rank, that a communicator goes without libucg. */
void coll_ucg_tell_of_no_group(const mca_coll_ucg_module_t* module, ucg_status_t status);

#endif
