/*
 * Nonblocking calls that a program repeats with other buffers.
 */
#include "coll_ucg_restart.h"

#include <stdlib.h>

coll_ucg_restartable_t coll_ucg_nothing_to_restart[COLL_UCG_FN_NONBLOCKING_COUNT];

/** Makes the module's array of latest nonblocking calls, if there is none yet. False: no memory. */
static bool has_room(mca_coll_ucg_module_t* module) {
    if (coll_ucg_nothing_to_restart == module->restartable) {
        coll_ucg_restartable_t* room =
            calloc(COLL_UCG_FN_NONBLOCKING_COUNT, sizeof *module->restartable);
        if (NULL == room) {
            return false;
        }
        module->restartable = room;
    }
    return true;
}

/** Remembers a call, before it starts, because a request that ends at once may be in use for
 *  another call afterwards. Without memory nothing is remembered. While the program has the request
 *  of the latest call that one stays, since it may be in progress. Calls that have waited for the
 *  group are not remembered: another thread makes them, and a repetition of one would overtake
 *  those that still wait. Nor are calls whose requests take arrays: a call that is started again
 *  and ends at once has no request of its own. */
static void remember(const coll_ucg_call_t* call, enum coll_ucg_function function,
                     const coll_ucg_latest_t* arguments) {
    mca_coll_ucg_module_t* module = call->module;
    if (COLL_UCG_FORMING == module->state || coll_ucg_takes_arrays(call) || !has_room(module)) {
        return;
    }
    coll_ucg_restartable_t* known = coll_ucg_restartable(module, function);
    if (atomic_load_explicit(&known->out, memory_order_acquire)) {
        return;
    }
    coll_ucg_remember(&known->latest, call, arguments);
    if (NULL == known->latest.coll) {
        return;
    }
    if (NULL == known->request) {
        known->request = coll_ucg_make_restarting(module, known);
    }
    if (NULL == known->request) {
        coll_ucg_forget_latest(&known->latest);
    }
}

ucg_status_t coll_ucg_start_described(coll_ucg_request_t* request, enum coll_ucg_function function,
                                      const coll_ucg_latest_t* arguments, ucg_status_t opened,
                                      ompi_request_t** request_p) {
    if (OPAL_LIKELY(NULL != arguments && UCG_OK == opened) && !request->call.empty) {
        coll_ucg_mark_nonblocking(request);
        remember(&request->call, function, arguments);
    }
    return coll_ucg_start_call(request, opened, request_p);
}

int coll_ucg_restart_unfinished(coll_ucg_restartable_t* known, ucg_status_t status,
                                ompi_request_t** request_p) {
    if (UCG_INPROGRESS == status) {
        status = coll_ucg_leave_restarted(known, request_p);
    }
    return UCG_OK == status ? OMPI_SUCCESS : coll_ucg_error(status);
}

bool coll_ucg_try_to_restart(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                             const void* send, void* receive, ompi_request_t** request_p,
                             ucg_status_t* status_p) {
    coll_ucg_restartable_t* const known = coll_ucg_restartable(module, function);
    *status_p = ucg_coll_restart(known->latest.coll, send, receive);
    if (OPAL_LIKELY(UCG_OK == *status_p)) {
        *request_p = &ompi_request_empty;
        (void)coll_ucg_serve_host();
    } else if (UCG_INPROGRESS == *status_p) {
        *status_p = coll_ucg_leave_restarted(known, request_p);
    }
    return UCG_ERR_UNSUPPORTED != *status_p;
}

void coll_ucg_forget_starts(mca_coll_ucg_module_t* module) {
    coll_ucg_restartable_t* const all = module->restartable;
    if (coll_ucg_nothing_to_restart == all) {
        return;
    }
    for (int i = 0; i < COLL_UCG_FN_NONBLOCKING_COUNT; i++) {
        coll_ucg_forget_latest(&all[i].latest);
        if (NULL != all[i].request) {
            coll_ucg_end_restarting(all[i].request);
        }
    }
    module->restartable = coll_ucg_nothing_to_restart;
    free(all);
}
