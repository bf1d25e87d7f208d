/*
 * Buffers that are described by MPI_BOTTOM and a datatype of absolute addresses, on the sending
 * side, on the receiving side and on both, in every collective that has buffers.
 */
#include <stdlib.h>
#include <string.h>

#include "differential.h"

/* ------------------------------------------------------------------ absolute addresses */

/** A buffer as it is passed to MPI. */
typedef struct {
    void* data;
    MPI_Datatype type;
    int absolute;
} argument_t;

/** Makes the argument for a buffer; if `absolute`, for the same elements relative to MPI_BOTTOM. */
static argument_t argument_make(const buffer_t* buffer, MPI_Datatype type, int absolute) {
    argument_t argument = {buffer->data, type, absolute};
    if (absolute) {
        MPI_Aint address;
        MPI_Get_address(buffer->data, &address);
        MPI_Type_create_hindexed_block(1, 1, &address, type, &argument.type);
        MPI_Type_commit(&argument.type);
        argument.data = MPI_BOTTOM;
    }
    return argument;
}

static void argument_free(argument_t* argument) {
    if (argument->absolute) {
        MPI_Type_free(&argument->type);
    }
}

/* It is added to the rank for the initial content of a receive buffer. */
enum { kReceiveSeed = 1000 };

/** One call of a collective. */
typedef struct {
    const place_t* place;
    const char* collective;
    const layout_t* layout;
    int count; /**< The number of elements of one block. */
    int root;
    int in_place;
    int send_absolute;
    int receive_absolute;
} call_t;

typedef struct {
    char name[NAME_MAX_BYTES];
    buffer_t send_memory;
    buffer_t receive_memory;
    argument_t send;
    argument_t receive;
    const void* source; /**< MPI_IN_PLACE, or the send buffer. */
} sides_t;

static void sides_make(sides_t* sides, const call_t* call, long sent, long received) {
    const int rank = call->place->rank;
    name_case(sides->name, call->place, "bottom %s %s n=%d root=%d%s%s%s", call->collective,
              call->layout->name, call->count, call->root, call->in_place ? " in-place" : "",
              call->send_absolute ? " send" : "", call->receive_absolute ? " receive" : "");
    sides->send_memory = buffer_make(call->layout->type, sent, seed_of(sides->name, rank));
    sides->receive_memory =
        buffer_make(call->layout->type, received, seed_of(sides->name, kReceiveSeed + rank));
    sides->send = argument_make(&sides->send_memory, call->layout->type, call->send_absolute);
    sides->receive =
        argument_make(&sides->receive_memory, call->layout->type, call->receive_absolute);
    sides->source = call->in_place ? MPI_IN_PLACE : sides->send.data;
}

static void sides_free(sides_t* sides) {
    argument_free(&sides->receive);
    argument_free(&sides->send);
    buffer_free(&sides->receive_memory);
    buffer_free(&sides->send_memory);
}

static void sides_end(sides_t* sides) {
    record(sides->name, buffer_digest(&sides->send_memory) ^ buffer_digest(&sides->receive_memory));
    sides_free(sides);
}

/* ------------------------------------------------------------------ blocks of one size */

static void run_bcast(const call_t* call) {
    sides_t sides;
    sides_make(&sides, call, 0, call->count);
    MPI_Bcast(sides.receive.data, call->count, sides.receive.type, call->root, call->place->comm);
    sides_end(&sides);
}

static void run_gather(const call_t* given) {
    sides_t sides;
    call_t call = *given;
    const int is_root = call.place->rank == call.root;
    call.in_place = call.in_place && is_root;
    sides_make(&sides, &call, call.count, is_root ? (long)call.count * call.place->size : 0);
    MPI_Gather(sides.source, call.count, sides.send.type, sides.receive.data, call.count,
               sides.receive.type, call.root, call.place->comm);
    sides_end(&sides);
}

static void run_scatter(const call_t* given) {
    sides_t sides;
    call_t call = *given;
    const int is_root = call.place->rank == call.root;
    sides_make(&sides, &call, is_root ? (long)call.count * call.place->size : 0, call.count);
    MPI_Scatter(sides.send.data, call.count, sides.send.type,
                call.in_place && is_root ? MPI_IN_PLACE : sides.receive.data, call.count,
                sides.receive.type, call.root, call.place->comm);
    sides_end(&sides);
}

static void run_allgather(const call_t* call) {
    sides_t sides;
    sides_make(&sides, call, call->count, (long)call->count * call->place->size);
    MPI_Allgather(sides.source, call->count, sides.send.type, sides.receive.data, call->count,
                  sides.receive.type, call->place->comm);
    sides_end(&sides);
}

static void run_alltoall(const call_t* call) {
    sides_t sides;
    const long total = (long)call->count * call->place->size;
    sides_make(&sides, call, total, total);
    MPI_Alltoall(sides.source, call->count, sides.send.type, sides.receive.data, call->count,
                 sides.receive.type, call->place->comm);
    sides_end(&sides);
}

/* ------------------------------------------------------------------ blocks of their own sizes */

/** Blocks of count, 0, count, 0, ... elements, of which the last one comes first in memory. */
typedef struct {
    int* counts;
    int* displs;
    long span;
} vectors_t;

/** If `self` is 0 the vectors are the same on all ranks; else a block is not empty where rank
 * and index have an even sum. */
static vectors_t vectors_make(const call_t* call, int self) {
    const int size = call->place->size;
    vectors_t vectors = {calloc((size_t)size, sizeof(int)), calloc((size_t)size, sizeof(int)), 0};
    for (int i = size - 1; i >= 0; i--) {
        vectors.counts[i] = 0 == (self + i) % 2 ? call->count : 0;
        vectors.displs[i] = (int)vectors.span;
        vectors.span += vectors.counts[i] + 1;
    }
    return vectors;
}

static void vectors_free(vectors_t* vectors) {
    free(vectors->counts);
    free(vectors->displs);
}

static void run_gatherv(const call_t* given) {
    sides_t sides;
    call_t call = *given;
    const int is_root = call.place->rank == call.root;
    vectors_t vectors = vectors_make(&call, 0);
    const int own = vectors.counts[call.place->rank];
    call.in_place = call.in_place && is_root;
    sides_make(&sides, &call, own, is_root ? vectors.span : 0);
    MPI_Gatherv(sides.source, own, sides.send.type, sides.receive.data, vectors.counts,
                vectors.displs, sides.receive.type, call.root, call.place->comm);
    sides_end(&sides);
    vectors_free(&vectors);
}

static void run_scatterv(const call_t* given) {
    sides_t sides;
    call_t call = *given;
    const int is_root = call.place->rank == call.root;
    vectors_t vectors = vectors_make(&call, 0);
    const int own = vectors.counts[call.place->rank];
    sides_make(&sides, &call, is_root ? vectors.span : 0, own);
    MPI_Scatterv(sides.send.data, vectors.counts, vectors.displs, sides.send.type,
                 call.in_place && is_root ? MPI_IN_PLACE : sides.receive.data, own,
                 sides.receive.type, call.root, call.place->comm);
    sides_end(&sides);
    vectors_free(&vectors);
}

static void run_allgatherv(const call_t* call) {
    sides_t sides;
    vectors_t vectors = vectors_make(call, 0);
    const int own = vectors.counts[call->place->rank];
    sides_make(&sides, call, own, vectors.span);
    MPI_Allgatherv(sides.source, own, sides.send.type, sides.receive.data, vectors.counts,
                   vectors.displs, sides.receive.type, call->place->comm);
    sides_end(&sides);
    vectors_free(&vectors);
}

static void run_alltoallv(const call_t* call) {
    sides_t sides;
    vectors_t vectors = vectors_make(call, call->place->rank);
    sides_make(&sides, call, vectors.span, vectors.span);
    MPI_Alltoallv(sides.source, vectors.counts, vectors.displs, sides.send.type, sides.receive.data,
                  vectors.counts, vectors.displs, sides.receive.type, call->place->comm);
    sides_end(&sides);
    vectors_free(&vectors);
}

/** alltoallw has displacements in bytes and a datatype for each peer. Here all datatypes are
 * one, so the result equals that of alltoallv. */
static void run_alltoallw(const call_t* call) {
    sides_t sides;
    const int size = call->place->size;
    vectors_t vectors = vectors_make(call, call->place->rank);
    MPI_Datatype* sent = calloc((size_t)size, sizeof(MPI_Datatype));
    MPI_Datatype* received = calloc((size_t)size, sizeof(MPI_Datatype));
    MPI_Aint lower_bound;
    MPI_Aint extent;
    sides_make(&sides, call, vectors.span, vectors.span);
    MPI_Type_get_extent(call->layout->type, &lower_bound, &extent);
    for (int i = 0; i < size; i++) {
        vectors.displs[i] *= (int)extent;
        sent[i] = sides.send.type;
        received[i] = sides.receive.type;
    }
    MPI_Alltoallw(sides.source, vectors.counts, vectors.displs, sent, sides.receive.data,
                  vectors.counts, vectors.displs, received, call->place->comm);
    sides_end(&sides);
    free(sent);
    free(received);
    vectors_free(&vectors);
}

/* ------------------------------------------------------------------ reductions */

/**
 * An element is a pair of numbers that stands for x -> first * x + second; composing pairs reveals
 * any change in the order of operands. The second number is the last one of the element, wherever
 * it lies.
 */
static void compose(void* left, void* right, int* count, MPI_Datatype* type) {
    MPI_Aint lower_bound;
    MPI_Aint extent;
    MPI_Aint true_lower_bound;
    MPI_Aint true_extent;
    MPI_Type_get_extent(*type, &lower_bound, &extent);
    MPI_Type_get_true_extent(*type, &true_lower_bound, &true_extent);
    for (int i = 0; i < *count; i++) {
        const MPI_Aint first = true_lower_bound + i * extent;
        const MPI_Aint second = first + true_extent - (MPI_Aint)sizeof(uint32_t);
        uint32_t f[2];
        uint32_t g[2];
        memcpy(&f[0], (char*)left + first, sizeof f[0]);
        memcpy(&f[1], (char*)left + second, sizeof f[1]);
        memcpy(&g[0], (char*)right + first, sizeof g[0]);
        memcpy(&g[1], (char*)right + second, sizeof g[1]);
        g[1] = f[0] * g[1] + f[1];
        g[0] = f[0] * g[0];
        memcpy((char*)right + first, &g[0], sizeof g[0]);
        memcpy((char*)right + second, &g[1], sizeof g[1]);
    }
}

/**
 * A reduction has one datatype for both buffers. So where one buffer is at MPI_BOTTOM, the other
 * one is passed as the address from which the absolute displacements lead to its elements.
 */
static void sides_make_alike(sides_t* sides, const call_t* call, long sent, long received) {
    MPI_Aint to_send;
    MPI_Aint to_receive;
    sides_make(sides, call, sent, received);
    MPI_Get_address(sides->send_memory.data, &to_send);
    MPI_Get_address(sides->receive_memory.data, &to_receive);
    if (call->receive_absolute) {
        sides->send.data = (void*)(uintptr_t)(to_send - to_receive);
    } else if (call->send_absolute) {
        sides->receive.data = (void*)(uintptr_t)(to_receive - to_send);
    }
    sides->source = call->in_place ? MPI_IN_PLACE : sides->send.data;
}

static MPI_Datatype type_of(const call_t* call, const sides_t* sides) {
    return call->receive_absolute ? sides->receive.type : sides->send.type;
}

/** Open MPI takes a null receive buffer for no buffer and drops the result, on 8 ranks and more.
 * So the outcome is compared with that of the same call on ordinary buffers. */
static void run_reduce(const call_t* given, MPI_Op op) {
    sides_t sides;
    call_t call = *given;
    const int rank = call.place->rank;
    const int is_root = rank == call.root;
    call.in_place = call.in_place && is_root;
    sides_make_alike(&sides, &call, call.count, call.count);
    buffer_t expected =
        buffer_make(call.layout->type, call.count, seed_of(sides.name, kReceiveSeed + rank));
    MPI_Reduce(call.in_place ? MPI_IN_PLACE : sides.send_memory.data,
               is_root ? expected.data : NULL, call.count, call.layout->type, op, call.root,
               call.place->comm);
    MPI_Reduce(sides.source, is_root ? sides.receive.data : NULL, call.count,
               type_of(&call, &sides), op, call.root, call.place->comm);
    record_verdict(sides.name, buffer_digest(&expected) == buffer_digest(&sides.receive_memory));
    buffer_free(&expected);
    sides_free(&sides);
}

typedef int (*vector_call_t)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

/** Rank 0's result of an exscan is undefined, and so is what Open MPI leaves there. */
static void run_vector(const call_t* given, MPI_Op op, const char* collective,
                       vector_call_t function) {
    sides_t sides;
    call_t call = *given;
    call.collective = collective;
    sides_make_alike(&sides, &call, call.count, call.count);
    function(sides.source, sides.receive.data, call.count, type_of(&call, &sides), op,
             call.place->comm);
    if (MPI_Exscan == function && 0 == call.place->rank) {
        memset(sides.receive_memory.memory, 0, sides.receive_memory.bytes);
    }
    sides_end(&sides);
}

/** In place, what lies behind the rank's own part is undefined afterwards. */
static void forget_rest(const call_t* call, sides_t* sides) {
    if (call->in_place) {
        MPI_Aint low;
        MPI_Aint high;
        span_of(call->layout->type, call->count, &low, &high);
        unsigned char* rest = (unsigned char*)sides->receive_memory.data + high;
        memset(rest, 0,
               (size_t)(sides->receive_memory.memory + sides->receive_memory.bytes - rest));
    }
}

static void run_reduce_scatter(const call_t* given, MPI_Op op, int block) {
    sides_t sides;
    call_t call = *given;
    const int size = call.place->size;
    const long total = (long)call.count * size;
    int* counts = calloc((size_t)size, sizeof *counts);
    for (int i = 0; i < size; i++) {
        counts[i] = call.count;
    }
    call.collective = block ? "reduce_scatter_block" : "reduce_scatter";
    sides_make_alike(&sides, &call, total, call.in_place ? total : call.count);
    if (block) {
        MPI_Reduce_scatter_block(sides.source, sides.receive.data, call.count,
                                 type_of(&call, &sides), op, call.place->comm);
    } else {
        MPI_Reduce_scatter(sides.source, sides.receive.data, counts, type_of(&call, &sides), op,
                           call.place->comm);
    }
    forget_rest(&call, &sides);
    sides_end(&sides);
    free(counts);
}

/* ------------------------------------------------------------------ all */

static void run_moves_of(call_t* call) {
    static const struct {
        const char* name;
        void (*run)(const call_t* call);
        int rooted;
    } moves[] = {
        {"bcast", run_bcast, 1},         {"gather", run_gather, 1},
        {"scatter", run_scatter, 1},     {"gatherv", run_gatherv, 1},
        {"scatterv", run_scatterv, 1},   {"allgather", run_allgather, 0},
        {"alltoall", run_alltoall, 0},   {"allgatherv", run_allgatherv, 0},
        {"alltoallv", run_alltoallv, 0}, {"alltoallw", run_alltoallw, 0},
    };
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        call->collective = moves[i].name;
        call->root = 0;
        moves[i].run(call);
        if (moves[i].rooted && call->place->size > 1) {
            call->root = call->place->size - 1;
            moves[i].run(call);
        }
    }
}

static void run_reductions_of(call_t* call, MPI_Op op) {
    call->collective = "reduce";
    for (int i = 0; i < 2; i++) {
        call->root = 0 == i ? 0 : call->place->size - 1;
        if (0 == i || call->root > 0) {
            run_reduce(call, op);
        }
    }
    call->root = 0;
    run_vector(call, op, "allreduce", MPI_Allreduce);
    run_vector(call, op, "scan", MPI_Scan);
    run_vector(call, op, "exscan", MPI_Exscan);
    run_reduce_scatter(call, op, 0);
    run_reduce_scatter(call, op, 1);
}

static void run_sides(call_t* call, MPI_Op op) {
    run_moves_of(call);
    /* One datatype can only have one absolute address. */
    if (!(call->send_absolute && call->receive_absolute)) {
        run_reductions_of(call, op);
    }
}

static layout_t make_pairs(const char* name, int stride, int extent) {
    MPI_Datatype vector;
    layout_t layout = {.name = name};
    MPI_Type_vector(2, 1, stride, MPI_UINT32_T, &vector);
    MPI_Type_create_resized(vector, 0, extent, &layout.type);
    MPI_Type_commit(&layout.type);
    MPI_Type_free(&vector);
    return layout;
}

/** With more ranks Open MPI's own alltoall crashes, since it confuses the two datatypes. */
enum { kRanksMax = 8 };

void run_bottom(const place_t* place) {
    if (place->size > kRanksMax) {
        return;
    }
    const int counts[] = {1, 3000};
    layout_t pairs[] = {make_pairs("pairs", 1, 8), make_pairs("pairs-gaps", 3, 20)};
    MPI_Op op;
    MPI_Op_create(compose, 0, &op);
    for (int i = 0; i < 2; i++) {
        call_t call = {.place = place, .layout = &pairs[i]};
        for (int j = 0; j < 2; j++) {
            call.count = counts[j];
            for (int how = 1; how < 4; how++) {
                call.send_absolute = how & 1;
                call.receive_absolute = how >> 1;
                call.in_place = 0;
                run_sides(&call, op);
                call.in_place = 1;
                if (call.receive_absolute) {
                    run_sides(&call, op);
                }
            }
        }
        MPI_Type_free(&pairs[i].type);
    }
    MPI_Op_free(&op);
}
