/* one_barrier: what a job costs that does nothing: it starts, calls one barrier, and ends. */
#include <stdio.h>

#include <mpi.h>

int main(int argc, char** argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("one barrier of %d ranks\n", ranks);
    }
    MPI_Finalize();
    return 0;
}
