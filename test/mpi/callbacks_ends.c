/*
 * Functions of the program that run when something ends: deletions of attributes of a communicator
 * that is freed, which call that communicator, and of MPI_COMM_SELF, which come at MPI_Finalize and
 * make the first call of a communicator. And everything that the first calls of a communicator use
 * is freed before these calls end.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include "callbacks.h"

enum { ELEMENTS = 10, STRIDE = 5, ROOM = STRIDE * (ELEMENTS + 1) };

static MPI_Comm called_late;

static void sum_ranks(MPI_Comm comm, const char* what) {
    int sum = -1;
    MPI_Request request;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    require(sum == size * (size - 1) / 2, what);
    sum = -1;
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(sum == size * (size - 1) / 2, what);
}

static int call_freed(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)keyval;
    (void)value;
    (void)extra;
    sum_ranks(comm, "summed while the communicator is freed");
    return MPI_SUCCESS;
}

static int call_at_end(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm;
    (void)keyval;
    (void)value;
    (void)extra;
    sum_ranks(called_late, "summed at the end by another communicator");
    sum_ranks(MPI_COMM_WORLD, "summed at the end");
    return MPI_SUCCESS;
}

static void free_with_attribute(void) {
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call_freed, &keyval, NULL);
    for (int calls = 0; calls < 3; calls++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_attr(comm, keyval, NULL);
        for (int i = 0; i < calls; i++) {
            MPI_Barrier(comm);
        }
        MPI_Comm_free(&comm);
    }
    MPI_Comm_free_keyval(&keyval);
}

/** Composes x -> a * x + b with another such function: this does not commute. */
static void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
    MPI_Aint lb;
    MPI_Aint extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    for (int i = 0; i < *count; i++) {
        const int* left = (const int*)((const char*)in + i * extent);
        int* right = (int*)((char*)inout + i * extent);
        right[2] += left[2] * right[0];
        right[0] *= left[0];
    }
}

/** Two ints with a gap between them and behind them, and one before them. */
static MPI_Datatype make_type(void) {
    MPI_Datatype pair;
    MPI_Datatype type;
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, -(MPI_Aint)sizeof(int), STRIDE * (MPI_Aint)sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&pair);
    return type;
}

/** Is each element the composition of those of the ranks before `end`? Gaps are as they were. */
static void check(const int* composed, int end, const char* what) {
    for (int i = 0; i < ELEMENTS; i++) {
        int factor = 1;
        int summand = 0;
        for (int from = 0; from < end; from++) {
            summand = (i + from) + summand * (from + 2);
            factor *= from + 2;
        }
        const int* element = composed + i * STRIDE;
        require(element[2] == -7, "a gap");
        require(0 == end ? element[1] == -7 : element[1] == factor && element[3] == summand, what);
    }
}

/** A communicator's first calls, whose communicator, type and operator are freed at once. (Where
 * these calls go to libnbc, Open MPI 4.1 may crash.) */
static void free_everything(void) {
    static int in[ROOM];
    static int out[2][ROOM];
    MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                               MPI_REQUEST_NULL};
    MPI_Comm comm;
    MPI_Op op;
    for (int i = 0; i < ROOM; i++) {
        in[i] = out[0][i] = out[1][i] = -7;
    }
    for (int i = 0; i < ELEMENTS; i++) {
        in[1 + i * STRIDE] = rank + 2;
        in[3 + i * STRIDE] = i + rank;
    }
    MPI_Datatype type = make_type();
    MPI_Op_create(compose, 0, &op);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Iallreduce(in + 1, out[0] + 1, ELEMENTS, type, op, comm, &requests[0]);
    MPI_Iexscan(in + 1, out[1] + 1, ELEMENTS, type, op, comm, &requests[2]);
    MPI_Type_free(&type);
    MPI_Op_free(&op);
    MPI_Comm_free(&comm);
    for (int ended = 0; ended < 2;) {
        int count;
        int indices[4];
        MPI_Testsome(4, requests, &count, indices, MPI_STATUSES_IGNORE);
        require(MPI_UNDEFINED != count, "both calls are told to have ended");
        ended += count;
    }
    check(out[0], size, "composed of all");
    check(out[1], rank, "composed of the ranks before");
}

void ends(void) {
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call_at_end, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &called_late); /* Freed by nobody. */
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    MPI_Comm_free_keyval(&keyval);
    free_with_attribute();
    free_everything();
}
