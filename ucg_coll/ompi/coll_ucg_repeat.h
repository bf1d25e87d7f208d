/*
 * Calls that a program repeats with other buffers, most often in a loop. Their arguments are
 * compared with those of the latest call of the same function; nothing is translated again.
 */
#ifndef MCA_COLL_UCG_REPEAT_H
#define MCA_COLL_UCG_REPEAT_H

#include <string.h>

#include "coll_ucg_call.h"

/** Marks functions for calls that repeat nothing: they are not inlined, so that the short path
 *  saves no registers for them. */
#define COLL_UCG_APART __attribute__((noinline))

/** Returns the vector of `count` counts, displacements, places or datatypes. */
static inline coll_ucg_vector_t coll_ucg_vector(coll_ucg_entries_t entries, size_t count) {
    return (coll_ucg_vector_t){entries.data, entries.width * count};
}
#define COLL_UCG_COUNTS(counts, count)                                                             \
    coll_ucg_vector(coll_ucg_counts_entries(counts), (size_t)(count))
#define COLL_UCG_DISPLS(displs, count)                                                             \
    coll_ucg_vector(coll_ucg_displs_entries(displs), (size_t)(count))
#define COLL_UCG_PLACES(places, count)                                                             \
    coll_ucg_vector(coll_ucg_places_entries(places), (size_t)(count))
#define COLL_UCG_TYPES(types, count)                                                               \
    coll_ucg_vector((coll_ucg_entries_t){(types), sizeof *(types)}, (size_t)(count))

/** Returns this rank's entry of a vector that has one for each rank. */
static inline coll_ucg_count_t coll_ucg_own_count(coll_ucg_counts_t counts,
                                                  ompi_communicator_t* comm) {
    return (coll_ucg_count_t)coll_ucg_count_at(counts, (size_t)ompi_comm_rank(comm));
}

/** Does a call with these arguments repeat the latest, so that coll_ucg_repeat() may run it? If it
 *  has a root or vectors, those must be the same as well. A nested call repeats none, since the
 *  latest may be the call that it is nested in. REQUIRES: `type` is not NULL, or `coll` is not. */
static inline bool coll_ucg_repeats(const coll_ucg_latest_t* latest, const ompi_datatype_t* type,
                                    const ompi_op_t* op, coll_ucg_count_t count, bool in_place) {
    return OPAL_LIKELY(latest->prepared_type == type && latest->op == op &&
                       latest->count == count && latest->in_place == in_place &&
                       !coll_ucg_is_nested());
}

static inline bool coll_ucg_same_vectors(const coll_ucg_latest_t* latest,
                                         const coll_ucg_vector_t* vectors, int count) {
    bool same = latest->vector_count == count;
    for (int i = 0; i < count && same; i++) {
        const coll_ucg_vector_t* kept = &latest->vectors[i];
        same = kept->bytes == vectors[i].bytes &&
               0 == memcmp(kept->data, vectors[i].data, kept->bytes);
    }
    return same;
}

/** Does a call with all of these arguments repeat the latest? */
static inline bool coll_ucg_repeats_all_of(const coll_ucg_latest_t* latest,
                                           const coll_ucg_latest_t* call) {
    return NULL != latest->coll &&
           coll_ucg_repeats(latest, call->type, NULL, call->count, call->in_place) &&
           latest->root == call->root &&
           coll_ucg_same_vectors(latest, call->vectors, call->vector_count);
}

/** Does a blocking call with all of these arguments repeat the latest of its function? */
static inline bool coll_ucg_repeats_described(const mca_coll_ucg_module_t* module,
                                              enum coll_ucg_function function,
                                              const coll_ucg_latest_t* call) {
    return coll_ucg_repeats_all_of(&module->latest[function], call);
}

/** Runs the latest call again with these buffers, as libucg has them. Returns what the collective
 *  function is to return. */
static inline int coll_ucg_repeat(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                                  const void* send, void* receive) {
    module->counters.taken[function]++;
    const ucg_status_t status = ucg_coll_repeat(module->latest[function].coll, send, receive);
    return OPAL_LIKELY(UCG_OK == status) ? OMPI_SUCCESS : coll_ucg_error(status);
}

/** Like coll_ucg_repeat(), for a function whose algorithm may change from call to call. Returns
 *  false if libucg does not repeat it, and nothing was started. */
static inline bool coll_ucg_try_to_repeat(mca_coll_ucg_module_t* module,
                                          enum coll_ucg_function function, const void* send,
                                          void* receive, int* result) {
    const ucg_status_t status = ucg_coll_repeat(module->latest[function].coll, send, receive);
    if (OPAL_UNLIKELY(UCG_ERR_UNSUPPORTED == status)) {
        return false;
    }
    module->counters.taken[function]++;
    *result = OPAL_LIKELY(UCG_OK == status) ? OMPI_SUCCESS : coll_ucg_error(status);
    return true;
}

/** Notes an opened call as the latest of its function. Prepares it for repetitions if it came twice
 *  in a row and can be repeated, that is, nothing of it is packed and its arguments always mean the
 *  same. */
void coll_ucg_remember(coll_ucg_latest_t* latest, const coll_ucg_call_t* call,
                       const coll_ucg_latest_t* arguments);
/** Forgets the latest call. REQUIRES: its collective is not in progress. */
void coll_ucg_forget_latest(coll_ucg_latest_t* latest);
/** Does what coll_ucg_remember() does for a blocking call that has ended with `status`, if libucg
 *  has run it, and ends its use of memory, where its vectors may be. A nested call is not
 *  remembered: the latest may be in progress. `arguments`: NULL if the call is never repeated. */
static inline void coll_ucg_remember_call(coll_ucg_call_t* call, enum coll_ucg_function function,
                                          const coll_ucg_latest_t* arguments, ucg_status_t status) {
    if (UCG_OK == status && NULL != arguments && !call->empty && !coll_ucg_is_nested()) {
        coll_ucg_remember(&call->module->latest[function], call, arguments);
    }
    coll_ucg_end_blocking(call);
}

/** Forgets all blocking calls. To be called before the group is left. */
void coll_ucg_forget(mca_coll_ucg_module_t* module);

/* ------------------------------------------------------------------ parts and blocks */

/** What the root of a gather or scatter has for each rank. Used at the root only. */
typedef struct {
    coll_ucg_count_t count;           /**< Elements of the root's own block. */
    const ompi_datatype_t* type;      /**< Type of all blocks. */
    const coll_ucg_vector_t* vectors; /**< Two, or NULL: all blocks have that count. */
} coll_ucg_root_blocks_t;

/**
 * Writes the arguments of a gather or scatter: those of this rank's part, and at the root those of
 * the blocks as well. Returns false if part and block differ in type or count; the call is then
 * never repeated.
 */
static inline bool coll_ucg_describe_rooted(coll_ucg_latest_t* call,
                                            const mca_coll_ucg_module_t* module, int root,
                                            const void* part, coll_ucg_count_t count,
                                            const ompi_datatype_t* type,
                                            coll_ucg_root_blocks_t blocks) {
    *call = (coll_ucg_latest_t){.type = type, .count = count, .root = root};
    if (ompi_comm_rank(module->comm) != root) {
        return true;
    }
    call->in_place = MPI_IN_PLACE == part;
    call->vectors = blocks.vectors;
    call->vector_count = NULL == blocks.vectors ? 0 : 2;
    if (call->in_place) {
        call->type = blocks.type;
        call->count = blocks.count;
    }
    return call->type == blocks.type && call->count == blocks.count;
}

/** Likewise, where blocks have counts and displacements of their own, which `vectors` gets. */
static inline bool coll_ucg_describe_rooted_blocks(
    coll_ucg_latest_t* call, coll_ucg_vector_t vectors[2], const mca_coll_ucg_module_t* module,
    int root, const void* part, coll_ucg_count_t count, const ompi_datatype_t* type,
    coll_ucg_counts_t counts, coll_ucg_displs_t displs, const ompi_datatype_t* block_type) {
    ompi_communicator_t* comm = module->comm;
    vectors[0] = COLL_UCG_COUNTS(counts, ompi_comm_size(comm));
    vectors[1] = COLL_UCG_DISPLS(displs, ompi_comm_size(comm));
    const coll_ucg_count_t own =
        ompi_comm_rank(comm) == root ? coll_ucg_own_count(counts, comm) : 0;
    return coll_ucg_describe_rooted(
        call, module, root, part, count, type,
        (coll_ucg_root_blocks_t){.count = own, .type = block_type, .vectors = vectors});
}

#endif
