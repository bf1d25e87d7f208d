/*
 * Inter-communicators: nonblocking rooted calls and reductions, many outstanding at once and beside
 * blocking calls. Processes wait for them in the order of their starts or in the opposite order.
 */
#include <stdlib.h>

#include "inter.h"

enum { KINDS = 7 };

/** The calls of which one process is the root. */
typedef struct {
    int side;
    int rank;
    int name;
    MPI_Request requests[KINDS];
    int* memory;
    int* send;    /**< A block for each process of the other side. */
    int* receive; /**< Room for the results of all calls. */
} calls_t;

static int value_of(int side, int from, int to, int i) {
    return 1000 * (10 * side + from) + 100 * to + i;
}

static int* result_of(const calls_t* calls, const sides_t* sides, int kind, int count) {
    return calls->receive + kind * (count * sides->remote + 1);
}

static void start(const sides_t* sides, calls_t* calls, int count) {
    const MPI_Comm comm = sides->comm;
    const int name = calls->name;
    const size_t block = (size_t)count * (size_t)sides->remote + 1;
    int* const send = malloc((KINDS + 1) * block * sizeof *send);
    int* const memory = malloc(3 * (size_t)sides->remote * sizeof *memory);
    int* const counts = memory;
    int* const displs = memory + sides->remote;
    calls->memory = memory;
    calls->send = send;
    calls->receive = send + block;
    for (size_t i = 0; i < KINDS * block; i++) {
        calls->receive[i] = -1;
    }
    for (int to = 0; to < sides->remote; to++) {
        counts[to] = to % 2 * count;
        displs[to] = to * count;
        for (int i = 0; i < count; i++) {
            send[to * count + i] = value_of(sides->side, sides->rank, to, i);
        }
    }
    int* const out = MPI_ROOT == name ? send : result_of(calls, sides, 0, count);
    MPI_Ibcast(out, count, MPI_INT, name, comm, &calls->requests[0]);
    MPI_Igather(send, count, MPI_INT, result_of(calls, sides, 1, count), count, MPI_INT, name, comm,
                &calls->requests[1]);
    MPI_Ireduce(send, result_of(calls, sides, 2, count), count, MPI_INT, MPI_SUM, name, comm,
                &calls->requests[2]);
    MPI_Iscatter(send, count, MPI_INT, result_of(calls, sides, 3, count), count, MPI_INT, name,
                 comm, &calls->requests[3]);
    MPI_Iallreduce(send, result_of(calls, sides, 4, count), count, MPI_INT, MPI_MAX, comm,
                   &calls->requests[4]);
    MPI_Igatherv(send, sides->rank % 2 * count, MPI_INT, result_of(calls, sides, 5, count), counts,
                 displs, MPI_INT, name, comm, &calls->requests[5]);
    MPI_Iscatterv(send, counts, displs, MPI_INT, result_of(calls, sides, 6, count),
                  sides->rank % 2 * count, MPI_INT, name, comm, &calls->requests[6]);
}

/** Did call `kind` bring the right value to place `first`? */
static void require_at(const sides_t* sides, const calls_t* calls, int kind, int count, int first,
                       int i, int wanted) {
    sides_t named = *sides;
    named.what = "calls that are outstanding at once";
    require(result_of(calls, sides, kind, count)[first + i] == wanted, named.what);
}

static void check_at_root(const sides_t* sides, const calls_t* calls, int count) {
    const int other = 1 - sides->side;
    for (int i = 0; i < count; i++) {
        int sum = 0;
        for (int from = 0; from < sides->remote; from++) {
            const int sent = value_of(other, from, 0, i);
            sum += sent;
            require_at(sides, calls, 1, count, from * count, i, sent);
            require_at(sides, calls, 5, count, from * count, i, from % 2 ? sent : -1);
        }
        require_at(sides, calls, 2, count, 0, i, sum);
    }
}

static void check_beside(const sides_t* sides, const calls_t* calls, int count) {
    for (int i = 0; i < count; i++) {
        const int sent = value_of(calls->side, calls->rank, sides->rank, i);
        require_at(sides, calls, 0, count, 0, i, value_of(calls->side, calls->rank, 0, i));
        require_at(sides, calls, 3, count, 0, i, sent);
        require_at(sides, calls, 6, count, 0, i, sides->rank % 2 ? sent : -1);
    }
}

static void end(const sides_t* sides, calls_t* calls, int count) {
    if (calls->side != sides->side) {
        check_beside(sides, calls, count);
    } else if (MPI_ROOT == calls->name) {
        check_at_root(sides, calls, count);
    }
    for (int i = 0; i < count; i++) {
        require_at(sides, calls, 4, count, 0, i,
                   value_of(1 - sides->side, sides->remote - 1, 0, i));
    }
    free(calls->send);
    free(calls->memory);
}

static void wait(calls_t* calls, int reversed) {
    for (int i = 0; i < KINDS; i++) {
        MPI_Wait(&calls->requests[reversed ? KINDS - 1 - i : i], MPI_STATUS_IGNORE);
    }
}

void test_started(sides_t* sides, int count) {
    const int roots = sides->size + sides->remote;
    calls_t* all = malloc((size_t)roots * sizeof *all);
    /* Both sides name the roots in the same order: first those of side 0. */
    const int of_first = 0 == sides->side ? sides->size : sides->remote;
    for (int i = 0; i < roots; i++) {
        calls_t* calls = &all[i];
        calls->side = i >= of_first;
        calls->rank = i - calls->side * of_first;
        calls->name = calls->rank;
        if (calls->side == sides->side) {
            calls->name = calls->rank == sides->rank ? MPI_ROOT : MPI_PROC_NULL;
        }
        start(sides, calls, count);
        if (1 == i % 2) {
            MPI_Barrier(sides->comm);
        }
    }
    for (int i = 0; i < roots; i++) {
        const int which = sides->rank % 2 ? roots - 1 - i : i;
        wait(&all[which], i % 2);
        end(sides, &all[which], count);
    }
    free(all);
}
