/*
 * Operators: which of them libucg computes itself, and how it calls those of Open MPI and of the
 * program.
 */
#include <string.h>

#include "coll_ucg_call.h"

/* ------------------------------------------------------------------ operators of libucg */

/** Operators by Open MPI's Fortran number, which is constant for predefined ones. */
static const ucg_op_t native_ops[OMPI_OP_BASE_FORTRAN_OP_MAX] = {
    [OMPI_OP_BASE_FORTRAN_NULL] = UCG_OP_USER,     [OMPI_OP_BASE_FORTRAN_MAX] = UCG_OP_MAX,
    [OMPI_OP_BASE_FORTRAN_MIN] = UCG_OP_MIN,       [OMPI_OP_BASE_FORTRAN_SUM] = UCG_OP_SUM,
    [OMPI_OP_BASE_FORTRAN_PROD] = UCG_OP_PROD,     [OMPI_OP_BASE_FORTRAN_LAND] = UCG_OP_LAND,
    [OMPI_OP_BASE_FORTRAN_BAND] = UCG_OP_BAND,     [OMPI_OP_BASE_FORTRAN_LOR] = UCG_OP_LOR,
    [OMPI_OP_BASE_FORTRAN_BOR] = UCG_OP_BOR,       [OMPI_OP_BASE_FORTRAN_LXOR] = UCG_OP_LXOR,
    [OMPI_OP_BASE_FORTRAN_BXOR] = UCG_OP_BXOR,     [OMPI_OP_BASE_FORTRAN_MAXLOC] = UCG_OP_MAXLOC,
    [OMPI_OP_BASE_FORTRAN_MINLOC] = UCG_OP_MINLOC, [OMPI_OP_BASE_FORTRAN_REPLACE] = UCG_OP_USER,
    [OMPI_OP_BASE_FORTRAN_NO_OP] = UCG_OP_USER,
};

typedef enum {
    KIND_OTHER,
    KIND_SIGNED,
    KIND_UNSIGNED,
    KIND_FLOAT,
    KIND_COMPLEX,
    KIND_FLOAT_INT,
    KIND_INT_INT
} kind_t;

/** Kinds of arithmetic by Open MPI's operator type; the width is that of the datatype. Open MPI
 *  itself combines Fortran's LOGICAL and C's bool, whose representation it knows, and pairs with
 *  gaps, which messages do not carry. */
static const kind_t kinds[OMPI_OP_BASE_TYPE_MAX] = {
    [OMPI_OP_BASE_TYPE_INT8_T] = KIND_SIGNED,
    [OMPI_OP_BASE_TYPE_INT16_T] = KIND_SIGNED,
    [OMPI_OP_BASE_TYPE_INT32_T] = KIND_SIGNED,
    [OMPI_OP_BASE_TYPE_INT64_T] = KIND_SIGNED,
    [OMPI_OP_BASE_TYPE_LONG] = KIND_SIGNED,
    [OMPI_OP_BASE_TYPE_INTEGER] = KIND_SIGNED,
    [OMPI_OP_BASE_TYPE_INTEGER1] = KIND_SIGNED,
    [OMPI_OP_BASE_TYPE_INTEGER2] = KIND_SIGNED,
    [OMPI_OP_BASE_TYPE_INTEGER4] = KIND_SIGNED,
    [OMPI_OP_BASE_TYPE_INTEGER8] = KIND_SIGNED,
    [OMPI_OP_BASE_TYPE_UINT8_T] = KIND_UNSIGNED,
    [OMPI_OP_BASE_TYPE_UINT16_T] = KIND_UNSIGNED,
    [OMPI_OP_BASE_TYPE_UINT32_T] = KIND_UNSIGNED,
    [OMPI_OP_BASE_TYPE_UINT64_T] = KIND_UNSIGNED,
    [OMPI_OP_BASE_TYPE_UNSIGNED_LONG] = KIND_UNSIGNED,
    [OMPI_OP_BASE_TYPE_BYTE] = KIND_UNSIGNED,
    [OMPI_OP_BASE_TYPE_FLOAT] = KIND_FLOAT,
    [OMPI_OP_BASE_TYPE_DOUBLE] = KIND_FLOAT,
    [OMPI_OP_BASE_TYPE_REAL] = KIND_FLOAT,
    [OMPI_OP_BASE_TYPE_REAL4] = KIND_FLOAT,
    [OMPI_OP_BASE_TYPE_REAL8] = KIND_FLOAT,
    [OMPI_OP_BASE_TYPE_DOUBLE_PRECISION] = KIND_FLOAT,
    [OMPI_OP_BASE_TYPE_C_FLOAT_COMPLEX] = KIND_COMPLEX,
    [OMPI_OP_BASE_TYPE_C_DOUBLE_COMPLEX] = KIND_COMPLEX,
    [OMPI_OP_BASE_TYPE_FLOAT_INT] = KIND_FLOAT_INT,
    [OMPI_OP_BASE_TYPE_2INT] = KIND_INT_INT,
    [OMPI_OP_BASE_TYPE_2INTEGER] = KIND_INT_INT,
};

static ucg_datatype_t native_type(kind_t kind, size_t bytes) {
    /* By kind: the types of 1, 2, 4, 8 and 16 bytes; UCG_DT_OPAQUE, 0, where there is none. */
    static const ucg_datatype_t types[][5] = {
        [KIND_OTHER] = {UCG_DT_OPAQUE},
        [KIND_SIGNED] = {UCG_DT_INT8, UCG_DT_INT16, UCG_DT_INT32, UCG_DT_INT64},
        [KIND_UNSIGNED] = {UCG_DT_UINT8, UCG_DT_UINT16, UCG_DT_UINT32, UCG_DT_UINT64},
        [KIND_FLOAT] = {[2] = UCG_DT_FLOAT32, [3] = UCG_DT_FLOAT64},
        [KIND_COMPLEX] = {[3] = UCG_DT_COMPLEX64, [4] = UCG_DT_COMPLEX128},
        [KIND_FLOAT_INT] = {[3] = UCG_DT_FLOAT32_INT32},
        [KIND_INT_INT] = {[3] = UCG_DT_INT32_INT32},
    };
    switch (bytes) {
    case 1: return types[kind][0];
    case 2: return types[kind][1];
    case 4: return types[kind][2];
    case 8: return types[kind][3];
    case 16: return types[kind][4];
    default: return UCG_DT_OPAQUE;
    }
}

static ucg_datatype_t find_native_type(const ompi_datatype_t* type) {
    if (!ompi_datatype_is_predefined(type) || type->id >= OMPI_DATATYPE_MAX_PREDEFINED) {
        return UCG_DT_OPAQUE;
    }
    const int index = ompi_op_ddt_map[type->id];
    return index < 0 ? UCG_DT_OPAQUE : native_type(kinds[index], type->super.size);
}

static ucg_op_t find_native_op(ompi_op_t* op) {
    const int index = op->o_f_to_c_index;
    if (!ompi_op_is_intrinsic(op) || index < 0 || index >= OMPI_OP_BASE_FORTRAN_OP_MAX) {
        return UCG_OP_USER;
    }
    return native_ops[index];
}

/* ------------------------------------------------------------------ callbacks */

/** Bytes of operands that the scratch of a reduction holds at once: they should stay in cache. */
enum { kBatchBytes = 16384 };

/**
 * target = left op right on elements that lie in memory as messages carry them. Open MPI's
 * functions overwrite their right operand; the operands are never swapped, for even a "commutative"
 * operator on floating-point numbers may see a difference (NaN), and results are to be equal on all
 * ranks.
 */
static void reduce_dense(void* arg, const void* left, const void* right, void* target,
                         size_t count) {
    const coll_ucg_reduction_t* reduction = arg;
    ompi_datatype_t* type = reduction->type;
    const size_t element = type->super.size;
    const ptrdiff_t origin = type->super.true_lb;
    unsigned char* scratch = reduction->workspace->right.base;
    for (size_t done = 0; done < count; done += reduction->batch) {
        const size_t now = count - done < reduction->batch ? count - done : reduction->batch;
        unsigned char* lhs = (unsigned char*)left + done * element;
        unsigned char* rhs = (unsigned char*)right + done * element;
        unsigned char* out = (unsigned char*)target + done * element;
        unsigned char* result = target == left ? scratch : out;
        if (result != rhs) {
            memcpy(result, rhs, now * element);
        }
        ompi_op_reduce(reduction->op, coll_ucg_at(lhs, -origin), coll_ucg_at(result, -origin), now,
                       type);
        if (result != out) {
            memcpy(out, result, now * element);
        }
    }
}

/** target = left op right on packed elements of a datatype with gaps: the operator sees the layout
 *  that the user gave it. */
static void reduce_packed(void* arg, const void* left, const void* right, void* target,
                          size_t count) {
    const coll_ucg_reduction_t* reduction = arg;
    ompi_datatype_t* type = reduction->type;
    const size_t element = type->super.size;
    for (size_t done = 0; done < count; done += reduction->batch) {
        const size_t now = count - done < reduction->batch ? count - done : reduction->batch;
        unsigned char* lhs = coll_ucg_origin_in(reduction->workspace->left.base, type, now);
        unsigned char* rhs = coll_ucg_origin_in(reduction->workspace->right.base, type, now);
        (void)coll_ucg_unpack(lhs, now, type, (const unsigned char*)left + done * element);
        (void)coll_ucg_unpack(rhs, now, type, (const unsigned char*)right + done * element);
        ompi_op_reduce(reduction->op, lhs, rhs, now, type);
        (void)coll_ucg_pack(rhs, now, type, (unsigned char*)target + done * element);
    }
}

/** Prepares the callback. Its scratch is taken here, since the callback cannot report a failure. */
static ucg_status_t open_callback(coll_ucg_reduction_t* reduction, ucg_coll_params_t* params) {
    const ompi_datatype_t* type = reduction->type;
    const bool dense = coll_ucg_is_dense(type, SIZE_MAX);
    const ptrdiff_t extent = coll_ucg_extent(type);
    const size_t stride = dense ? type->super.size : (size_t)(extent < 0 ? -extent : extent);
    reduction->batch = stride < kBatchBytes ? kBatchBytes / (stride > 0 ? stride : 1) : 1;
    const size_t bytes = coll_ucg_bytes_for(type, reduction->batch);
    if (NULL == coll_ucg_scratch_get(&reduction->workspace->right, bytes) ||
        (!dense && NULL == coll_ucg_scratch_get(&reduction->workspace->left, bytes))) {
        return UCG_ERR_NO_MEMORY;
    }
    params->op = UCG_OP_USER;
    params->datatype = UCG_DT_OPAQUE;
    params->reduce = dense ? reduce_dense : reduce_packed;
    params->reduce_arg = reduction;
    return UCG_OK;
}

ucg_status_t coll_ucg_open_other_reduction(coll_ucg_call_t* call, ompi_op_t* op,
                                           ompi_datatype_t* type) {
    ucg_coll_params_t* params = &call->params;
    params->datatype = find_native_type(type);
    params->op = find_native_op(op);
    if (UCG_DT_OPAQUE != params->datatype && UCG_OP_USER != params->op) {
        call->module->reduction =
            (coll_ucg_known_reduction_t){op, type, params->op, params->datatype};
        return UCG_OK;
    }
    if (!ompi_op_is_commute(op)) {
        params->flags |= UCG_COLL_FLAG_NON_COMMUTATIVE;
    }
    call->reduction = (coll_ucg_reduction_t){.workspace = call->workspace, .op = op, .type = type};
    return open_callback(&call->reduction, params);
}
