/* What the ranks and the threads of array_reduction work on. */
#ifndef ARRAY_REDUCTION_H_
#define ARRAY_REDUCTION_H_

#include <sched.h>

#include "apps.h"

struct flag; /* Of the threads' tree; array_reduction_omp.c. */

struct reduction {
    double* own; /* This rank's array. */
    double* sum; /* The result, of ranks and of threads. */
    MPI_Comm comm;
    int rank;
    int ranks;
    /* Rank 0, for as many threads as there are ranks. */
    cpu_set_t* places; /* Where each rank may run: so may the thread of that number. */
    double** rows;     /* Each thread's array. */
    double** scratch;  /* Each thread's sums in the tree. */
    struct flag* flags;
    long step;           /* Of the flags; grows for ever. */
    long omp_length_max; /* Elements that the threads' stacks hold in a reduction clause. */
    long length;         /* Of every array. */
};

/* Returns 0, or -1 when the ranks do not share one host (says so on rank 0). Collective. */
int reduction_create(struct reduction* r, long length, MPI_Comm comm);
void reduction_free(struct reduction* r);

/* Element `i` of the array of worker `worker`, and of the sum over all: whole numbers, so that
 * every order of summation gives the same. */
double reduction_element(int worker, long i);
double reduction_expected(int workers, long i);

/* ---- array_reduction_omp.c, on rank 0 */

/* Starts the threads, places them and lets each write its array, as the ranks have written theirs.
 */
void threads_start(struct reduction* r);
void threads_free(struct reduction* r);

/* Each adds up all rows in r->sum, `iterations` times, and returns the slowest thread's mean in
 * seconds; when one call ends, all threads may read the result. */
double run_omp_clause(struct reduction* r, long length, int iterations);
double run_omp_tree(struct reduction* r, long length, int iterations);

#endif
