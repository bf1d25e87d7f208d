/*
 * Reductions: user operators that do not commute, on elements with gaps; sums of all sizes; sums
 * that round.
 */
#include <stdlib.h>
#include <string.h>

#include "differential.h"

/* ------------------------------------------------------------------ operands */

/**
 * An operator on elements: it multiplies 2x2 matrices of 32-bit numbers, which reveals any change
 * in the order of operands. `places` says where the four numbers of a matrix lie, in bytes.
 */
typedef struct {
    const char* name;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Aint extent;
    MPI_Aint places[4];
} matrices_t;

enum { MATRICES_COUNT = 3 };
static matrices_t matrices[MATRICES_COUNT];

static void multiply(const matrices_t* m, const unsigned char* left, unsigned char* right) {
    uint32_t a[4];
    uint32_t b[4];
    for (int i = 0; i < 4; i++) {
        memcpy(&a[i], left + m->places[i], sizeof a[i]);
        memcpy(&b[i], right + m->places[i], sizeof b[i]);
    }
    const uint32_t c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                           a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
    for (int i = 0; i < 4; i++) {
        memcpy(right + m->places[i], &c[i], sizeof c[i]);
    }
}

/** One function serves all layouts, which it distinguishes by their datatype. */
static void multiply_all(void* left, void* right, int* count, MPI_Datatype* type) {
    const matrices_t* m = NULL;
    for (int i = 0; i < MATRICES_COUNT; i++) {
        m = *type == matrices[i].type ? &matrices[i] : m;
    }
    if (NULL == m) {
        MPI_Abort(MPI_COMM_WORLD, 3);
        return;
    }
    for (int i = 0; i < *count; i++) {
        multiply(m, (unsigned char*)left + i * m->extent, (unsigned char*)right + i * m->extent);
    }
}

static void make_matrices(matrices_t* m, const char* name, MPI_Aint extent,
                          const MPI_Aint* places) {
    const int lengths[] = {1, 1, 1, 1};
    MPI_Datatype type;
    m->name = name;
    m->extent = extent;
    memcpy(m->places, places, sizeof m->places);
    MPI_Type_create_hindexed(4, lengths, places, MPI_UINT32_T, &type);
    MPI_Type_create_resized(type, 0, extent, &m->type);
    MPI_Type_commit(&m->type);
    MPI_Type_free(&type);
    MPI_Op_create(multiply_all, 0, &m->op);
}

static void make_all_matrices(void) {
    make_matrices(&matrices[0], "matrix", 16, (const MPI_Aint[]){0, 4, 8, 12});
    make_matrices(&matrices[1], "matrix-gaps", 40, (const MPI_Aint[]){0, 8, 20, 32});
    make_matrices(&matrices[2], "matrix-before", 32, (const MPI_Aint[]){-16, -8, 0, 8});
}

static void free_all_matrices(void) {
    for (int i = 0; i < MATRICES_COUNT; i++) {
        MPI_Op_free(&matrices[i].op);
        MPI_Type_free(&matrices[i].type);
    }
}

/* ------------------------------------------------------------------ one call of each */

typedef struct {
    const place_t* place;
    const char* name;
    MPI_Datatype type;
    MPI_Op op;
    long count;
    int in_place;
    int some_in_place; /* Only every second rank is, as of a reduce_scatter and of scans. */
} reduction_t;

static void name_reduction(char* name, const reduction_t* r, const char* collective, int root) {
    name_case(name, r->place, "%s %s n=%ld root=%d%s", collective, r->name, r->count, root,
              r->some_in_place ? " some in-place"
              : r->in_place    ? " in-place"
                               : "");
}

/** Numbers whose sums are exact in any order when read as doubles. */
static void make_exact(const reduction_t* r, buffer_t* buffer, long count, uint64_t seed) {
    if (MPI_DOUBLE == r->type) {
        for (long i = 0; i < count; i++) {
            ((double*)buffer->data)[i] = (double)(next_random(&seed) % 2001) - 1000;
        }
    }
}

static buffer_t operands(const reduction_t* r, long count, const char* name, int seed_rank) {
    const uint64_t seed = seed_of(name, seed_rank);
    buffer_t buffer = buffer_make(r->type, count, seed);
    make_exact(r, &buffer, count, seed);
    return buffer;
}

static void run_reduce(const reduction_t* r, int root) {
    char name[NAME_MAX_BYTES];
    const int is_root = r->place->rank == root;
    const int in_place = r->in_place && is_root;
    name_reduction(name, r, "reduce", root);
    buffer_t send = operands(r, r->count, name, r->place->rank);
    buffer_t receive = operands(r, is_root ? r->count : 0, name, in_place ? r->place->rank : -1);
    MPI_Reduce(in_place ? MPI_IN_PLACE : send.data, is_root ? receive.data : NULL, (int)r->count,
               r->type, r->op, root, r->place->comm);
    record(name, buffer_digest(&receive));
    buffer_free(&receive);
    buffer_free(&send);
}

typedef int (*vector_call_t)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

/** Runs an allreduce, scan or exscan. With `blank` this rank's result is undefined. */
static void run_vector(const reduction_t* r, const char* collective, vector_call_t call,
                       int blank) {
    char name[NAME_MAX_BYTES];
    name_reduction(name, r, collective, 0);
    buffer_t send = operands(r, r->count, name, r->place->rank);
    buffer_t receive = operands(r, r->count, name, r->in_place ? r->place->rank : -1);
    call(r->in_place ? MPI_IN_PLACE : send.data, receive.data, (int)r->count, r->type, r->op,
         r->place->comm);
    record(name, blank ? 0 : buffer_digest(&receive));
    buffer_free(&receive);
    buffer_free(&send);
}

static int part_of(long count, int rank) {
    return 2 == rank % 4 ? 0 : (int)count * (1 + rank % 2);
}

/** In place, all of the receive buffer except the rank's own part is undefined afterwards. */
static void record_part(const char* name, const reduction_t* r, const buffer_t* receive, long own) {
    buffer_t part = buffer_make(r->type, own, 0);
    int bytes;
    int position = 0;
    MPI_Pack_size((int)own, r->type, MPI_COMM_SELF, &bytes);
    void* packed = calloc(1, (size_t)bytes + 1);
    MPI_Pack(receive->data, (int)own, r->type, packed, bytes, &position, MPI_COMM_SELF);
    position = 0;
    MPI_Unpack(packed, bytes, &position, part.data, (int)own, r->type, MPI_COMM_SELF);
    record(name, buffer_digest(&part));
    free(packed);
    buffer_free(&part);
}

static void run_reduce_scatter(const reduction_t* r) {
    char name[NAME_MAX_BYTES];
    const place_t* place = r->place;
    int* counts = calloc((size_t)place->size, sizeof *counts);
    long total = 0;
    name_reduction(name, r, "reduce_scatter", 0);
    for (int i = 0; i < place->size; i++) {
        counts[i] = part_of(r->count, i);
        total += counts[i];
    }
    const long own = counts[place->rank];
    const int in_place = r->some_in_place ? place->rank % 2 : r->in_place;
    buffer_t send = operands(r, total, name, place->rank);
    buffer_t receive = operands(r, in_place ? total : own, name, in_place ? place->rank : -1);
    MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : send.data, receive.data, counts, r->type, r->op,
                       place->comm);
    if (in_place) {
        record_part(name, r, &receive, own);
    } else {
        record(name, buffer_digest(&receive));
    }
    buffer_free(&receive);
    buffer_free(&send);
    free(counts);
}

static void run_reduce_scatter_block(const reduction_t* r) {
    char name[NAME_MAX_BYTES];
    const place_t* place = r->place;
    const long total = r->count * place->size;
    name_reduction(name, r, "reduce_scatter_block", 0);
    buffer_t send = operands(r, total, name, place->rank);
    buffer_t receive =
        operands(r, r->in_place ? total : r->count, name, r->in_place ? place->rank : -1);
    MPI_Reduce_scatter_block(r->in_place ? MPI_IN_PLACE : send.data, receive.data, (int)r->count,
                             r->type, r->op, place->comm);
    if (r->in_place) {
        record_part(name, r, &receive, r->count);
    } else {
        record(name, buffer_digest(&receive));
    }
    buffer_free(&receive);
    buffer_free(&send);
}

static void run_one(reduction_t* r) {
    const place_t* place = r->place;
    for (r->in_place = 0; r->in_place < 2; r->in_place++) {
        run_reduce(r, 0);
        run_reduce(r, place->size - 1);
        run_vector(r, "allreduce", MPI_Allreduce, 0);
        run_vector(r, "scan", MPI_Scan, 0);
        run_vector(r, "exscan", MPI_Exscan, 0 == place->rank);
        run_reduce_scatter(r);
        run_reduce_scatter_block(r);
    }
    r->some_in_place = 1;
    r->in_place = place->rank % 2; /* run_vector() looks at this. */
    run_vector(r, "scan", MPI_Scan, 0);
    run_vector(r, "exscan", MPI_Exscan, 0 == place->rank);
    run_reduce_scatter(r);
    r->some_in_place = 0;
}

static void run_sizes(const place_t* place, const char* name, MPI_Datatype type, MPI_Op op) {
    reduction_t r = {.place = place, .name = name, .type = type, .op = op};
    int bytes;
    MPI_Type_size(type, &bytes);
    for (const long* count = element_counts(type); *count >= 0; count++) {
        r.count = *count;
        if (*count <= 8 || *count * bytes <= bytes_limit(place)) {
            run_one(&r);
        }
    }
}

/* ------------------------------------------------------------------ rounding */

static void run_rounded(const place_t* place, long count) {
    char name[NAME_MAX_BYTES];
    name_case(name, place, "allreduce rounded n=%ld", count);
    uint64_t seed = seed_of(name, place->rank);
    buffer_t send = buffer_make(MPI_DOUBLE, count, seed);
    buffer_t receive = buffer_make(MPI_DOUBLE, count, 0);
    double sum = 0;
    for (long i = 0; i < count; i++) {
        ((double*)send.data)[i] = (double)(next_random(&seed) >> 11) * 0x1p-53;
    }
    MPI_Allreduce(send.data, receive.data, (int)count, MPI_DOUBLE, MPI_SUM, place->comm);
    for (long i = 0; i < count; i++) {
        sum += ((double*)receive.data)[i];
    }
    record_rounded(name, buffer_digest(&receive), sum);
    buffer_free(&receive);
    buffer_free(&send);
}

void run_reductions(const place_t* place) {
    make_all_matrices();
    run_sizes(place, "int-sum", MPI_INT, MPI_SUM);
    run_sizes(place, "double-sum", MPI_DOUBLE, MPI_SUM);
    for (int i = 0; i < MATRICES_COUNT; i++) {
        run_sizes(place, matrices[i].name, matrices[i].type, matrices[i].op);
    }
    for (const long* count = element_counts(MPI_DOUBLE); *count >= 0; count++) {
        if (*count <= 8 || 8 * *count <= bytes_limit(place)) {
            run_rounded(place, *count);
        }
    }
    free_all_matrices();
}
