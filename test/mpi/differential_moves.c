/*
 * Collectives that move blocks of one size: barrier, bcast, gather, scatter, allgather, alltoall.
 */
#include "differential.h"

/** What one call sends and receives. */
typedef struct {
    const place_t* place;
    const layout_t* send;
    const layout_t* receive;
    long count; /**< The number of elements of `receive` in one block. */
    int root;
    int in_place;
} move_t;

static int send_count(const move_t* move) {
    return move->send == move->receive ? (int)move->count : (int)move->count * move->receive->ints;
}

static void name_move(char* name, const move_t* move, const char* collective) {
    name_case(name, move->place, "%s %s>%s n=%ld root=%d%s", collective, move->send->name,
              move->receive->name, move->count, move->root, move->in_place ? " in-place" : "");
}

static void run_bcast(const move_t* move) {
    char name[NAME_MAX_BYTES];
    name_move(name, move, "bcast");
    buffer_t buffer =
        buffer_make(move->receive->type, move->count, seed_of(name, move->place->rank));
    MPI_Bcast(buffer.data, (int)move->count, move->receive->type, move->root, move->place->comm);
    record(name, buffer_digest(&buffer));
    buffer_free(&buffer);
}

static void run_gather(const move_t* move) {
    const place_t* place = move->place;
    const int is_root = place->rank == move->root;
    char name[NAME_MAX_BYTES];
    name_move(name, move, "gather");
    buffer_t send = buffer_make(move->send->type, send_count(move), seed_of(name, place->rank));
    buffer_t receive = buffer_make(move->receive->type, is_root ? move->count * place->size : 0,
                                   seed_of(name, -1));
    const void* source = move->in_place && is_root ? MPI_IN_PLACE : send.data;
    MPI_Gather(source, send_count(move), move->send->type, is_root ? receive.data : NULL,
               (int)move->count, move->receive->type, move->root, place->comm);
    record(name, buffer_digest(&receive));
    buffer_free(&receive);
    buffer_free(&send);
}

static void run_scatter(const move_t* move) {
    const place_t* place = move->place;
    const int is_root = place->rank == move->root;
    char name[NAME_MAX_BYTES];
    name_move(name, move, "scatter");
    buffer_t send = buffer_make(
        move->send->type, is_root ? (long)send_count(move) * place->size : 0, seed_of(name, 0));
    buffer_t receive = buffer_make(move->receive->type, move->count, seed_of(name, -1));
    void* target = move->in_place && is_root ? MPI_IN_PLACE : receive.data;
    MPI_Scatter(is_root ? send.data : NULL, send_count(move), move->send->type, target,
                (int)move->count, move->receive->type, move->root, place->comm);
    record(name, buffer_digest(&receive) ^ buffer_digest(&send));
    buffer_free(&receive);
    buffer_free(&send);
}

static void run_allgather(const move_t* move) {
    const place_t* place = move->place;
    char name[NAME_MAX_BYTES];
    name_move(name, move, "allgather");
    buffer_t send = buffer_make(move->send->type, send_count(move), seed_of(name, place->rank));
    buffer_t receive = buffer_make(move->receive->type, move->count * place->size,
                                   seed_of(name, move->in_place ? place->rank : -1));
    MPI_Allgather(move->in_place ? MPI_IN_PLACE : send.data, send_count(move), move->send->type,
                  receive.data, (int)move->count, move->receive->type, place->comm);
    record(name, buffer_digest(&receive));
    buffer_free(&receive);
    buffer_free(&send);
}

static void run_alltoall(const move_t* move) {
    const place_t* place = move->place;
    char name[NAME_MAX_BYTES];
    name_move(name, move, "alltoall");
    buffer_t send = buffer_make(move->send->type, (long)send_count(move) * place->size,
                                seed_of(name, place->rank));
    buffer_t receive = buffer_make(move->receive->type, move->count * place->size,
                                   seed_of(name, move->in_place ? place->rank : -1));
    MPI_Alltoall(move->in_place ? MPI_IN_PLACE : send.data, send_count(move), move->send->type,
                 receive.data, (int)move->count, move->receive->type, place->comm);
    record(name, buffer_digest(&receive));
    buffer_free(&receive);
    buffer_free(&send);
}

static void run_rooted(move_t* move) {
    const int roots[] = {0, move->place->size / 2, move->place->size - 1};
    for (int i = 0; i < 3; i++) {
        if (i > 0 && roots[i] == roots[i - 1]) {
            continue;
        }
        move->root = roots[i];
        if (!move->in_place && move->send == move->receive) {
            run_bcast(move);
        }
        run_gather(move);
        run_scatter(move);
    }
}

static int fits(const move_t* move) {
    int bytes;
    MPI_Type_size(move->receive->type, &bytes);
    const long limit = bytes_limit(move->place);
    const long total = move->count * bytes * move->place->size;
    return move->count * move->place->size <= move->receive->elements_max &&
           (move->count <= 8 || total <= 2 * limit);
}

static void run_pair(const place_t* place, const layout_t* send, const layout_t* receive) {
    move_t move = {.place = place, .send = send, .receive = receive};
    for (const long* count = element_counts(receive->type); *count >= 0; count++) {
        move.count = *count;
        if (!fits(&move)) {
            continue;
        }
        for (move.in_place = 0; move.in_place < 2; move.in_place++) {
            run_rooted(&move);
            run_allgather(&move);
            /* Bruck's algorithm in Open MPI confuses the two datatypes. See run_mixed(). */
            if (send == receive || place->size < 12) {
                run_alltoall(&move);
            }
        }
    }
}

void run_moves(const place_t* place) {
    for (int i = 0; i < LAYOUT_COUNT; i++) {
        if (LAYOUT_BACKWARDS == i) {
            continue; /* Open MPI's gather computes a negative size here. See run_mixed(). */
        }
        run_pair(place, &layouts[i], &layouts[i]);
        MPI_Barrier(place->comm);
        if (i > 0 && layouts[i].ints > 0) {
            run_pair(place, &layouts[0], &layouts[i]);
        }
    }
}
