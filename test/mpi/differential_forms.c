/*
 * The blocking collectives of the program, called in other forms: MPI's profiling interface lets
 * the program define these functions itself. DIFFERENTIAL_FORM says which form: nonblocking (with
 * others outstanding before and after, completed in another order than they were started), or
 * persistent (started twice where the first start leaves the operands as they were).
 */
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "differential.h"
#include "forms.h"
#include "persistent.h"

form_t form(void) {
    static int known = -1;
    if (known < 0) {
        const char* name = getenv("DIFFERENTIAL_FORM");
        known = NULL == name                      ? BLOCKING
                : 0 == strcmp(name, "persistent") ? PERSISTENT
                                                  : NONBLOCKING;
    }
    return (form_t)known;
}

void forms_prepare(MPI_Comm comm) {
    if (BLOCKING != form()) {
        PMPI_Barrier(comm);
    }
}

/* ------------------------------------------------------------------ companions */

void companions_begin(companions_t* companions, MPI_Comm comm) {
    companions->comm = comm;
    companions->mine = 3;
    companions->before = 0;
    PMPI_Comm_rank(comm, &companions->before);
    PMPI_Ibcast(&companions->before, 1, MPI_INT, 0, comm, &companions->requests[0]);
}

void companions_end(companions_t* companions, MPI_Request* request) {
    int size;
    PMPI_Comm_size(companions->comm, &size);
    PMPI_Iallreduce(&companions->mine, &companions->sum, 1, MPI_INT, MPI_SUM, companions->comm,
                    &companions->requests[1]);
    PMPI_Ibarrier(companions->comm, &companions->requests[2]);
    PMPI_Wait(&companions->requests[1], MPI_STATUS_IGNORE);
    PMPI_Wait(request, MPI_STATUS_IGNORE);
    PMPI_Wait(&companions->requests[2], MPI_STATUS_IGNORE);
    PMPI_Wait(&companions->requests[0], MPI_STATUS_IGNORE);
    if (0 != companions->before || 3 * size != companions->sum) {
        PMPI_Abort(companions->comm, 3);
    }
}

/** In place the result of one start would be the operand of the next. A single rank may be in
 * place, so all ranks agree. */
static int starts(const void* send, MPI_Comm comm) {
    int once = MPI_IN_PLACE == send;
    PMPI_Allreduce(MPI_IN_PLACE, &once, 1, MPI_INT, MPI_LOR, comm);
    return once ? 1 : 2;
}

void run_persistent(MPI_Request* request, int count) {
    for (int i = 0; i < count; i++) {
        PMPI_Start(request);
        PMPI_Wait(request, MPI_STATUS_IGNORE);
    }
    PMPI_Request_free(request);
}

/* ------------------------------------------------------------------ the collectives */

int MPI_Barrier(MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ibarrier(comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Barrier_init(comm, MPI_INFO_NULL, &request);
        run_persistent(&request, 2);
        return MPI_SUCCESS;
    }
    return PMPI_Barrier(comm);
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ibcast(buffer, count, type, root, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Bcast_init(buffer, count, type, root, comm, MPI_INFO_NULL, &request);
        run_persistent(&request, 2);
        return MPI_SUCCESS;
    }
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Gather(const void* send, int sent, MPI_Datatype stype, void* receive, int received,
               MPI_Datatype rtype, int root, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Igather(send, sent, stype, receive, received, rtype, root, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Gather_init(send, sent, stype, receive, received, rtype, root, comm, MPI_INFO_NULL,
                         &request);
        run_persistent(&request, 2);
        return MPI_SUCCESS;
    }
    return PMPI_Gather(send, sent, stype, receive, received, rtype, root, comm);
}

int MPI_Scatter(const void* send, int sent, MPI_Datatype stype, void* receive, int received,
                MPI_Datatype rtype, int root, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Iscatter(send, sent, stype, receive, received, rtype, root, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Scatter_init(send, sent, stype, receive, received, rtype, root, comm, MPI_INFO_NULL,
                          &request);
        run_persistent(&request, 2);
        return MPI_SUCCESS;
    }
    return PMPI_Scatter(send, sent, stype, receive, received, rtype, root, comm);
}

int MPI_Allgather(const void* send, int sent, MPI_Datatype stype, void* receive, int received,
                  MPI_Datatype rtype, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Iallgather(send, sent, stype, receive, received, rtype, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Allgather_init(send, sent, stype, receive, received, rtype, comm, MPI_INFO_NULL,
                            &request);
        run_persistent(&request, starts(send, comm));
        return MPI_SUCCESS;
    }
    return PMPI_Allgather(send, sent, stype, receive, received, rtype, comm);
}

int MPI_Alltoall(const void* send, int sent, MPI_Datatype stype, void* receive, int received,
                 MPI_Datatype rtype, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ialltoall(send, sent, stype, receive, received, rtype, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Alltoall_init(send, sent, stype, receive, received, rtype, comm, MPI_INFO_NULL,
                           &request);
        run_persistent(&request, starts(send, comm));
        return MPI_SUCCESS;
    }
    return PMPI_Alltoall(send, sent, stype, receive, received, rtype, comm);
}

int MPI_Gatherv(const void* send, int sent, MPI_Datatype stype, void* receive, const int* counts,
                const int* displs, MPI_Datatype rtype, int root, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Igatherv(send, sent, stype, receive, counts, displs, rtype, root, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Gatherv_init(send, sent, stype, receive, counts, displs, rtype, root, comm,
                          MPI_INFO_NULL, &request);
        run_persistent(&request, 2);
        return MPI_SUCCESS;
    }
    return PMPI_Gatherv(send, sent, stype, receive, counts, displs, rtype, root, comm);
}

int MPI_Scatterv(const void* send, const int* counts, const int* displs, MPI_Datatype stype,
                 void* receive, int received, MPI_Datatype rtype, int root, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Iscatterv(send, counts, displs, stype, receive, received, rtype, root, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Scatterv_init(send, counts, displs, stype, receive, received, rtype, root, comm,
                           MPI_INFO_NULL, &request);
        run_persistent(&request, 2);
        return MPI_SUCCESS;
    }
    return PMPI_Scatterv(send, counts, displs, stype, receive, received, rtype, root, comm);
}

int MPI_Allgatherv(const void* send, int sent, MPI_Datatype stype, void* receive, const int* counts,
                   const int* displs, MPI_Datatype rtype, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Iallgatherv(send, sent, stype, receive, counts, displs, rtype, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Allgatherv_init(send, sent, stype, receive, counts, displs, rtype, comm, MPI_INFO_NULL,
                             &request);
        run_persistent(&request, starts(send, comm));
        return MPI_SUCCESS;
    }
    return PMPI_Allgatherv(send, sent, stype, receive, counts, displs, rtype, comm);
}

int MPI_Alltoallv(const void* send, const int* scounts, const int* sdispls, MPI_Datatype stype,
                  void* receive, const int* rcounts, const int* rdispls, MPI_Datatype rtype,
                  MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ialltoallv(send, scounts, sdispls, stype, receive, rcounts, rdispls, rtype, comm,
                        &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Alltoallv_init(send, scounts, sdispls, stype, receive, rcounts, rdispls, rtype, comm,
                            MPI_INFO_NULL, &request);
        run_persistent(&request, starts(send, comm));
        return MPI_SUCCESS;
    }
    return PMPI_Alltoallv(send, scounts, sdispls, stype, receive, rcounts, rdispls, rtype, comm);
}

int MPI_Alltoallw(const void* send, const int* scounts, const int* sdispls,
                  const MPI_Datatype* stypes, void* receive, const int* rcounts, const int* rdispls,
                  const MPI_Datatype* rtypes, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ialltoallw(send, scounts, sdispls, stypes, receive, rcounts, rdispls, rtypes, comm,
                        &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Alltoallw_init(send, scounts, sdispls, stypes, receive, rcounts, rdispls, rtypes, comm,
                            MPI_INFO_NULL, &request);
        run_persistent(&request, starts(send, comm));
        return MPI_SUCCESS;
    }
    return PMPI_Alltoallw(send, scounts, sdispls, stypes, receive, rcounts, rdispls, rtypes, comm);
}

int MPI_Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ireduce(send, receive, count, type, op, root, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Reduce_init(send, receive, count, type, op, root, comm, MPI_INFO_NULL, &request);
        run_persistent(&request, starts(send, comm));
        return MPI_SUCCESS;
    }
    return PMPI_Reduce(send, receive, count, type, op, root, comm);
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Iallreduce(send, receive, count, type, op, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Allreduce_init(send, receive, count, type, op, comm, MPI_INFO_NULL, &request);
        run_persistent(&request, starts(send, comm));
        return MPI_SUCCESS;
    }
    return PMPI_Allreduce(send, receive, count, type, op, comm);
}

int MPI_Scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
             MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Iscan(send, receive, count, type, op, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Scan_init(send, receive, count, type, op, comm, MPI_INFO_NULL, &request);
        run_persistent(&request, starts(send, comm));
        return MPI_SUCCESS;
    }
    return PMPI_Scan(send, receive, count, type, op, comm);
}

int MPI_Exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Iexscan(send, receive, count, type, op, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Exscan_init(send, receive, count, type, op, comm, MPI_INFO_NULL, &request);
        run_persistent(&request, starts(send, comm));
        return MPI_SUCCESS;
    }
    return PMPI_Exscan(send, receive, count, type, op, comm);
}

int MPI_Reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ireduce_scatter(send, receive, counts, type, op, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Reduce_scatter_init(send, receive, counts, type, op, comm, MPI_INFO_NULL, &request);
        run_persistent(&request, starts(send, comm));
        return MPI_SUCCESS;
    }
    return PMPI_Reduce_scatter(send, receive, counts, type, op, comm);
}

int MPI_Reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type,
                             MPI_Op op, MPI_Comm comm) {
    MPI_Request request;
    companions_t companions;
    if (NONBLOCKING == form()) {
        companions_begin(&companions, comm);
        PMPI_Ireduce_scatter_block(send, receive, count, type, op, comm, &request);
        companions_end(&companions, &request);
        return MPI_SUCCESS;
    }
    if (PERSISTENT == form()) {
        PMPI_Reduce_scatter_block_init(send, receive, count, type, op, comm, MPI_INFO_NULL,
                                       &request);
        run_persistent(&request, starts(send, comm));
        return MPI_SUCCESS;
    }
    return PMPI_Reduce_scatter_block(send, receive, count, type, op, comm);
}
