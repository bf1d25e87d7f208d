/*
 * Inter-communicators: reductions whose receivers get all operands of the other side, and combine
 * them. Each is one call of libucg, so it may be nonblocking. For few processes and short operands
 * they are the fastest. Other reductions are those of coll_ucg_inter_reduce.c, or, if they are
 * nonblocking, the previous module's.
 */
#include <limits.h>
#include <string.h>

#include "coll_ucg_inter.h"
#include "coll_ucg_repeat.h"

enum {
    kFew = 8,          /**< Most processes of a side. */
    kStarted = 1 << 20 /**< Most bytes of all operands of a side, if nonblocking. */
};

bool coll_ucg_are_few(const coll_ucg_sides_t* sides, size_t most, size_t bytes) {
    const int size =
        sides->local_size > sides->remote_size ? sides->local_size : sides->remote_size;
    return size <= kFew && bytes <= most / (size_t)size;
}

void* coll_ucg_elements_in(coll_ucg_scratch_t* scratch, const ompi_datatype_t* type,
                           size_t elements) {
    void* memory = coll_ucg_scratch_get(scratch, coll_ucg_bytes_for(type, elements));
    return NULL != memory ? coll_ucg_origin_in(memory, type, elements) : NULL;
}

ucg_status_t coll_ucg_combine(const coll_ucg_combination_t* combination) {
    ompi_datatype_t* type = combination->type;
    const ptrdiff_t extent = coll_ucg_extent(type);
    unsigned char* at =
        (unsigned char*)combination->vectors + extent * (ptrdiff_t)combination->begin;
    for (int i = 1; i < combination->count; i++) {
        unsigned char* next = at + combination->stride;
        ompi_op_reduce(combination->op, at, next, combination->length, type);
        at = next;
    }
    if (coll_ucg_is_dense(type, (size_t)combination->length)) {
        memcpy(coll_ucg_at(combination->target, type->super.true_lb),
               coll_ucg_at(at, type->super.true_lb),
               coll_ucg_packed_bytes(type, (size_t)combination->length));
        return UCG_OK;
    }
    return 0 == ompi_datatype_copy_content_same_ddt(type, combination->length, combination->target,
                                                    (char*)at)
               ? UCG_OK
               : UCG_ERR_INTERNAL;
}

/* ------------------------------------------------------------------ exchange */

static coll_ucg_edges_t edges_of(const coll_ucg_sides_t* sides,
                                 const coll_ucg_operands_t* operands) {
    return coll_ucg_edges_across(sides, operands->first, 0, operands->sends ? operands->others : 0,
                                 0, operands->receives ? operands->others : 0);
}

/** Returns how many bytes apart vectors lie so that they do not overlap: the elements of a vector
 *  may lie between one another, like the columns of a matrix, or below one another. The result is a
 *  multiple of a cache line. */
static ptrdiff_t stride_of(const ompi_datatype_t* type, coll_ucg_count_t elements) {
    const size_t line = 64;
    return (ptrdiff_t)((coll_ucg_covered_bytes(type, (size_t)elements) + line - 1) / line * line);
}

/** Decides where the operands of the other side are to lie: where the result does, if the only
 *  operand is the result, else in `scratch`. `combination`: what is left to do then. */
static ucg_status_t prepare(const coll_ucg_operands_t* operands, coll_ucg_scratch_t* scratch,
                            coll_ucg_combination_t* combination, void** vectors_p) {
    const bool is_result = 1 == operands->others && operands->length == operands->elements;
    *vectors_p = operands->target;
    combination->op = NULL;
    if (!operands->receives || is_result) {
        return UCG_OK;
    }
    const size_t elements = (size_t)operands->elements;
    const ptrdiff_t stride = stride_of(operands->type, operands->elements);
    void* memory = coll_ucg_scratch_get(scratch, (size_t)(operands->others - 1) * (size_t)stride +
                                                     coll_ucg_bytes_for(operands->type, elements));
    *vectors_p = NULL != memory ? coll_ucg_origin_in(memory, operands->type, elements) : NULL;
    if (NULL != memory && 0 != operands->length) {
        *combination = (coll_ucg_combination_t){
            .op = operands->op,
            .type = operands->type,
            .vectors = *vectors_p,
            .count = operands->others,
            .stride = stride,
            .begin = operands->begin,
            .length = operands->length,
            .target = operands->target,
        };
    }
    return NULL != memory ? UCG_OK : UCG_ERR_NO_MEMORY;
}

static ucg_status_t open_exchange(coll_ucg_call_t* call, const coll_ucg_edges_t* edges,
                                  const coll_ucg_operands_t* operands, void* vectors) {
    const coll_ucg_edge_blocks_t input = {
        .user = operands->input,
        .count = operands->elements,
        .type = operands->type,
        .is_one = true,
    };
    const coll_ucg_edge_blocks_t output = {
        .user = vectors,
        .count = operands->elements,
        .stride = stride_of(operands->type, operands->elements),
        .type = operands->type,
    };
    return coll_ucg_open_edges(call, edges, &input, &output);
}

static COLL_UCG_APART ucg_status_t run_anew(mca_coll_ucg_module_t* module, ucg_group_h group,
                                            enum coll_ucg_function function,
                                            const coll_ucg_operands_t* operands, void* vectors,
                                            const coll_ucg_latest_t* arguments) {
    const coll_ucg_edges_t edges = edges_of(module->sides, operands);
    coll_ucg_call_t call;
    coll_ucg_begin_blocking_in(&call, module, group);
    const ucg_status_t status =
        coll_ucg_run_first(&call, open_exchange(&call, &edges, operands, vectors));
    coll_ucg_remember_call(&call, function, arguments, status);
    return status;
}

ucg_status_t coll_ucg_exchange_operands(mca_coll_ucg_module_t* module, ucg_group_h group,
                                        enum coll_ucg_function function, int root,
                                        const coll_ucg_operands_t* operands,
                                        coll_ucg_scratch_t* memory) {
    /* The operator is not part of the call that libucg runs. */
    const coll_ucg_latest_t call = {
        .type = operands->type, .count = operands->elements, .root = root};
    coll_ucg_combination_t combination;
    void* vectors;
    ucg_status_t status = prepare(operands, memory, &combination, &vectors);
    if (UCG_OK != status) {
        return status;
    }
    status = UCG_ERR_UNSUPPORTED;
    if (coll_ucg_repeats_described(module, function, &call)) {
        status =
            ucg_coll_repeat(module->latest[function].coll, operands->sends ? operands->input : NULL,
                            operands->receives ? vectors : NULL);
    }
    if (UCG_ERR_UNSUPPORTED == status) {
        status = run_anew(module, group, function, operands, vectors, &call);
    }
    return UCG_OK == status && NULL != combination.op ? coll_ucg_combine(&combination) : status;
}

static ucg_status_t start(coll_ucg_request_t* mine, const coll_ucg_operands_t* operands,
                          ompi_request_t** request) {
    const coll_ucg_edges_t edges = edges_of(mine->call.module->sides, operands);
    void* vectors;
    ucg_status_t status = prepare(operands, &mine->call.own.right, &mine->combination, &vectors);
    if (UCG_OK == status) {
        status = open_exchange(&mine->call, &edges, operands, vectors);
    }
    return coll_ucg_start_call(mine, status, request);
}

static bool are_few(const mca_coll_ucg_module_t* module, const coll_ucg_operands_t* operands) {
    return coll_ucg_are_few(module->sides, kStarted,
                            coll_ucg_packed_bytes(operands->type, (size_t)operands->elements));
}

/* ------------------------------------------------------------------ nonblocking */

/** Starts a reduction of all processes of both sides, which have equally many elements. */
static ucg_status_t start_in_both(mca_coll_ucg_module_t* module, coll_ucg_operands_t* operands,
                                  ompi_request_t** request) {
    const coll_ucg_sides_t* sides = module->sides;
    coll_ucg_request_t* mine = NULL;
    if (0 == coll_ucg_packed_bytes(operands->type, (size_t)operands->elements)) {
        *request = &ompi_request_empty;
        return UCG_OK;
    }
    if (!are_few(module, operands)) {
        coll_ucg_count_call(module);
        return UCG_ERR_UNSUPPORTED;
    }
    operands->first = sides->remote_first;
    operands->others = sides->remote_size;
    operands->sends = true;
    operands->receives = true;
    const ucg_status_t status = coll_ucg_enter_nonblocking(module, &mine);
    return UCG_OK == status ? start(mine, operands, request) : status;
}

/** Starts a reduction of a root and the other side. */
static ucg_status_t start_with_root(mca_coll_ucg_module_t* module, coll_ucg_operands_t* operands,
                                    int root, ompi_request_t** request) {
    const bool is_root = MPI_ROOT == root;
    coll_ucg_request_t* mine = NULL;
    if (MPI_PROC_NULL == root ||
        0 == coll_ucg_packed_bytes(operands->type, (size_t)operands->elements)) {
        *request = &ompi_request_empty;
        return UCG_OK;
    }
    if (!are_few(module, operands)) {
        return UCG_ERR_UNSUPPORTED;
    }
    operands->first = is_root ? 1 : 0;
    operands->others = is_root ? module->sides->remote_size : 1;
    operands->sends = !is_root;
    operands->receives = is_root;
    operands->length = is_root ? operands->elements : 0;
    const ucg_status_t status = coll_ucg_enter_rooted_nonblocking(module, root, &mine);
    return UCG_OK == status ? start(mine, operands, request) : status;
}

/** Returns the operands of a reduction whose result is a whole vector. */
static coll_ucg_operands_t operands_of(const coll_ucg_arguments_t* arguments) {
    return (coll_ucg_operands_t){.input = arguments->sbuf,
                                 .elements = arguments->rcount,
                                 .type = arguments->rdtype,
                                 .op = arguments->op,
                                 .length = arguments->rcount,
                                 .target = arguments->rbuf};
}

int mca_coll_ucg_inter_ireduce(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                               struct ompi_datatype_t* dtype, struct ompi_op_t* op, int root,
                               struct ompi_communicator_t* comm, ompi_request_t** request,
                               mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_arguments_t arguments = {COLL_UCG_REDUCED, .root = root, .request = request};
    coll_ucg_operands_t operands = operands_of(&arguments);
    const ucg_status_t status = start_with_root(ucg, &operands, root, request);
    if (UCG_ERR_UNSUPPORTED != status) {
        coll_ucg_number_call(comm);
    }
    return coll_ucg_leave(ucg, COLL_UCG_FN_ireduce, status, &arguments);
}

int mca_coll_ucg_inter_iallreduce(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                  struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                  struct ompi_communicator_t* comm, ompi_request_t** request,
                                  mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_arguments_t arguments = {COLL_UCG_REDUCED, .request = request};
    coll_ucg_operands_t operands = operands_of(&arguments);
    const ucg_status_t status = start_in_both(ucg, &operands, request);
    return coll_ucg_leave(ucg, COLL_UCG_FN_iallreduce, status, &arguments);
}

/** Starts a reduction whose result is scattered; this process gets `length` elements from `begin`
 *  on. `elements`: those of all blocks together, equally many on both sides; if they are more than
 *  one count can tell, the previous module serves the call. */
static ucg_status_t start_scatter(mca_coll_ucg_module_t* module,
                                  const coll_ucg_arguments_t* arguments, int64_t elements,
                                  int64_t begin, size_t length) {
    if (!coll_ucg_is_countable(elements)) {
        coll_ucg_count_call(module);
        return UCG_ERR_UNSUPPORTED;
    }
    coll_ucg_operands_t operands = operands_of(arguments);
    operands.elements = (coll_ucg_count_t)elements;
    operands.begin = (coll_ucg_count_t)begin;
    operands.length = (coll_ucg_count_t)length;
    return start_in_both(module, &operands, arguments->request);
}

int mca_coll_ucg_inter_ireduce_scatter(const void* sbuf, void* rbuf, coll_ucg_counts_t rcounts,
                                       struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                       struct ompi_communicator_t* comm, ompi_request_t** request,
                                       mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_arguments_t arguments = {.sbuf = sbuf,
                                            .rbuf = rbuf,
                                            .rcounts = rcounts,
                                            .rdtype = dtype,
                                            .op = op,
                                            .request = request};
    const int rank = ompi_comm_rank(comm);
    int64_t elements = 0;
    int64_t before = 0;
    for (int i = 0; i < ompi_comm_size(comm); i++) {
        before = i == rank ? elements : before;
        elements += (int64_t)coll_ucg_count_at(rcounts, (size_t)i);
    }
    const ucg_status_t status =
        start_scatter(ucg, &arguments, elements, before, coll_ucg_count_at(rcounts, (size_t)rank));
    return coll_ucg_leave(ucg, COLL_UCG_FN_ireduce_scatter, status, &arguments);
}

int mca_coll_ucg_inter_ireduce_scatter_block(const void* sbuf, void* rbuf, coll_ucg_count_t count,
                                             struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                             struct ompi_communicator_t* comm,
                                             ompi_request_t** request,
                                             mca_coll_base_module_t* module) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    const coll_ucg_arguments_t arguments = {COLL_UCG_REDUCED, .request = request};
    const ucg_status_t status =
        start_scatter(ucg, &arguments, (int64_t)count * ompi_comm_size(comm),
                      (int64_t)count * ompi_comm_rank(comm), (size_t)count);
    return coll_ucg_leave(ucg, COLL_UCG_FN_ireduce_scatter_block, status, &arguments);
}
