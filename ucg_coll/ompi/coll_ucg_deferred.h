/*
 * Calls that are made while the group of their communicator is being made. They wait, and when it
 * is known whether there is a group, their nonblocking functions are called again, in the program's
 * order. A blocking call keeps its place among them in the same way.
 */
#ifndef MCA_COLL_UCG_DEFERRED_H
#define MCA_COLL_UCG_DEFERRED_H

#include "coll_ucg_arguments.h"
#include "ompi/mca/coll/base/coll_base_util.h"

typedef struct {
    /** The request that the program, or the blocking function, waits for. MPI's bindings attach the
     *  datatypes and the operator of a nonblocking call to it, until it is complete. */
    ompi_coll_base_nbc_request_t super;
    mca_coll_ucg_module_t* module;
    enum coll_ucg_function function; /**< The nonblocking one. */
    /* Of a call of the blocking function: */
    const void* thread;  /**< Names the thread that waits; NULL: the call is none. */
    bool is_due;         /**< Its turn has come since its function looked last. */
    ucg_status_t passed; /**< UCG_OK, or why libucg has not served it. */
    coll_ucg_arguments_t arguments;
    /** Copies of the vectors that the arguments point at, or NULL. MPI says that programs leave
     *  these alone until the call is complete; but Fortran's bindings make arrays of datatypes for
     *  the duration of the call only, and programs (FEniCSx) free their counts when it has
     * returned: Open MPI's own component reads them only there. */
    void* vectors;
    ompi_request_t* inner; /**< The call's own request, once it has been made. */
} coll_ucg_deferred_t;

OBJ_CLASS_DECLARATION(coll_ucg_deferred_t);

/** Makes a call that waits, with the request that the program gets for it. NULL: no memory. */
coll_ucg_deferred_t* coll_ucg_make_deferred(mca_coll_ucg_module_t* module,
                                            enum coll_ucg_function function,
                                            const coll_ucg_arguments_t* arguments);

/** Frees a call that has never waited, or whose request the program gives back. */
void coll_ucg_drop_deferred(coll_ucg_deferred_t* deferred);

/** May the first of the calls that wait be made here and now, by the thread that `thread` names? A
 *  blocking call is left to its function, in whose thread the program's operators are to run. But
 *  if this is found twice before that function goes on, a callback of the program is running within
 *  it, and may wait for a later call. One thread at a time. */
bool coll_ucg_deferred_is_due(coll_ucg_deferred_t* first, const void* thread);

/** Counts a call that libucg has served as one of the blocking function. */
void coll_ucg_count_as_blocking(const coll_ucg_deferred_t* deferred);

/** Has the call been completed, after its function was called again? */
bool coll_ucg_deferred_has_ended(const coll_ucg_deferred_t* deferred);

/** Completes the program's request. The call may not exist any more afterwards. */
void coll_ucg_end_deferred(coll_ucg_deferred_t* deferred);

/** Notes that the function has failed with `rc`, so that the program's request gets that error. */
void coll_ucg_fail_deferred(coll_ucg_deferred_t* deferred, int rc);

#endif
