/*
 * The groups of a communicator's persistent requests, each of which has one of its own as long as
 * it lives (coll_ucg_request.h).
 *
 * Making a group takes as long as some twenty short calls, so the groups of requests that were
 * freed serve later ones. MPI_Request_free() is local: a process does not know whether the others
 * have freed theirs. What all processes know alike is which groups all have given up, the spare
 * groups, and in which order requests are made. So a request takes the first spare group. If there
 * is none, its processes agree on which groups have become spare, by one call in the communicator's
 * own group, and make further ones if these are few. Only one in several requests needs that.
 */
#ifndef MCA_COLL_UCG_POOL_H
#define MCA_COLL_UCG_POOL_H

#include "coll_ucg.h"

/** A group of the pool, with its present use. */
typedef struct coll_ucg_pooled coll_ucg_pooled_t;

/** Takes a group for a request that is made now. Collective over the processes of the module's
 *  communicator, and blocks. Returns the same status on all of them; UCG_ERR_UNSUPPORTED: they do
 *  without. */
ucg_status_t coll_ucg_take_group(mca_coll_ucg_module_t* module, coll_ucg_pooled_t** pooled_p);

ucg_group_h coll_ucg_pooled_group(const coll_ucg_pooled_t* pooled);

/** Returns a request's group to the pool; no collective of it may be in progress. `intact`: no call
 *  has failed, so the group may serve others. Local; any thread. */
void coll_ucg_return_group(coll_ucg_pooled_t* pooled, bool intact);

/** Frees the pool as far as requests do not use it still, when the module leaves its group.
 *  Local. */
void coll_ucg_leave_pool(mca_coll_ucg_module_t* module);

#endif
