/*
 * What the functions of all collectives of intra-communicators have in common, for each form of a
 * call: blocking, nonblocking and persistent. A collective itself has a comparison by which calls
 * that repeat the latest take a short path (coll_ucg_repeat.h), and a function that opens a call
 * from its arguments (coll_ucg_call.h). Of inter-communicators barriers come here, and the
 * nonblocking and persistent calls of coll_ucg_inter_across.c.
 */
#ifndef MCA_COLL_UCG_FORMS_H
#define MCA_COLL_UCG_FORMS_H

#include "coll_ucg_arguments.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_restart.h"

/* All return what the collective function is to return. `description`: what a later call must have
   in common with this one to repeat it, or NULL if none repeats it. The arguments go by value: if
   MPI's entries took the address of a structure, compilers that protect the stack
   (-fstack-protector-strong) would do so on the short path as well. */

/** Makes a call of a blocking function, in its place among those that wait for the group if there
 *  is none yet. */
int coll_ucg_blocking(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                      coll_ucg_arguments_t arguments, const coll_ucg_latest_t* description);

/** Starts a call of a nonblocking function. */
int coll_ucg_nonblocking(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                         coll_ucg_arguments_t arguments, const coll_ucg_latest_t* description);

/** Do the same for functions without vectors, which are described by their arguments. */
int coll_ucg_blocking_plain(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                            coll_ucg_arguments_t arguments);
int coll_ucg_nonblocking_plain(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                               coll_ucg_arguments_t arguments);

/** Makes a persistent request. */
int coll_ucg_persistent(mca_coll_base_module_t* module, enum coll_ucg_function function,
                        coll_ucg_arguments_t arguments);

#endif
