/*
 * Every predefined operator on every predefined datatype that it is defined for.
 */
#include <complex.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "differential.h"

/* ------------------------------------------------------------------ table */

typedef enum {
    INTEGER = 1,
    FORTRAN_INTEGER = 2,
    FLOATING = 4,
    LOGICAL = 8,
    COMPLEX = 16,
    BYTES = 32,
    PAIR = 64,
} kind_t;

/** How numbers are represented in a buffer. */
typedef enum {
    RAW,
    HALF_LONG,
    TRUTH8,
    TRUTH32,
    F32,
    F64,
    FX,
    C32,
    C64,
    CX,
    F32_I,
    F64_I,
    FX_I,
    SMALL_I
} form_t;

typedef struct {
    const char* name;
    MPI_Datatype type;
    kind_t kind;
    form_t form;
} predefined_t;

typedef struct {
    const char* name;
    MPI_Op op;
    int kinds;
} operator_t;

static const operator_t* all_operators(int* count) {
    static operator_t operators[12];
    const int numbers = INTEGER | FORTRAN_INTEGER | FLOATING;
    const int bits = INTEGER | FORTRAN_INTEGER | BYTES;
    const operator_t table[] = {
        {"max", MPI_MAX, numbers},
        {"min", MPI_MIN, numbers},
        {"sum", MPI_SUM, numbers | COMPLEX},
        {"prod", MPI_PROD, numbers | COMPLEX},
        {"land", MPI_LAND, INTEGER | LOGICAL},
        {"lor", MPI_LOR, INTEGER | LOGICAL},
        {"lxor", MPI_LXOR, INTEGER | LOGICAL},
        {"band", MPI_BAND, bits},
        {"bor", MPI_BOR, bits},
        {"bxor", MPI_BXOR, bits},
        {"maxloc", MPI_MAXLOC, PAIR},
        {"minloc", MPI_MINLOC, PAIR},
    };
    memcpy(operators, table, sizeof table);
    *count = (int)(sizeof table / sizeof table[0]);
    return operators;
}

#define C_INTEGER(t)                                                                               \
    { #t, t, INTEGER, RAW }
#define F_INTEGER(t)                                                                               \
    { #t, t, FORTRAN_INTEGER, RAW }

static const predefined_t* all_types(int* count) {
    static predefined_t types[64];
    const predefined_t table[] = {
        C_INTEGER(MPI_SIGNED_CHAR),
        C_INTEGER(MPI_UNSIGNED_CHAR),
        C_INTEGER(MPI_SHORT),
        C_INTEGER(MPI_UNSIGNED_SHORT),
        C_INTEGER(MPI_INT),
        C_INTEGER(MPI_UNSIGNED),
        C_INTEGER(MPI_LONG),
        /* Open MPI 4.1 compares unsigned longs as if they were signed. */
        {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG, INTEGER, HALF_LONG},
        C_INTEGER(MPI_LONG_LONG),
        C_INTEGER(MPI_UNSIGNED_LONG_LONG),
        C_INTEGER(MPI_INT8_T),
        C_INTEGER(MPI_INT16_T),
        C_INTEGER(MPI_INT32_T),
        C_INTEGER(MPI_INT64_T),
        C_INTEGER(MPI_UINT8_T),
        C_INTEGER(MPI_UINT16_T),
        C_INTEGER(MPI_UINT32_T),
        C_INTEGER(MPI_UINT64_T),
        C_INTEGER(MPI_AINT),
        C_INTEGER(MPI_OFFSET),
        C_INTEGER(MPI_COUNT),
        F_INTEGER(MPI_INTEGER),
        F_INTEGER(MPI_INTEGER1),
        F_INTEGER(MPI_INTEGER2),
        F_INTEGER(MPI_INTEGER4),
        F_INTEGER(MPI_INTEGER8),
        {"MPI_FLOAT", MPI_FLOAT, FLOATING, F32},
        {"MPI_DOUBLE", MPI_DOUBLE, FLOATING, F64},
        {"MPI_LONG_DOUBLE", MPI_LONG_DOUBLE, FLOATING, FX},
        {"MPI_REAL", MPI_REAL, FLOATING, F32},
        {"MPI_REAL4", MPI_REAL4, FLOATING, F32},
        {"MPI_REAL8", MPI_REAL8, FLOATING, F64},
        {"MPI_DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, FLOATING, F64},
        {"MPI_C_BOOL", MPI_C_BOOL, LOGICAL, TRUTH8},
        {"MPI_CXX_BOOL", MPI_CXX_BOOL, LOGICAL, TRUTH8},
        {"MPI_LOGICAL", MPI_LOGICAL, LOGICAL, TRUTH32},
        {"MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX, COMPLEX, C32},
        {"MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, COMPLEX, C64},
        {"MPI_C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, CX},
        {"MPI_COMPLEX", MPI_COMPLEX, COMPLEX, C32},
        {"MPI_DOUBLE_COMPLEX", MPI_DOUBLE_COMPLEX, COMPLEX, C64},
        {"MPI_BYTE", MPI_BYTE, BYTES, RAW},
        {"MPI_2INT", MPI_2INT, PAIR, SMALL_I},
        {"MPI_SHORT_INT", MPI_SHORT_INT, PAIR, SMALL_I},
        {"MPI_LONG_INT", MPI_LONG_INT, PAIR, SMALL_I},
        {"MPI_FLOAT_INT", MPI_FLOAT_INT, PAIR, F32_I},
        {"MPI_DOUBLE_INT", MPI_DOUBLE_INT, PAIR, F64_I},
        {"MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT, PAIR, FX_I},
    };
    memcpy(types, table, sizeof table);
    *count = (int)(sizeof table / sizeof table[0]);
    return types;
}

/* ------------------------------------------------------------------ numbers */

/** Values whose sums and products are exact in any order. */
static double exact_value(uint64_t* seed, MPI_Op op) {
    static const double factors[] = {1, -1, 2, 0.5};
    const uint64_t random = next_random(seed);
    return MPI_PROD == op ? factors[random % 4] : (double)(random % 41) - 20;
}

static double complex exact_complex(uint64_t* seed, MPI_Op op) {
    static const double complex units[] = {1, -1, I, -I};
    if (MPI_PROD == op) {
        return units[next_random(seed) % 4];
    }
    const double real = exact_value(seed, op);
    return real + I * exact_value(seed, op);
}

/** Writes element `i` of a buffer. Bytes between the parts of a pair are not written. */
static void write_element(void* data, long i, form_t form, MPI_Op op, uint64_t* seed) {
    struct float_int {
        float value;
        int index;
    }* fi = data;
    struct double_int {
        double value;
        int index;
    }* di = data;
    struct long_double_int {
        long double value;
        int index;
    }* xi = data;
    switch (form) {
    case RAW:
    case SMALL_I: break;
    case HALF_LONG: ((unsigned long*)data)[i] >>= 1; break;
    case TRUTH8: ((bool*)data)[i] = next_random(seed) % 2; break;
    case TRUTH32: ((int*)data)[i] = next_random(seed) % 2; break;
    case F32: ((float*)data)[i] = (float)exact_value(seed, op); break;
    case F64: ((double*)data)[i] = exact_value(seed, op); break;
    case FX: ((long double*)data)[i] = exact_value(seed, op); break;
    case C32: ((float complex*)data)[i] = (float complex)exact_complex(seed, op); break;
    case C64: ((double complex*)data)[i] = exact_complex(seed, op); break;
    case CX: ((long double complex*)data)[i] = exact_complex(seed, op); break;
    case F32_I: fi[i].value = (float)exact_value(seed, op); break;
    case F64_I: di[i].value = exact_value(seed, op); break;
    case FX_I: xi[i].value = exact_value(seed, op); break;
    }
}

/** Zeros must be frequent for logical operators, or every result would be true. */
static void blank_some(const predefined_t* type, MPI_Op op, buffer_t* buffer, long count,
                       uint64_t* seed) {
    int bytes;
    MPI_Type_size(type->type, &bytes);
    if ((RAW != type->form && HALF_LONG != type->form) ||
        (MPI_LAND != op && MPI_LOR != op && MPI_LXOR != op)) {
        return;
    }
    for (long i = 0; i < count; i++) {
        if (0 != next_random(seed) % 2) {
            memset((char*)buffer->data + i * bytes, 0, (size_t)bytes);
        }
    }
}

static buffer_t make_operands(const predefined_t* type, MPI_Op op, long count, uint64_t seed) {
    buffer_t buffer = buffer_make(type->type, count, seed);
    for (long i = 0; i < count; i++) {
        write_element(buffer.data, i, type->form, op, &seed);
    }
    blank_some(type, op, &buffer, count, &seed);
    return buffer;
}

/** A product of complex numbers has zeros whose sign depends on how operands are grouped, so all
 * zeros are made positive. */
static void unsign_zeros(const predefined_t* type, buffer_t* buffer, long count) {
    for (long i = 0; i < 2 * count; i++) {
        if (C32 == type->form) {
            ((float*)buffer->data)[i] += 0.0f;
        } else if (C64 == type->form) {
            ((double*)buffer->data)[i] += 0.0;
        } else if (CX == type->form) {
            ((long double*)buffer->data)[i] += 0.0L;
        }
    }
}

/** The six bytes after an 80-bit number are undefined and left out of the digest. */
static uint64_t digest_of(const predefined_t* type, buffer_t* buffer, long count) {
    unsign_zeros(type, buffer, count);
    if (FX == type->form || CX == type->form || FX_I == type->form) {
        for (size_t i = 0; i + 16 <= buffer->bytes; i += 16) {
            memset(buffer->memory + i + 10, 0, 6);
        }
    }
    return buffer_digest(buffer);
}

/* ------------------------------------------------------------------ calls */

typedef struct {
    const place_t* place;
    const predefined_t* type;
    const operator_t* op;
    int count;
    int in_place;
} call_t;

static void name_call(char* name, const call_t* call, const char* collective) {
    name_case(name, call->place, "%s %s %s n=%d%s", collective, call->op->name, call->type->name,
              call->count, call->in_place ? " in-place" : "");
}

static void run_allreduce(const call_t* call) {
    char name[NAME_MAX_BYTES];
    name_call(name, call, "allreduce");
    const int rank = call->place->rank;
    buffer_t send = make_operands(call->type, call->op->op, call->count, seed_of(name, rank));
    buffer_t receive = make_operands(call->type, call->op->op, call->count,
                                     seed_of(name, call->in_place ? rank : -1));
    MPI_Allreduce(call->in_place ? MPI_IN_PLACE : send.data, receive.data, call->count,
                  call->type->type, call->op->op, call->place->comm);
    record(name, digest_of(call->type, &receive, call->count));
    buffer_free(&receive);
    buffer_free(&send);
}

static void run_reduce(const call_t* call) {
    char name[NAME_MAX_BYTES];
    name_call(name, call, "reduce");
    const int rank = call->place->rank;
    const int root = call->place->size - 1;
    const int in_place = call->in_place && rank == root;
    buffer_t send = make_operands(call->type, call->op->op, call->count, seed_of(name, rank));
    buffer_t receive =
        make_operands(call->type, call->op->op, call->count, seed_of(name, in_place ? rank : -1));
    MPI_Reduce(in_place ? MPI_IN_PLACE : send.data, receive.data, call->count, call->type->type,
               call->op->op, root, call->place->comm);
    record(name, digest_of(call->type, &receive, call->count));
    buffer_free(&receive);
    buffer_free(&send);
}

static void run_scan(const call_t* call) {
    char name[NAME_MAX_BYTES];
    name_call(name, call, "scan");
    const int rank = call->place->rank;
    buffer_t send = make_operands(call->type, call->op->op, call->count, seed_of(name, rank));
    buffer_t receive = make_operands(call->type, call->op->op, call->count,
                                     seed_of(name, call->in_place ? rank : -1));
    MPI_Scan(call->in_place ? MPI_IN_PLACE : send.data, receive.data, call->count, call->type->type,
             call->op->op, call->place->comm);
    record(name, digest_of(call->type, &receive, call->count));
    buffer_free(&receive);
    buffer_free(&send);
}

static void run_pair(const place_t* place, const predefined_t* type, const operator_t* op) {
    const int counts[] = {1, 7};
    int bytes;
    if (MPI_DATATYPE_NULL == type->type) {
        return;
    }
    MPI_Type_size(type->type, &bytes);
    for (int i = 0; i < 4 && bytes > 0; i++) {
        const call_t call = {place, type, op, counts[i % 2], i / 2};
        run_allreduce(&call);
        run_reduce(&call);
        run_scan(&call);
    }
}

void run_predefined(const place_t* place) {
    int type_count;
    int operator_count;
    const predefined_t* types = all_types(&type_count);
    const operator_t* operators = all_operators(&operator_count);
    for (int i = 0; i < type_count; i++) {
        for (int j = 0; j < operator_count; j++) {
            if (0 != (types[i].kind & (kind_t)operators[j].kinds)) {
                run_pair(place, &types[i], &operators[j]);
            }
        }
    }
}
