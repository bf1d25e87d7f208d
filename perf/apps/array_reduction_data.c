#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array_reduction.h"

double reduction_element(int worker, long i) {
    return (double)((worker * 7 + i) % 31 + 1);
}

double reduction_expected(int workers, long i) {
    double sum = 0;
    int worker;

    for (worker = 0; worker < workers; ++worker) {
        sum += reduction_element(worker, i);
    }
    return sum;
}

static int on_one_host(MPI_Comm comm) {
    MPI_Comm host;
    int here, all;

    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &here);
    MPI_Comm_free(&host);
    MPI_Comm_size(comm, &all);
    MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_MIN, comm);
    return here == all;
}

int reduction_create(struct reduction* r, long length, MPI_Comm comm) {
    cpu_set_t place;
    long i;

    memset(r, 0, sizeof(*r));
    r->comm = comm;
    r->length = length;
    MPI_Comm_rank(comm, &r->rank);
    MPI_Comm_size(comm, &r->ranks);
    if (!on_one_host(comm)) {
        if (r->rank == 0) {
            fputs("array_reduction: threads need all ranks on one host\n", stderr);
        }
        return -1;
    }
    r->own = allocate(sizeof(double) * (size_t)length);
    r->sum = allocate(sizeof(double) * (size_t)length);
    for (i = 0; i < length; ++i) {
        r->own[i] = reduction_element(r->rank, i);
    }
    if (r->rank == 0) {
        r->places = allocate(sizeof(place) * (size_t)r->ranks);
    }
    sched_getaffinity(0, sizeof(place), &place);
    MPI_Gather(&place, sizeof(place), MPI_BYTE, r->places, sizeof(place), MPI_BYTE, 0, comm);
    return 0;
}

void reduction_free(struct reduction* r) {
    if (r->rank == 0) {
        threads_free(r);
    }
    free(r->places);
    free(r->own);
    free(r->sum);
}
