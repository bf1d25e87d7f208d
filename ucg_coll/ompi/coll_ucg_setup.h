/*
 * How groups are made: who takes part, and how they exchange what libucg asks them to.
 */
#ifndef MCA_COLL_UCG_SETUP_H
#define MCA_COLL_UCG_SETUP_H

#include "coll_ucg.h"

/** Processes that make a group, seen from one of them. The functions are collective over these
 *  processes and work before there is a group; they return what functions of Open MPI return. */
typedef struct coll_ucg_exchange {
    mca_coll_ucg_module_t* module;
    uint32_t rank;
    uint32_t size;
    int root; /**< Of a group for one root, as it was given in the call. */
    /** Gathers `bytes` bytes of each in the order of ranks. */
    int (*gather)(struct coll_ucg_exchange* exchange, const void* source, void* target, int bytes);
    /** The greatest of all numbers. Takes no memory. NULL of those that take no turns. */
    int (*find_worst)(struct coll_ucg_exchange* exchange, const int* mine, int* worst);
    bool with_side; /**< This process's side of an inter-communicator gets its group first. */
    bool failed;    /**< In a way that the others may not know of. */
} coll_ucg_exchange_t;

/** Makes a group, at their turn. The same status on all of them; UCG_ERR_UNSUPPORTED: they go
 *  without, and somebody has said so. UCG_ERR_BUSY: one of them makes the memory that it shares for
 *  the group of another communicator, and they may try again later. */
ucg_status_t coll_ucg_make_group_by(coll_ucg_exchange_t* exchange, ucg_group_h* group_p);

/** The calls that the previous modules serve before the next try, of which there were `*pause`
 *  before the latest. */
int coll_ucg_pause_after_busy(int* pause);

/** The one step of it that has no turn. */
ucg_status_t coll_ucg_create_group(coll_ucg_exchange_t* exchange, ucg_context_h context,
                                   ucg_group_h* group_p);

/** Makes another group of the processes of the module's group, who exchange by that: sooner than by
 *  the previous modules. Collective in the order of the module's calls. The same status on all of
 *  them; UCG_ERR_UNSUPPORTED: there is none. */
ucg_status_t coll_ucg_make_further_group(mca_coll_ucg_module_t* module, ucg_group_h* group_p);

/** The least that a process of the module's group has of each of these numbers, in place. */
ucg_status_t coll_ucg_find_least(mca_coll_ucg_module_t* module, uint64_t* numbers, size_t count);

/** Of a module that has got its group: counts it among those that have one. */
void coll_ucg_enlist(mca_coll_ucg_module_t* module);

/** Says once, from the first rank, that a communicator goes without libucg. */
void coll_ucg_tell_of_no_group(const mca_coll_ucg_module_t* module, ucg_status_t status);

/** Is this thread making a group? What serves the exchange may call collectives of other
 *  communicators, which must not make theirs meanwhile. */
bool coll_ucg_is_making_group(void);

#endif
