/*
 * Nonblocking calls that a program repeats with other buffers (coll_ucg_repeat.h). Most short ones
 * have ended when they have started, and then there is no request: MPI_Wait gets Open MPI's empty
 * one. Each function has one request for its latest call, for when it has not.
 */
#ifndef MCA_COLL_UCG_RESTART_H
#define MCA_COLL_UCG_RESTART_H

#include "coll_ucg_repeat.h"
#include "coll_ucg_request.h"
#include "ompi/request/request.h"

struct coll_ucg_restartable {
    coll_ucg_latest_t latest;
    coll_ucg_request_t* request; /**< NULL until the call is prepared. */
    atomic_bool out; /**< The program has that. Whichever thread frees it says that it has not. */
};

/** Of a communicator that has not called any nonblocking function. Nobody writes it. */
extern coll_ucg_restartable_t coll_ucg_nothing_to_restart[COLL_UCG_FN_NONBLOCKING_COUNT];

static inline coll_ucg_restartable_t* coll_ucg_restartable(const mca_coll_ucg_module_t* module,
                                                           enum coll_ucg_function function) {
    return &module->restartable[function - COLL_UCG_FN_BLOCKING_COUNT];
}

/** The latest call of a nonblocking function, for coll_ucg_repeats() and its like; one that nothing
 *  repeats while its request is out: that may be in progress. */
static inline const coll_ucg_latest_t* coll_ucg_latest_start(const mca_coll_ucg_module_t* module,
                                                             enum coll_ucg_function function) {
    const coll_ucg_restartable_t* known = coll_ucg_restartable(module, function);
    return OPAL_LIKELY(!atomic_load_explicit(&known->out, memory_order_acquire))
               ? &known->latest
               : &coll_ucg_nothing_to_restart->latest;
}

/** What a start comes to that has not ended at once. */
int coll_ucg_restart_unfinished(coll_ucg_restartable_t* known, ucg_status_t status,
                                ompi_request_t** request_p);

/** Starts it with its buffers, as libucg has them. Returns what the collective function returns. */
static inline int coll_ucg_restart(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                                   const void* send, void* receive, ompi_request_t** request_p) {
    coll_ucg_restartable_t* const known = coll_ucg_restartable(module, function);
    module->counters.taken[function]++;
    const ucg_status_t status = ucg_coll_restart(known->latest.coll, send, receive);
    if (OPAL_UNLIKELY(UCG_OK != status)) {
        return coll_ucg_restart_unfinished(known, status, request_p);
    }
    *request_p = &ompi_request_empty;
    coll_ucg_serve_host();
    return OMPI_SUCCESS;
}

/** The same for a function whose algorithm may change from call to call; its counters are left to
 *  the caller. False: libucg does not start it again, and nothing was started. */
bool coll_ucg_try_to_restart(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                             const void* send, void* receive, ompi_request_t** request_p,
                             ucg_status_t* status_p);

/** Counts a call that was started so, and returns what the collective function returns. */
static inline int coll_ucg_restarted(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                                     ucg_status_t status) {
    module->counters.taken[function]++;
    return OPAL_LIKELY(UCG_OK == status) ? OMPI_SUCCESS : coll_ucg_error(status);
}

/** What coll_ucg_start_call() does, for a call that may be repeated; `arguments`: NULL if not. */
ucg_status_t coll_ucg_start_described(coll_ucg_request_t* request, enum coll_ucg_function function,
                                      const coll_ucg_latest_t* arguments, ucg_status_t opened,
                                      ompi_request_t** request_p);

/** Before the group is left. */
void coll_ucg_forget_starts(mca_coll_ucg_module_t* module);

#endif
