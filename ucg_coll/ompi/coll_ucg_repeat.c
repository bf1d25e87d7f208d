/*
 * Calls that a program repeats with other buffers.
 */
#include "coll_ucg_repeat.h"

#include <stdlib.h>

static bool is_plain(const ompi_datatype_t* type) {
    return NULL == type || (ompi_datatype_is_predefined(type) && coll_ucg_is_gapless(type) &&
                            0 == type->super.true_lb);
}

static bool has_plain_blocks(const coll_ucg_data_t* data) {
    bool plain = true;
    for (int i = 0; NULL != data->types && i < data->size && plain; i++) {
        plain = is_plain(data->types[i]);
    }
    return plain;
}

/** Does libucg get the program's own buffers, and can no later object have the address of one of
 *  the arguments? */
static bool always_means_the_same(const coll_ucg_call_t* call, const coll_ucg_latest_t* arguments) {
    return is_plain(arguments->type) && has_plain_blocks(&call->input) &&
           has_plain_blocks(&call->output) &&
           (NULL == arguments->op || UCG_OP_USER != call->params.op);
}

static bool same_call(const coll_ucg_latest_t* latest, const coll_ucg_latest_t* call) {
    return latest->type == call->type && latest->op == call->op && latest->count == call->count &&
           latest->root == call->root && latest->in_place == call->in_place &&
           coll_ucg_same_vectors(latest, call->vectors, call->vector_count);
}

void coll_ucg_forget_latest(coll_ucg_latest_t* latest) {
    if (NULL != latest->coll) {
        ucg_coll_free(latest->coll);
    }
    free((coll_ucg_vector_t*)latest->vectors);
    *latest = (coll_ucg_latest_t){.coll = NULL};
}

/** Copies vectors, and their data after them, to one block of memory; NULL: no memory. */
static coll_ucg_vector_t* copy_vectors(const coll_ucg_vector_t* vectors, int count) {
    size_t bytes = (size_t)count * sizeof *vectors;
    for (int i = 0; i < count; i++) {
        bytes += vectors[i].bytes;
    }
    coll_ucg_vector_t* copies = malloc(bytes);
    char* data = (char*)(copies + count);
    for (int i = 0; i < count && NULL != copies; i++) {
        copies[i] = (coll_ucg_vector_t){data, vectors[i].bytes};
        memcpy(data, vectors[i].data, vectors[i].bytes);
        data += vectors[i].bytes;
    }
    return copies;
}

/** Keeps the arguments of a call as the latest; keeps none if there is no memory for its
 *  vectors. */
static void keep(coll_ucg_latest_t* latest, const coll_ucg_latest_t* call) {
    coll_ucg_vector_t* vectors = NULL;
    coll_ucg_forget_latest(latest);
    if (0 != call->vector_count) {
        vectors = copy_vectors(call->vectors, call->vector_count);
        if (NULL == vectors) {
            return;
        }
    }
    *latest = *call;
    latest->vectors = vectors;
}

void coll_ucg_remember(coll_ucg_latest_t* latest, const coll_ucg_call_t* call,
                       const coll_ucg_latest_t* arguments) {
    if (!same_call(latest, arguments)) {
        keep(latest, arguments);
    } else if (NULL == latest->coll && always_means_the_same(call, arguments)) {
        if (UCG_OK == ucg_coll_init(call->group, &call->params, &latest->coll)) {
            latest->prepared_type = latest->type;
        } else {
            latest->coll = NULL; /* Then each call is prepared anew. */
        }
    }
}

void coll_ucg_forget(mca_coll_ucg_module_t* module) {
    for (int i = 0; i < COLL_UCG_FN_BLOCKING_COUNT; i++) {
        coll_ucg_forget_latest(&module->latest[i]);
    }
}
