/*
 * Collectives whose blocks have sizes of their own: gatherv, scatterv, allgatherv, alltoallv,
 * alltoallw.
 */
#include <stdlib.h>

#include "differential.h"

/** Counts and displacements of blocks that have gaps between them and an order of their own;
 * some blocks are empty. */
typedef struct {
    int* counts;
    int* displs;
    long span; /**< The number of elements that the blocks cover, gaps included. */
} vectors_t;

typedef int (*length_t)(int unit, int self, int peer);

static int length_by_peer(int unit, int self, int peer) {
    (void)self;
    return 1 == peer % 4 ? 0 : unit * (1 + peer % 3);
}

/** The number of elements that `self` sends to `peer` in an alltoall. */
static int length_out(int unit, int self, int peer) {
    return 0 == (self + 2 * peer) % 5 ? 0 : unit * (1 + (3 * self + peer) % 3);
}

static int length_in(int unit, int self, int peer) {
    return length_out(unit, peer, self);
}

/** The same, but equal in both directions, as MPI_IN_PLACE requires. */
static int length_symmetric(int unit, int self, int peer) {
    return length_out(unit, self < peer ? self : peer, self < peer ? peer : self);
}

static vectors_t vectors_make(const place_t* place, int unit, length_t length) {
    vectors_t vectors = {calloc((size_t)place->size, sizeof(int)),
                         calloc((size_t)place->size, sizeof(int)), 0};
    for (int i = place->size - 1; i >= 0; i--) {
        vectors.counts[i] = length(unit, place->rank, i);
        vectors.displs[i] = (int)vectors.span;
        vectors.span += vectors.counts[i] + 1;
    }
    return vectors;
}

static void vectors_free(vectors_t* vectors) {
    free(vectors->counts);
    free(vectors->displs);
}

static void run_gatherv(const place_t* place, const layout_t* layout, int unit, int root,
                        int in_place) {
    char name[NAME_MAX_BYTES];
    const int is_root = place->rank == root;
    vectors_t vectors = vectors_make(place, unit, length_by_peer);
    name_case(name, place, "gatherv %s n=%d root=%d%s", layout->name, unit, root,
              in_place ? " in-place" : "");
    const int own = vectors.counts[place->rank];
    buffer_t send = buffer_make(layout->type, own, seed_of(name, place->rank));
    buffer_t receive = buffer_make(layout->type, is_root ? vectors.span : 0, seed_of(name, -1));
    MPI_Gatherv(in_place && is_root ? MPI_IN_PLACE : send.data, own, layout->type,
                is_root ? receive.data : NULL, is_root ? vectors.counts : NULL,
                is_root ? vectors.displs : NULL, layout->type, root, place->comm);
    record(name, buffer_digest(&receive));
    buffer_free(&receive);
    buffer_free(&send);
    vectors_free(&vectors);
}

static void run_scatterv(const place_t* place, const layout_t* layout, int unit, int root,
                         int in_place) {
    char name[NAME_MAX_BYTES];
    const int is_root = place->rank == root;
    vectors_t vectors = vectors_make(place, unit, length_by_peer);
    name_case(name, place, "scatterv %s n=%d root=%d%s", layout->name, unit, root,
              in_place ? " in-place" : "");
    const int own = vectors.counts[place->rank];
    buffer_t send = buffer_make(layout->type, is_root ? vectors.span : 0, seed_of(name, 0));
    buffer_t receive = buffer_make(layout->type, own, seed_of(name, -1));
    MPI_Scatterv(is_root ? send.data : NULL, is_root ? vectors.counts : NULL,
                 is_root ? vectors.displs : NULL, layout->type,
                 in_place && is_root ? MPI_IN_PLACE : receive.data, own, layout->type, root,
                 place->comm);
    record(name, buffer_digest(&receive) ^ buffer_digest(&send));
    buffer_free(&receive);
    buffer_free(&send);
    vectors_free(&vectors);
}

static void run_allgatherv(const place_t* place, const layout_t* layout, int unit, int in_place) {
    char name[NAME_MAX_BYTES];
    vectors_t vectors = vectors_make(place, unit, length_by_peer);
    name_case(name, place, "allgatherv %s n=%d%s", layout->name, unit, in_place ? " in-place" : "");
    const int own = vectors.counts[place->rank];
    buffer_t send = buffer_make(layout->type, own, seed_of(name, place->rank));
    buffer_t receive =
        buffer_make(layout->type, vectors.span, seed_of(name, in_place ? place->rank : -1));
    MPI_Allgatherv(in_place ? MPI_IN_PLACE : send.data, own, layout->type, receive.data,
                   vectors.counts, vectors.displs, layout->type, place->comm);
    record(name, buffer_digest(&receive));
    buffer_free(&receive);
    buffer_free(&send);
    vectors_free(&vectors);
}

static void run_alltoallv(const place_t* place, const layout_t* layout, int unit, int in_place) {
    char name[NAME_MAX_BYTES];
    vectors_t out = vectors_make(place, unit, length_out);
    vectors_t in = vectors_make(place, unit, in_place ? length_symmetric : length_in);
    name_case(name, place, "alltoallv %s n=%d%s", layout->name, unit, in_place ? " in-place" : "");
    buffer_t send = buffer_make(layout->type, out.span, seed_of(name, place->rank));
    buffer_t receive =
        buffer_make(layout->type, in.span, seed_of(name, in_place ? place->rank : -1));
    MPI_Alltoallv(in_place ? MPI_IN_PLACE : send.data, out.counts, out.displs, layout->type,
                  receive.data, in.counts, in.displs, layout->type, place->comm);
    record(name, buffer_digest(&receive));
    buffer_free(&receive);
    buffer_free(&send);
    vectors_free(&in);
    vectors_free(&out);
}

/* ------------------------------------------------------------------ alltoallw */

/** Blocks of different types, with displacements in bytes. Every layout of ints can carry a
 * multiple of six ints. */
typedef struct {
    int* counts;
    int* displs;
    MPI_Datatype* types;
    long bytes;
} mixed_vectors_t;

static const layout_t* layout_between(int self, int peer, int turn) {
    return &layouts[(self + turn * peer) % 5];
}

static mixed_vectors_t mixed_make(const place_t* place, int unit, length_t length, int turn) {
    mixed_vectors_t mixed = {calloc((size_t)place->size, sizeof(int)),
                             calloc((size_t)place->size, sizeof(int)),
                             calloc((size_t)place->size, sizeof(MPI_Datatype)), 0};
    for (int i = 0; i < place->size; i++) {
        const layout_t* layout = layout_between(place->rank, i, turn);
        MPI_Aint low;
        MPI_Aint high;
        mixed.types[i] = layout->type;
        mixed.counts[i] = 6 * length(unit, place->rank, i) / layout->ints;
        span_of(layout->type, mixed.counts[i], &low, &high);
        mixed.displs[i] = (int)(mixed.bytes - low + 15) / 16 * 16;
        mixed.bytes = mixed.displs[i] + high;
    }
    return mixed;
}

static void mixed_free(mixed_vectors_t* mixed) {
    free(mixed->counts);
    free(mixed->displs);
    free(mixed->types);
}

static void run_alltoallw(const place_t* place, int unit) {
    char name[NAME_MAX_BYTES];
    mixed_vectors_t out = mixed_make(place, unit, length_out, 1);
    mixed_vectors_t in = mixed_make(place, unit, length_in, 2);
    name_case(name, place, "alltoallw n=%d", unit);
    buffer_t send = buffer_make(MPI_BYTE, out.bytes, seed_of(name, place->rank));
    buffer_t receive = buffer_make(MPI_BYTE, in.bytes, seed_of(name, -1));
    MPI_Alltoallw(send.data, out.counts, out.displs, out.types, receive.data, in.counts, in.displs,
                  in.types, place->comm);
    record(name, buffer_digest(&receive));
    buffer_free(&receive);
    buffer_free(&send);
    mixed_free(&in);
    mixed_free(&out);
}

/** In place, both directions between two ranks have the same type and length. */
static void run_alltoallw_in_place(const place_t* place, int unit) {
    char name[NAME_MAX_BYTES];
    mixed_vectors_t in = mixed_make(place, unit, length_symmetric, 1);
    name_case(name, place, "alltoallw n=%d in-place", unit);
    buffer_t receive = buffer_make(MPI_BYTE, in.bytes, seed_of(name, place->rank));
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, receive.data, in.counts, in.displs, in.types,
                  place->comm);
    record(name, buffer_digest(&receive));
    buffer_free(&receive);
    mixed_free(&in);
}

/* ------------------------------------------------------------------ all */

static void run_layout(const place_t* place, const layout_t* layout, int unit) {
    const int roots[] = {0, place->size - 1};
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int i = 0; i < 2; i++) {
            run_gatherv(place, layout, unit, roots[i], in_place);
            run_scatterv(place, layout, unit, roots[i], in_place);
        }
        run_allgatherv(place, layout, unit, in_place);
        run_alltoallv(place, layout, unit, in_place);
    }
}

void run_vectors(const place_t* place) {
    const int units[] = {0, 1, 7, 400, 6000};
    for (int i = 0; i < 5; i++) {
        if (units[i] > 1000 && place->size > 5) {
            continue;
        }
        for (int j = 0; j < LAYOUT_COUNT; j++) {
            if (3 * (long)units[i] * place->size + place->size <= layouts[j].elements_max) {
                run_layout(place, &layouts[j], units[i]);
            }
        }
        run_alltoallw(place, units[i]);
        run_alltoallw_in_place(place, units[i]);
    }
}
