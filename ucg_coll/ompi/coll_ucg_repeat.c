/*
 * Calls that a program repeats with other buffers: a loop's, most often.
 */
#include <string.h>

#include "coll_ucg_call.h"

/** Does libucg get the user's own buffers, and does no later object have the same address? */
static bool always_means_the_same(const coll_ucg_latest_t* call, const ucg_coll_params_t* params) {
    const bool plain_type =
        NULL == call->type || (ompi_datatype_is_predefined(call->type) &&
                               coll_ucg_is_gapless(call->type) && 0 == call->type->super.true_lb);
    return plain_type && (NULL == call->op || UCG_OP_USER != params->op);
}

static bool same_call(const coll_ucg_latest_t* a, const coll_ucg_latest_t* b) {
    return a->type == b->type && a->op == b->op && a->count == b->count && a->root == b->root &&
           a->in_place == b->in_place;
}

static void forget(coll_ucg_latest_t* latest) {
    if (NULL != latest->coll) {
        ucg_coll_free(latest->coll);
        latest->coll = NULL;
    }
}

void coll_ucg_remember(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                       const coll_ucg_latest_t* call, const ucg_coll_params_t* params) {
    coll_ucg_latest_t* latest = &module->latest[function];
    if (!same_call(latest, call)) {
        forget(latest);
        *latest = *call;
    } else if (NULL == latest->coll && always_means_the_same(call, params) &&
               UCG_OK != ucg_coll_init(module->group, params, &latest->coll)) {
        latest->coll = NULL; /* Then each call is one of its own. */
    }
}

void coll_ucg_forget(mca_coll_ucg_module_t* module) {
    for (int i = 0; i < COLL_UCG_FN_BLOCKING_COUNT; i++) {
        forget(&module->latest[i]);
    }
}
