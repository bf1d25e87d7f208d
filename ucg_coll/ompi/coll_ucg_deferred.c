/*
 * Calls that wait for their group: copies of their vectors, and the requests that stand for them.
 */
#include "coll_ucg_deferred.h"

#include <stdlib.h>
#include <string.h>

#include "coll_ucg_request.h"
#include "ompi/errhandler/errcode-internal.h"
#include "ompi/request/request.h"

static void deferred_construct(coll_ucg_deferred_t* deferred) {
    deferred->super.super.req_type = OMPI_REQUEST_COLL;
    deferred->vectors = NULL;
    deferred->inner = NULL;
}

static void deferred_destruct(coll_ucg_deferred_t* deferred) {
    free(deferred->vectors);
}

OBJ_CLASS_INSTANCE(coll_ucg_deferred_t, ompi_coll_base_nbc_request_t, deferred_construct,
                   deferred_destruct);

void coll_ucg_drop_deferred(coll_ucg_deferred_t* deferred) {
    ompi_request_t* super = &deferred->super.super;
    ompi_communicator_t* comm = super->req_mpi_object.comm;
    coll_ucg_free_attached(super);
    OMPI_REQUEST_FINI(super);
    OBJ_RELEASE(deferred);
    OBJ_RELEASE(comm);
}

/** Frees the request after MPI_Wait and its like; MPI says that it is erroneous to free one in
 *  progress. */
static int free_deferred(ompi_request_t** request_p) {
    if (!REQUEST_COMPLETE(*request_p)) {
        return MPI_ERR_REQUEST;
    }
    coll_ucg_drop_deferred((coll_ucg_deferred_t*)*request_p);
    *request_p = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static bool goes_along_edges(enum coll_ucg_function function) {
    return COLL_UCG_FN_ineighbor_allgather <= function &&
           function <= COLL_UCG_FN_ineighbor_alltoallw;
}

/** Counts the entries of the call's vectors on either side; 0: none that MPI would read. Edges are
 *  found here, by the thread that calls, so that they are known to the thread that makes the call
 *  again. */
static ucg_status_t count_entries(mca_coll_ucg_module_t* module,
                                  const coll_ucg_deferred_t* deferred, size_t* sent,
                                  size_t* received) {
    const coll_ucg_arguments_t* arguments = &deferred->arguments;
    const size_t size = (size_t)ompi_comm_size(module->comm);
    const bool is_root = ompi_comm_rank(module->comm) == arguments->root;
    ucg_status_t status = UCG_OK;
    *sent = 0;
    *received = 0;
    switch (deferred->function) {
    case COLL_UCG_FN_iallgatherv:
    case COLL_UCG_FN_ireduce_scatter: *received = size; break;
    case COLL_UCG_FN_igatherv: *received = is_root ? size : 0; break;
    case COLL_UCG_FN_iscatterv: *sent = is_root ? size : 0; break;
    case COLL_UCG_FN_ialltoallv:
    case COLL_UCG_FN_ialltoallw:
        *received = size;
        *sent = MPI_IN_PLACE == arguments->sbuf ? 0 : size;
        break;
    default:
        if (goes_along_edges(deferred->function)) {
            status = coll_ucg_find_edges(module);
            *sent = module->edges.sent_blocks;
            *received = module->edges.received_blocks;
        }
        break;
    }
    return status;
}

/** Copies a vector, if the function has it, to the next words of the memory at *next. */
static coll_ucg_entries_t copy_of(coll_ucg_entries_t vector, size_t count, uint64_t** next) {
    if (NULL == vector.data || 0 == count) {
        return vector;
    }
    uint64_t* copy = *next;
    memcpy(copy, vector.data, count * vector.width);
    *next += count;
    return (coll_ucg_entries_t){copy, vector.width};
}

static struct ompi_datatype_t* const* copy_of_types(struct ompi_datatype_t* const* types,
                                                    size_t count, uint64_t** next) {
    return copy_of((coll_ucg_entries_t){types, sizeof *types}, count, next).data;
}

enum { kVectorCount = 3 }; /* Counts, displacements and datatypes. */
_Static_assert(sizeof(void*) <= sizeof(uint64_t) && sizeof(MPI_Aint) <= sizeof(uint64_t),
               "a word has room for each entry of a vector");

/** Copies the vectors of the call's arguments. Returns false if there is no memory. */
static bool copy_vectors(mca_coll_ucg_module_t* module, coll_ucg_deferred_t* deferred) {
    coll_ucg_arguments_t* a = &deferred->arguments;
    size_t sent;
    size_t received;
    if (UCG_OK != count_entries(module, deferred, &sent, &received)) {
        return false;
    }
    if (0 == sent + received) {
        return true;
    }
    const bool in_bytes = COLL_UCG_FN_ineighbor_alltoallw == deferred->function;
    const size_t width = in_bytes ? sizeof(MPI_Aint) : sizeof(int);
    uint64_t* next = malloc(kVectorCount * (sent + received) * sizeof *next);
    deferred->vectors = next;
    if (NULL == deferred->vectors) {
        return false;
    }
    a->sdtypes = copy_of_types(a->sdtypes, sent, &next);
    a->rdtypes = copy_of_types(a->rdtypes, received, &next);
    a->sdispls =
        coll_ucg_either_of(copy_of(coll_ucg_either_entries(a->sdispls, width), sent, &next));
    a->rdispls =
        coll_ucg_either_of(copy_of(coll_ucg_either_entries(a->rdispls, width), received, &next));
    a->scounts = coll_ucg_counts_of(copy_of(coll_ucg_counts_entries(a->scounts), sent, &next));
    a->rcounts = coll_ucg_counts_of(copy_of(coll_ucg_counts_entries(a->rcounts), received, &next));
    return true;
}

coll_ucg_deferred_t* coll_ucg_make_deferred(mca_coll_ucg_module_t* module,
                                            enum coll_ucg_function function,
                                            const coll_ucg_arguments_t* arguments) {
    coll_ucg_deferred_t* deferred = OBJ_NEW(coll_ucg_deferred_t);
    if (NULL == deferred) {
        return NULL;
    }
    ompi_request_t* super = &deferred->super.super;
    OMPI_REQUEST_INIT(super, false);
    super->req_state = OMPI_REQUEST_ACTIVE;
    super->req_status = ompi_status_empty;
    super->req_free = free_deferred;
    super->req_cancel = coll_ucg_refuse_to_cancel;
    super->req_mpi_object.comm = module->comm;
    OBJ_RETAIN(module->comm);
    deferred->module = module;
    deferred->function = function;
    deferred->thread = NULL;
    deferred->is_due = false;
    deferred->passed = UCG_OK;
    deferred->arguments = *arguments;
    deferred->arguments.request = &deferred->inner;
    if (!copy_vectors(module, deferred)) {
        coll_ucg_drop_deferred(deferred);
        return NULL;
    }
    return deferred;
}

bool coll_ucg_deferred_is_due(coll_ucg_deferred_t* first, const void* thread) {
    const bool mine = thread == first->thread;
    const bool may = NULL == first->thread || (mine && first->is_due);
    first->is_due = mine;
    return may;
}

void coll_ucg_count_as_blocking(const coll_ucg_deferred_t* deferred) {
    coll_ucg_counters_t* counters = &deferred->module->counters;
    counters->taken[deferred->function]--;
    counters->taken[deferred->function - COLL_UCG_FN_BLOCKING_COUNT]++;
}

bool coll_ucg_deferred_has_ended(const coll_ucg_deferred_t* deferred) {
    return NULL == deferred->inner || REQUEST_COMPLETE(deferred->inner);
}

void coll_ucg_fail_deferred(coll_ucg_deferred_t* deferred, int rc) {
    deferred->inner = NULL;
    deferred->super.super.req_status.MPI_ERROR = ompi_errcode_get_mpi_code(rc);
}

void coll_ucg_end_deferred(coll_ucg_deferred_t* deferred) {
    ompi_request_t* super = &deferred->super.super;
    if (NULL != deferred->inner) {
        super->req_status.MPI_ERROR = deferred->inner->req_status.MPI_ERROR;
        (void)ompi_request_free(&deferred->inner);
    }
    (void)ompi_request_complete(super, true);
}
