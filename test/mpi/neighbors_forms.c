/*
 * The neighbourhood collectives of a program in other forms, like differential_forms.c: the program
 * calls the blocking functions, which this file defines.
 */
#include <mpi.h>

#include "forms.h"
#include "persistent.h"

int MPI_Neighbor_allgather(const void* send, int sent, MPI_Datatype stype, void* receive,
                           int received, MPI_Datatype rtype, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ineighbor_allgather(send, sent, stype, receive, received, rtype, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Neighbor_allgather_init(send, sent, stype, receive, received, rtype, comm,
                                     MPI_INFO_NULL, &request);
        run_persistent(&request, 2);
        return MPI_SUCCESS;
    }
    return PMPI_Neighbor_allgather(send, sent, stype, receive, received, rtype, comm);
}

int MPI_Neighbor_allgatherv(const void* send, int sent, MPI_Datatype stype, void* receive,
                            const int* counts, const int* displs, MPI_Datatype rtype,
                            MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ineighbor_allgatherv(send, sent, stype, receive, counts, displs, rtype, comm,
                                  &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Neighbor_allgatherv_init(send, sent, stype, receive, counts, displs, rtype, comm,
                                      MPI_INFO_NULL, &request);
        run_persistent(&request, 2);
        return MPI_SUCCESS;
    }
    return PMPI_Neighbor_allgatherv(send, sent, stype, receive, counts, displs, rtype, comm);
}

int MPI_Neighbor_alltoall(const void* send, int sent, MPI_Datatype stype, void* receive,
                          int received, MPI_Datatype rtype, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ineighbor_alltoall(send, sent, stype, receive, received, rtype, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Neighbor_alltoall_init(send, sent, stype, receive, received, rtype, comm,
                                    MPI_INFO_NULL, &request);
        run_persistent(&request, 2);
        return MPI_SUCCESS;
    }
    return PMPI_Neighbor_alltoall(send, sent, stype, receive, received, rtype, comm);
}

int MPI_Neighbor_alltoallv(const void* send, const int* scounts, const int* sdispls,
                           MPI_Datatype stype, void* receive, const int* rcounts,
                           const int* rdispls, MPI_Datatype rtype, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ineighbor_alltoallv(send, scounts, sdispls, stype, receive, rcounts, rdispls, rtype,
                                 comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Neighbor_alltoallv_init(send, scounts, sdispls, stype, receive, rcounts, rdispls,
                                     rtype, comm, MPI_INFO_NULL, &request);
        run_persistent(&request, 2);
        return MPI_SUCCESS;
    }
    return PMPI_Neighbor_alltoallv(send, scounts, sdispls, stype, receive, rcounts, rdispls, rtype,
                                   comm);
}

int MPI_Neighbor_alltoallw(const void* send, const int* scounts, const MPI_Aint* sdispls,
                           const MPI_Datatype* stypes, void* receive, const int* rcounts,
                           const MPI_Aint* rdispls, const MPI_Datatype* rtypes, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ineighbor_alltoallw(send, scounts, sdispls, stypes, receive, rcounts, rdispls, rtypes,
                                 comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Neighbor_alltoallw_init(send, scounts, sdispls, stypes, receive, rcounts, rdispls,
                                     rtypes, comm, MPI_INFO_NULL, &request);
        run_persistent(&request, 2);
        return MPI_SUCCESS;
    }
    return PMPI_Neighbor_alltoallw(send, scounts, sdispls, stypes, receive, rcounts, rdispls,
                                   rtypes, comm);
}
