/* Sums the ranks' numbers and checks the result: the smallest use of a collective operation. */
#include <stdio.h>

#include <mpi.h>

int main(int argc, char** argv) {
    int rank, ranks, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < 10; turn++) {
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    const int right = ranks > 1 && sum == ranks * (ranks - 1) / 2;
    if (rank == 0) {
        puts(right ? "ok" : "wrong");
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
