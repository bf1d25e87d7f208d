/*
 * The datatypes and operators of the library. A part of <ucg/ucg.h>, which includes it.
 */
#ifndef UCG_OPERATORS_H_
#define UCG_OPERATORS_H_

/** Datatypes that the library's own operators understand. */
typedef enum {
    UCG_DT_OPAQUE = 0, /**< element_bytes long; no operator of the library applies. */
    UCG_DT_INT8,
    UCG_DT_INT16,
    UCG_DT_INT32,
    UCG_DT_INT64,
    UCG_DT_UINT8,
    UCG_DT_UINT16,
    UCG_DT_UINT32,
    UCG_DT_UINT64,
    UCG_DT_FLOAT32,
    UCG_DT_FLOAT64,
    UCG_DT_FLOAT16,     /**< IEEE 754 binary16; each step is rounded to nearest, ties to even. */
    UCG_DT_BFLOAT16,    /**< The upper half of a float32; rounded likewise. */
    UCG_DT_COMPLEX64,   /**< Two float32: real part, imaginary part. */
    UCG_DT_COMPLEX128,  /**< Two float64. */
    UCG_DT_INT16_INT32, /**< Pairs for MINLOC and MAXLOC: what C makes of a structure of a value */
    UCG_DT_INT32_INT32, /**< and an index, with the bytes between and behind them. */
    UCG_DT_INT64_INT32,
    UCG_DT_FLOAT32_INT32,
    UCG_DT_FLOAT64_INT32,
    UCG_DT_INT64_INT64,
    UCG_DT_FLOAT64_INT64,
    UCG_DT_LAST
} ucg_datatype_t;

/** Operators. Complex numbers have sums and products alone, pairs MINLOC and MAXLOC alone. */
typedef enum {
    UCG_OP_SUM = 0,
    UCG_OP_PROD,
    UCG_OP_MIN,
    UCG_OP_MAX,
    UCG_OP_LAND, /**< This and the other logical and bitwise operators: integers only. */
    UCG_OP_LOR,
    UCG_OP_LXOR,
    UCG_OP_BAND,
    UCG_OP_BOR,
    UCG_OP_BXOR,
    UCG_OP_USER,   /**< The caller's operator, `reduce` of ucg_coll_params_t. */
    UCG_OP_MINLOC, /**< This and MAXLOC: of equal values the one with the lowest index. */
    UCG_OP_MAXLOC,
    UCG_OP_LAST
} ucg_op_t;

#endif
