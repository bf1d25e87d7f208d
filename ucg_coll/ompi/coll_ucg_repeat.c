/*
 * Calls that a program repeats with other buffers.
 */
#include "coll_ucg_repeat.h"

#include <stdlib.h>

/** Does libucg get the user's own buffers, and does no later object have the same address? */
static bool always_means_the_same(const coll_ucg_latest_t* call, const ucg_coll_params_t* params) {
    const bool plain_type =
        NULL == call->type || (ompi_datatype_is_predefined(call->type) &&
                               coll_ucg_is_gapless(call->type) && 0 == call->type->super.true_lb);
    return plain_type && (NULL == call->op || UCG_OP_USER != params->op);
}

static bool same_call(const coll_ucg_latest_t* latest, const coll_ucg_latest_t* call, int size) {
    return latest->type == call->type && latest->op == call->op && latest->count == call->count &&
           latest->root == call->root && latest->in_place == call->in_place &&
           (NULL == latest->counts) == (NULL == call->counts) &&
           (NULL == latest->displs) == (NULL == call->displs) &&
           coll_ucg_same_vectors(latest, call->counts, call->displs, size);
}

static void forget(coll_ucg_latest_t* latest) {
    if (NULL != latest->coll) {
        ucg_coll_free(latest->coll);
    }
    free((int*)latest->counts);
    *latest = (coll_ucg_latest_t){.coll = NULL};
}

/** Keeps the arguments of a call; none, if there is no memory for its vectors. */
static void keep(coll_ucg_latest_t* latest, const coll_ucg_latest_t* call, int size) {
    forget(latest);
    int* vectors = NULL;
    if (NULL != call->counts) {
        const size_t bytes = (size_t)size * sizeof(int);
        vectors = malloc(2 * bytes);
        if (NULL == vectors) {
            return;
        }
        memcpy(vectors, call->counts, bytes);
        if (NULL != call->displs) {
            memcpy(vectors + size, call->displs, bytes);
        }
    }
    *latest = *call;
    latest->counts = vectors;
    latest->displs = NULL == call->displs ? NULL : vectors + size;
}

void coll_ucg_remember(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                       const coll_ucg_latest_t* call, const ucg_coll_params_t* params) {
    coll_ucg_latest_t* latest = &module->latest[function];
    const int size = ompi_comm_size(module->comm);
    if (!same_call(latest, call, size)) {
        keep(latest, call, size);
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
