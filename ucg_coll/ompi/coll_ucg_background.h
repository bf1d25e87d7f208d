/*
 * Makes the group of an intra-communicator. A nonblocking call must not wait for other processes,
 * so Open MPI's progress goes on with the making, and the communicator's calls wait meanwhile.
 *
 * The call that begins this, and all that come before the group exists, are kept, and are made
 * again in their order when it is known whether there will be a group (coll_ucg_deferred.h). So
 * processes need not agree from which call on the group serves them, however far each of them has
 * come by then. Blocking calls are kept as well, and their functions wait for them: a callback of
 * the program may call a collective of the communicator meanwhile, on some ranks within the
 * blocking call, and on others after it.
 */
#ifndef MCA_COLL_UCG_BACKGROUND_H
#define MCA_COLL_UCG_BACKGROUND_H

#include "coll_ucg_deferred.h"

/** To be called when the component is opened and closed. */
void coll_ucg_open_background(void);
void coll_ucg_close_background(void);

/**
 * Begins a nonblocking call of an intra-communicator that has no group yet, as far as its thread
 * knows. UCG_OK: there is one now. UCG_INPROGRESS: the call has to wait (coll_ucg_defer()).
 * UCG_ERR_UNSUPPORTED: it goes to the previous module. Counts the call, and begins to make the
 * group if that is due.
 */
ucg_status_t coll_ucg_enter_early(mca_coll_ucg_module_t* module);

/** Begins a blocking call of an intra-communicator that has no group yet: likewise, but with
 *  UCG_INPROGRESS the call waits by coll_ucg_wait_in_order(), which begins to make the group if
 * that is due. */
ucg_status_t coll_ucg_enter_waiting(mca_coll_ucg_module_t* module);

/** Makes a blocking call in its place among those that wait, and waits for its end. UCG_OK: *rc is
 *  what its function is to return. UCG_INPROGRESS: it need not wait any more, and is to begin
 *  anew. Else the call has not been made: UCG_ERR_UNSUPPORTED, or an error. */
ucg_status_t coll_ucg_wait_in_order(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                                    const coll_ucg_arguments_t* arguments, int* rc);

/** Gives the group up, if there is one, where this rank lacks a call that the others may have in
 *  its order. `lacks`: it does so from now on; then the group is given up when it is there. */
void coll_ucg_give_up_lacking(mca_coll_ucg_module_t* module, bool lacks);

/** Is this thread making a blocking call again that has waited? */
bool coll_ucg_is_making_blocking(void);

/** Begins a nonblocking call that goes to the previous module in any case, and that is not counted.
 *  UCG_INPROGRESS: it has to wait first, since Open MPI numbers the calls that it gets and so needs
 *  them in order. UCG_ERR_UNSUPPORTED: it goes there now. */
ucg_status_t coll_ucg_pass_in_order(mca_coll_ucg_module_t* module);

/** Keeps a nonblocking call for which a function above returned UCG_INPROGRESS. UCG_OK: its request
 *  is there. UCG_INPROGRESS: it need not wait any more, and is to begin anew. Else an error. */
ucg_status_t coll_ucg_defer(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                            const coll_ucg_arguments_t* arguments);

/** Is this thread making a call again that has waited? Then it must not make progress: that might
 *  run a callback of the program which waits for a call that comes after this one. */
bool coll_ucg_is_making_again(void);

/** Makes the group of an intra-communicator, unless it is being made already, and waits until no
 *  call waits for it. UCG_ERR_NO_MEMORY, or UCG_OK, whether there is a group then or not. */
ucg_status_t coll_ucg_make_group_now(mca_coll_ucg_module_t* module);

/** Gives up the making of the module's group, when its communicator ends. That happens at the end
 *  of a program that has not completed its requests. */
void coll_ucg_abandon_background(mca_coll_ucg_module_t* module);

#endif
