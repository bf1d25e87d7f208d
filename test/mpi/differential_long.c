/*
 * Vectors of an odd length that is several times that of caches and of the windows that libraries
 * cut vectors into.
 */
#include <stdlib.h>
#include <string.h>

#include "differential.h"

enum { LONG_INTS = (3 << 20) / 4 + 1 };

typedef struct {
    const place_t* place;
    char name[NAME_MAX_BYTES];
    int in_place;
    int count; /**< The number of ints of one vector or block. */
    int root;
} long_t;

static void begin(long_t* call, const char* collective, int count, int root) {
    call->count = count;
    call->root = root;
    name_case(call->name, call->place, "long %s n=%d root=%d%s", collective, count, root,
              call->in_place ? " in-place" : "");
}

static buffer_t ints(const long_t* call, long blocks, int seed_rank) {
    return buffer_make(MPI_INT, call->count * blocks, seed_of(call->name, seed_rank));
}

/** Notes what a call left in `receive`, and checks that it left `send` alone. */
static void end(const long_t* call, buffer_t* send, buffer_t* receive) {
    record(call->name, buffer_digest(receive) ^ buffer_digest(send));
    buffer_free(receive);
    buffer_free(send);
}

static void run_reductions_long(long_t* call) {
    const place_t* place = call->place;
    begin(call, "allreduce", LONG_INTS, 0);
    buffer_t send = ints(call, 1, place->rank);
    buffer_t receive = ints(call, 1, place->rank + place->size);
    MPI_Allreduce(call->in_place ? MPI_IN_PLACE : send.data, receive.data, call->count, MPI_INT,
                  MPI_SUM, place->comm);
    end(call, &send, &receive);
    begin(call, "reduce", LONG_INTS, place->size - 1);
    send = ints(call, 1, place->rank);
    receive = ints(call, 1, place->rank + place->size);
    const int at_root = place->rank == call->root;
    MPI_Reduce(call->in_place && at_root ? MPI_IN_PLACE : send.data, receive.data, call->count,
               MPI_INT, MPI_BXOR, call->root, place->comm);
    end(call, &send, &receive);
    if (!call->in_place) {
        begin(call, "reduce_scatter_block", LONG_INTS / place->size, 0);
        send = ints(call, place->size, place->rank);
        receive = ints(call, 1, place->rank + place->size);
        MPI_Reduce_scatter_block(send.data, receive.data, call->count, MPI_INT, MPI_SUM,
                                 place->comm);
        end(call, &send, &receive);
    }
}

/** Every second rank is in place, as MPI allows. What else is in that rank's vector is undefined
 * afterwards. */
static void run_reduce_scatter_long(long_t* call) {
    const place_t* place = call->place;
    begin(call, "reduce_scatter", LONG_INTS / place->size, 0);
    int* counts = malloc((size_t)place->size * sizeof(int));
    for (int i = 0; i < place->size; i++) {
        counts[i] = call->count;
    }
    buffer_t send = ints(call, place->size, place->rank);
    buffer_t receive = ints(call, 1, place->rank + place->size);
    if (call->in_place && place->rank % 2 == 0) {
        MPI_Reduce_scatter(MPI_IN_PLACE, send.data, counts, MPI_INT, MPI_SUM, place->comm);
        memcpy(receive.data, send.data, (size_t)call->count * sizeof(int));
        buffer_free(&send);
        send = ints(call, 0, -1);
    } else {
        MPI_Reduce_scatter(send.data, receive.data, counts, MPI_INT, MPI_SUM, place->comm);
    }
    end(call, &send, &receive);
    free(counts);
}

static void run_from_root(long_t* call) {
    const place_t* place = call->place;
    begin(call, "bcast", LONG_INTS, place->size / 2);
    buffer_t none = ints(call, 0, -1);
    buffer_t data = ints(call, 1, place->rank);
    MPI_Bcast(data.data, call->count, MPI_INT, call->root, place->comm);
    end(call, &none, &data);
    begin(call, "scatter", LONG_INTS / place->size, place->size - 1);
    const int at_root = place->rank == call->root;
    buffer_t send = ints(call, at_root ? place->size : 0, place->rank);
    buffer_t receive = ints(call, 1, -1);
    MPI_Scatter(send.data, call->count, MPI_INT,
                call->in_place && at_root ? MPI_IN_PLACE : receive.data, call->count, MPI_INT,
                call->root, place->comm);
    end(call, &send, &receive);
}

static void run_to_all(long_t* call) {
    const place_t* place = call->place;
    begin(call, "gather", LONG_INTS / place->size, place->size - 1);
    const int at_root = place->rank == call->root;
    buffer_t send = ints(call, 1, place->rank);
    buffer_t receive = ints(call, at_root ? place->size : 0, -1);
    MPI_Gather(call->in_place && at_root ? MPI_IN_PLACE : send.data, call->count, MPI_INT,
               receive.data, call->count, MPI_INT, call->root, place->comm);
    end(call, &send, &receive);
    begin(call, "allgather", LONG_INTS / place->size, 0);
    send = ints(call, 1, place->rank);
    receive = ints(call, place->size, place->rank + place->size);
    MPI_Allgather(call->in_place ? MPI_IN_PLACE : send.data, call->count, MPI_INT, receive.data,
                  call->count, MPI_INT, place->comm);
    end(call, &send, &receive);
    begin(call, "alltoall", LONG_INTS / place->size, 0);
    send = ints(call, place->size, place->rank);
    receive = ints(call, place->size, place->rank + place->size);
    MPI_Alltoall(call->in_place ? MPI_IN_PLACE : send.data, call->count, MPI_INT, receive.data,
                 call->count, MPI_INT, place->comm);
    end(call, &send, &receive);
}

void run_long(const place_t* place) {
    long_t call = {.place = place};
    for (call.in_place = 0; call.in_place < 2; call.in_place++) {
        run_reductions_long(&call);
        run_reduce_scatter_long(&call);
        run_from_root(&call);
        run_to_all(&call);
    }
}
