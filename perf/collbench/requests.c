/*
 * The nonblocking and persistent forms of some collectives: a start and the wait for it.
 */
#include "collbench.h"

#ifdef COLLBENCH_PERSISTENT
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define INIT(name) MPI_##name##_init
#else
/* Needs mpi.h before it. */
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#endif
#endif

static int doubles(int bytes) {
    return bytes / (int)sizeof(double);
}

static void* root_sends(struct buffers* b) {
    return b->rank == 0 ? b->send : b->recv;
}

/* ---- nonblocking */

void run_ibarrier(struct buffers* b, int bytes) {
    MPI_Request request;

    (void)bytes;
    MPI_Ibarrier(b->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void run_ibcast(struct buffers* b, int bytes) {
    MPI_Request request;

    MPI_Ibcast(root_sends(b), bytes, MPI_BYTE, 0, b->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void run_iallreduce(struct buffers* b, int bytes) {
    MPI_Request request;

    MPI_Iallreduce(b->send, b->recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, b->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void run_iallgather(struct buffers* b, int bytes) {
    MPI_Request request;

    MPI_Iallgather(b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, b->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void run_ialltoall(struct buffers* b, int bytes) {
    MPI_Request request;

    MPI_Ialltoall(b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, b->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* ---- persistent */

#ifdef COLLBENCH_PERSISTENT
void run_started(struct buffers* b, int bytes) {
    (void)bytes;
    MPI_Start(&b->request);
    MPI_Wait(&b->request, MPI_STATUS_IGNORE);
}

void init_barrier(struct buffers* b, int bytes) {
    (void)bytes;
    INIT(Barrier)(b->comm, MPI_INFO_NULL, &b->request);
}

void init_bcast(struct buffers* b, int bytes) {
    INIT(Bcast)(root_sends(b), bytes, MPI_BYTE, 0, b->comm, MPI_INFO_NULL, &b->request);
}

void init_allreduce(struct buffers* b, int bytes) {
    INIT(Allreduce)
    (b->send, b->recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, b->comm, MPI_INFO_NULL, &b->request);
}

void init_allgather(struct buffers* b, int bytes) {
    INIT(Allgather)
    (b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, b->comm, MPI_INFO_NULL, &b->request);
}

void init_alltoall(struct buffers* b, int bytes) {
    INIT(Alltoall)
    (b->send, bytes, MPI_BYTE, b->recv, bytes, MPI_BYTE, b->comm, MPI_INFO_NULL, &b->request);
}
#endif
