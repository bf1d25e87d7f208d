/*
 * The groups of a communicator's persistent requests, each of which has one of its own as long as
 * it lives (coll_ucg_request.h).
 *
 * Making a group takes as long as some twenty short calls, so those of requests that were freed
 * serve later ones. MPI_Request_free() is local: a process does not know whether the others have
 * freed theirs. What all know alike is which groups they have all given up, the spare ones, and in
 * which order requests are made. So a request takes the first spare group; where there is none, its
 * processes agree on which groups are spare again, by one call in the communicator's own group, and
 * make further ones where these are few. Only every so many requests need that.
 */
#ifndef MCA_COLL_UCG_POOL_H
#define MCA_COLL_UCG_POOL_H

#include "coll_ucg.h"

/** A group, and who has it. */
typedef struct coll_ucg_pooled coll_ucg_pooled_t;

/** A group for a request that is made now. Collective over the processes of the module's
 *  communicator, and blocks. The same status on all of them; UCG_ERR_UNSUPPORTED: they go without.
 */
ucg_status_t coll_ucg_take_group(mca_coll_ucg_module_t* module, coll_ucg_pooled_t** pooled_p);

ucg_group_h coll_ucg_pooled_group(const coll_ucg_pooled_t* pooled);

/** Nothing of the request is in progress any more. `intact`: no call has failed, so the group may
 *  serve others. Local; any thread. */
void coll_ucg_return_group(coll_ucg_pooled_t* pooled, bool intact);

/** The module leaves its group. Requests may have theirs still. Local. */
void coll_ucg_leave_pool(mca_coll_ucg_module_t* module);

#endif
