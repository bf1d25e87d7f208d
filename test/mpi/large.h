/*
 * Replaces functions of MPI by the functions of MPI 4.0 with large counts, whose vectors are of
 * MPI_Count and MPI_Aint instead of int: gcc -include large.h. The program itself stays as it is.
 * It needs an Open MPI that has those functions, which is 6.0 or later.
 */
#ifndef UCG_TEST_MPI_LARGE_H
#define UCG_TEST_MPI_LARGE_H

#include <mpi.h>

#define LARGE_GATHERV_ARGS                                                                         \
    const void *sbuf, int scount, MPI_Datatype stype, void *rbuf, const int *rcounts,              \
        const int *displs, MPI_Datatype rtype, int root, MPI_Comm comm
#define LARGE_SCATTERV_ARGS                                                                        \
    const void *sbuf, const int *scounts, const int *displs, MPI_Datatype stype, void *rbuf,       \
        int rcount, MPI_Datatype rtype, int root, MPI_Comm comm
#define LARGE_ALLGATHERV_ARGS                                                                      \
    const void *sbuf, int scount, MPI_Datatype stype, void *rbuf, const int *rcounts,              \
        const int *displs, MPI_Datatype rtype, MPI_Comm comm
#define LARGE_ALLTOALLV_ARGS                                                                       \
    const void *sbuf, const int *scounts, const int *sdispls, MPI_Datatype stype, void *rbuf,      \
        const int *rcounts, const int *rdispls, MPI_Datatype rtype, MPI_Comm comm
#define LARGE_ALLTOALLW_ARGS                                                                       \
    const void *sbuf, const int *scounts, const int *sdispls, const MPI_Datatype *stypes,          \
        void *rbuf, const int *rcounts, const int *rdispls, const MPI_Datatype *rtypes,            \
        MPI_Comm comm
#define LARGE_REDUCE_SCATTER_ARGS                                                                  \
    const void *sbuf, void *rbuf, const int *rcounts, MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define LARGE_NEIGHBOR_ALLTOALLW_ARGS                                                              \
    const void *sbuf, const int *scounts, const MPI_Aint *sdispls, const MPI_Datatype *stypes,     \
        void *rbuf, const int *rcounts, const MPI_Aint *rdispls, const MPI_Datatype *rtypes,       \
        MPI_Comm comm

/** Each collective with its arguments, in the three forms that it has. */
#define LARGE_FOR_EACH(X)                                                                          \
    X(Gatherv, Igatherv, LARGE_GATHERV_ARGS)                                                       \
    X(Scatterv, Iscatterv, LARGE_SCATTERV_ARGS)                                                    \
    X(Allgatherv, Iallgatherv, LARGE_ALLGATHERV_ARGS)                                              \
    X(Alltoallv, Ialltoallv, LARGE_ALLTOALLV_ARGS)                                                 \
    X(Alltoallw, Ialltoallw, LARGE_ALLTOALLW_ARGS)                                                 \
    X(Reduce_scatter, Ireduce_scatter, LARGE_REDUCE_SCATTER_ARGS)                                  \
    X(Neighbor_allgatherv, Ineighbor_allgatherv, LARGE_ALLGATHERV_ARGS)                            \
    X(Neighbor_alltoallv, Ineighbor_alltoallv, LARGE_ALLTOALLV_ARGS)                               \
    X(Neighbor_alltoallw, Ineighbor_alltoallw, LARGE_NEIGHBOR_ALLTOALLW_ARGS)

#define LARGE_DECLARE(Name, Started, ...)                                                          \
    int large_##Name(__VA_ARGS__);                                                                 \
    int large_##Started(__VA_ARGS__, MPI_Request* request);                                        \
    int large_##Name##_init(__VA_ARGS__, MPI_Info info, MPI_Request* request);
LARGE_FOR_EACH(LARGE_DECLARE)
#undef LARGE_DECLARE

#if defined(LARGE_PROFILED)
/* The program itself defines functions of these names, which call those of the profiling
 * interface. */
#define PMPI_Gatherv large_Gatherv
#define PMPI_Igatherv large_Igatherv
#define PMPI_Gatherv_init large_Gatherv_init
#define PMPI_Scatterv large_Scatterv
#define PMPI_Iscatterv large_Iscatterv
#define PMPI_Scatterv_init large_Scatterv_init
#define PMPI_Allgatherv large_Allgatherv
#define PMPI_Iallgatherv large_Iallgatherv
#define PMPI_Allgatherv_init large_Allgatherv_init
#define PMPI_Alltoallv large_Alltoallv
#define PMPI_Ialltoallv large_Ialltoallv
#define PMPI_Alltoallv_init large_Alltoallv_init
#define PMPI_Alltoallw large_Alltoallw
#define PMPI_Ialltoallw large_Ialltoallw
#define PMPI_Alltoallw_init large_Alltoallw_init
#define PMPI_Reduce_scatter large_Reduce_scatter
#define PMPI_Ireduce_scatter large_Ireduce_scatter
#define PMPI_Reduce_scatter_init large_Reduce_scatter_init
#define PMPI_Neighbor_allgatherv large_Neighbor_allgatherv
#define PMPI_Ineighbor_allgatherv large_Ineighbor_allgatherv
#define PMPI_Neighbor_allgatherv_init large_Neighbor_allgatherv_init
#define PMPI_Neighbor_alltoallv large_Neighbor_alltoallv
#define PMPI_Ineighbor_alltoallv large_Ineighbor_alltoallv
#define PMPI_Neighbor_alltoallv_init large_Neighbor_alltoallv_init
#define PMPI_Neighbor_alltoallw large_Neighbor_alltoallw
#define PMPI_Ineighbor_alltoallw large_Ineighbor_alltoallw
#define PMPI_Neighbor_alltoallw_init large_Neighbor_alltoallw_init
#else
#define MPI_Gatherv large_Gatherv
#define MPI_Igatherv large_Igatherv
#define MPI_Gatherv_init large_Gatherv_init
#define MPI_Scatterv large_Scatterv
#define MPI_Iscatterv large_Iscatterv
#define MPI_Scatterv_init large_Scatterv_init
#define MPI_Allgatherv large_Allgatherv
#define MPI_Iallgatherv large_Iallgatherv
#define MPI_Allgatherv_init large_Allgatherv_init
#define MPI_Alltoallv large_Alltoallv
#define MPI_Ialltoallv large_Ialltoallv
#define MPI_Alltoallv_init large_Alltoallv_init
#define MPI_Alltoallw large_Alltoallw
#define MPI_Ialltoallw large_Ialltoallw
#define MPI_Alltoallw_init large_Alltoallw_init
#define MPI_Reduce_scatter large_Reduce_scatter
#define MPI_Ireduce_scatter large_Ireduce_scatter
#define MPI_Reduce_scatter_init large_Reduce_scatter_init
#define MPI_Neighbor_allgatherv large_Neighbor_allgatherv
#define MPI_Ineighbor_allgatherv large_Ineighbor_allgatherv
#define MPI_Neighbor_allgatherv_init large_Neighbor_allgatherv_init
#define MPI_Neighbor_alltoallv large_Neighbor_alltoallv
#define MPI_Ineighbor_alltoallv large_Ineighbor_alltoallv
#define MPI_Neighbor_alltoallv_init large_Neighbor_alltoallv_init
#define MPI_Neighbor_alltoallw large_Neighbor_alltoallw
#define MPI_Ineighbor_alltoallw large_Ineighbor_alltoallw
#define MPI_Neighbor_alltoallw_init large_Neighbor_alltoallw_init
#endif

#endif
