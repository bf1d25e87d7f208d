/*
 * Cases that Open MPI 4.1 itself gets wrong: their outcome is checked here and not compared. They
 * run only where DIFFERENTIAL_MIXED is set.
 */
#include <stdlib.h>
#include <string.h>

#include "differential.h"

/* ------------------------------------------------------------------ equal signatures */

/**
 * Even ranks describe the data as ints, odd ranks as elements of a derived type. Open MPI's own
 * broadcast gets this wrong when it cuts messages, so the outcome is checked here and not compared.
 */
static void run_mixed_bcast(const place_t* place, const layout_t* layout, int count, int root) {
    char name[NAME_MAX_BYTES];
    const int ints = count * layout->ints;
    const int derived = 1 == place->rank % 2;
    name_case(name, place, "mixed bcast %s n=%d root=%d", layout->name, count, root);
    int* expected = malloc((size_t)ints * sizeof(int) + 1);
    uint64_t seed = seed_of(name, 0);
    for (int i = 0; i < ints; i++) {
        expected[i] = (int)next_random(&seed);
    }
    buffer_t buffer = buffer_make(derived ? layout->type : MPI_INT, derived ? count : ints, 1);
    const int bytes = ints * (int)sizeof(int);
    int position = 0;
    if (place->rank == root) {
        MPI_Unpack(expected, bytes, &position, buffer.data, derived ? count : ints,
                   derived ? layout->type : MPI_INT, MPI_COMM_SELF);
    }
    MPI_Bcast(buffer.data, derived ? count : ints, derived ? layout->type : MPI_INT, root,
              place->comm);
    int* found = malloc((size_t)ints * sizeof(int) + 1);
    position = 0;
    MPI_Pack(buffer.data, derived ? count : ints, derived ? layout->type : MPI_INT, found, bytes,
             &position, MPI_COMM_SELF);
    record_verdict(name, 0 == memcmp(expected, found, (size_t)bytes));
    free(found);
    free(expected);
    buffer_free(&buffer);
}

/* ------------------------------------------------------------------ negative extents */

typedef void (*move_call_t)(const void* send, void* receive, int count, MPI_Datatype type,
                            MPI_Comm comm);

static void call_gather(const void* send, void* receive, int count, MPI_Datatype type,
                        MPI_Comm comm) {
    MPI_Gather(send, count, type, receive, count, type, 0, comm);
}

static void call_scatter(const void* send, void* receive, int count, MPI_Datatype type,
                         MPI_Comm comm) {
    MPI_Scatter(send, count, type, receive, count, type, 0, comm);
}

static void call_allgather(const void* send, void* receive, int count, MPI_Datatype type,
                           MPI_Comm comm) {
    MPI_Allgather(send, count, type, receive, count, type, comm);
}

static void call_alltoall(const void* send, void* receive, int count, MPI_Datatype type,
                          MPI_Comm comm) {
    MPI_Alltoall(send, count, type, receive, count, type, comm);
}

/** Makes the same call on ints that go forwards and on ints that go backwards in memory; the
 * results must be the same. */
static void check_backwards(const place_t* place, const char* collective, move_call_t call,
                            int count) {
    char name[NAME_MAX_BYTES];
    const MPI_Datatype type = layouts[LAYOUT_BACKWARDS].type;
    const int total = count * place->size;
    const int bytes = total * (int)sizeof(int);
    int position = 0;
    name_case(name, place, "%s backwards n=%d", collective, count);
    buffer_t send = buffer_make(MPI_INT, total, seed_of(name, place->rank));
    buffer_t receive = buffer_make(MPI_INT, total, 1);
    buffer_t found = buffer_make(MPI_INT, total, 2);
    buffer_t send_back = buffer_make(type, total, 3);
    buffer_t receive_back = buffer_make(type, total, 4);
    MPI_Unpack(send.data, bytes, &position, send_back.data, total, type, MPI_COMM_SELF);
    position = 0;
    MPI_Unpack(receive.data, bytes, &position, receive_back.data, total, type, MPI_COMM_SELF);
    call(send.data, receive.data, count, MPI_INT, place->comm);
    call(send_back.data, receive_back.data, count, type, place->comm);
    position = 0;
    MPI_Pack(receive_back.data, total, type, found.data, bytes, &position, MPI_COMM_SELF);
    record_verdict(name, 0 == memcmp(receive.data, found.data, (size_t)bytes));
    buffer_free(&receive_back);
    buffer_free(&send_back);
    buffer_free(&found);
    buffer_free(&receive);
    buffer_free(&send);
}

static void check_all_backwards(const place_t* place) {
    const int counts[] = {1, 7, 3000};
    for (int i = 0; i < 3; i++) {
        check_backwards(place, "gather", call_gather, counts[i]);
        check_backwards(place, "scatter", call_scatter, counts[i]);
        check_backwards(place, "allgather", call_allgather, counts[i]);
        check_backwards(place, "alltoall", call_alltoall, counts[i]);
    }
}

/* ------------------------------------------------------------------ two datatypes */

/** Runs an alltoall that receives ints in another layout than it sends them in. */
static void check_alltoall(const place_t* place, const layout_t* layout, int count) {
    char name[NAME_MAX_BYTES];
    const int ints = count * layout->ints;
    const int bytes = ints * place->size * (int)sizeof(int);
    int position = 0;
    name_case(name, place, "mixed alltoall %s n=%d", layout->name, count);
    buffer_t send = buffer_make(MPI_INT, (long)ints * place->size, seed_of(name, place->rank));
    buffer_t expected = buffer_make(MPI_INT, (long)ints * place->size, 1);
    buffer_t found = buffer_make(MPI_INT, (long)ints * place->size, 2);
    buffer_t receive = buffer_make(layout->type, (long)count * place->size, 3);
    MPI_Alltoall(send.data, ints, MPI_INT, expected.data, ints, MPI_INT, place->comm);
    MPI_Alltoall(send.data, ints, MPI_INT, receive.data, count, layout->type, place->comm);
    MPI_Pack(receive.data, count * place->size, layout->type, found.data, bytes, &position,
             MPI_COMM_SELF);
    record_verdict(name, 0 == memcmp(expected.data, found.data, (size_t)bytes));
    buffer_free(&receive);
    buffer_free(&found);
    buffer_free(&expected);
    buffer_free(&send);
}

/* ------------------------------------------------------------------ all */

/** A comparison with Open MPI would not show that unsigned longs are compared correctly. */
static void check_unsigned_long(const place_t* place) {
    const unsigned long mine = 0 == place->rank ? ~0ul : 5;
    unsigned long greatest = 0;
    MPI_Allreduce(&mine, &greatest, 1, MPI_UNSIGNED_LONG, MPI_MAX, place->comm);
    record_verdict("allreduce max of unsigned longs", place->size == 1 || ~0ul == greatest);
}

void run_mixed(const place_t* place) {
    const int counts[] = {1, 7, 1000, 20000};
    if (NULL == getenv("DIFFERENTIAL_MIXED")) {
        return;
    }
    check_unsigned_long(place);
    check_all_backwards(place);
    for (int i = 1; i < 4; i++) {
        check_alltoall(place, &layouts[i], 1);
        check_alltoall(place, &layouts[i], 100);
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 1; j < 4; j++) {
            run_mixed_bcast(place, &layouts[j], counts[i], 0);
            run_mixed_bcast(place, &layouts[j], counts[i], place->size - 1);
        }
    }
}
