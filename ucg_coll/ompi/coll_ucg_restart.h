/*
 * Nonblocking calls that a program repeats with other buffers (coll_ucg_repeat.h). Most short ones
 * have ended as soon as they have started, and then need no request: MPI_Wait gets Open MPI's empty
 * one. For those that have not, each function has one request for its latest call.
 */
#ifndef MCA_COLL_UCG_RESTART_H
#define MCA_COLL_UCG_RESTART_H

#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"
#include "ompi/request/request.h"

struct coll_ucg_restartable {
    coll_ucg_latest_t latest;
    coll_ucg_request_t* request; /**< NULL until the call is prepared. */
    atomic_bool out; /**< The program has the request. Cleared by the thread that frees it. */
};

/** The array of a communicator that has not called any nonblocking function. Nobody writes it. */
extern coll_ucg_restartable_t coll_ucg_nothing_to_restart[COLL_UCG_FN_NONBLOCKING_COUNT];

static inline coll_ucg_restartable_t* coll_ucg_restartable(const mca_coll_ucg_module_t* module,
                                                           enum coll_ucg_function function) {
    return &module->restartable[function - COLL_UCG_FN_BLOCKING_COUNT];
}

/** Returns the latest call of a nonblocking function, for coll_ucg_repeats() and its like. While
 *  the program has its request the call may be in progress; then returns one that nothing
 *  repeats. */
static inline const coll_ucg_latest_t* coll_ucg_latest_start(const mca_coll_ucg_module_t* module,
                                                             enum coll_ucg_function function) {
    const coll_ucg_restartable_t* known = coll_ucg_restartable(module, function);
    return OPAL_LIKELY(!atomic_load_explicit(&known->out, memory_order_acquire))
               ? &known->latest
               : &coll_ucg_nothing_to_restart->latest;
}

/** Goes on after a start that has not ended at once. Returns what the collective function is to
 *  return. */
int coll_ucg_restart_unfinished(coll_ucg_restartable_t* known, ucg_status_t status,
                                ompi_request_t** request_p);

/** Starts the latest call again with these buffers, as libucg has them. Returns what the collective
 *  function is to return. */
static inline int coll_ucg_restart(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                                   const void* send, void* receive, ompi_request_t** request_p) {
    coll_ucg_restartable_t* const known = coll_ucg_restartable(module, function);
    module->counters.taken[function]++;
    const ucg_status_t status = ucg_coll_restart(known->latest.coll, send, receive);
    if (OPAL_UNLIKELY(UCG_OK != status)) {
        return coll_ucg_restart_unfinished(known, status, request_p);
    }
    *request_p = &ompi_request_empty;
    return coll_ucg_serve_host();
}

/** Like coll_ucg_restart(), for a function whose algorithm may change from call to call; the caller
 *  updates the counters. Returns false if libucg does not start it again, and nothing was
 *  started. */
bool coll_ucg_try_to_restart(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                             const void* send, void* receive, ompi_request_t** request_p,
                             ucg_status_t* status_p);

/** Counts a call that coll_ucg_try_to_restart() has started, and returns what the collective
 *  function is to return. */
static inline int coll_ucg_restarted(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                                     ucg_status_t status) {
    module->counters.taken[function]++;
    return OPAL_LIKELY(UCG_OK == status) ? OMPI_SUCCESS : coll_ucg_error(status);
}

/** Does what coll_ucg_start_call() does, for a call that may be repeated; `arguments` is NULL if it
 *  may not. */
ucg_status_t coll_ucg_start_described(coll_ucg_request_t* request, enum coll_ucg_function function,
                                      const coll_ucg_latest_t* arguments, ucg_status_t opened,
                                      ompi_request_t** request_p);

/** Forgets all nonblocking calls. To be called before the group is left. */
void coll_ucg_forget_starts(mca_coll_ucg_module_t* module);

#endif
