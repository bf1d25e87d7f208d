/* The data that the ranks and the threads of array_reduction work on. */
#ifndef ARRAY_REDUCTION_H_
#define ARRAY_REDUCTION_H_

#include <sched.h>

#include "apps.h"

struct flag; /* A flag of the threads' tree; see array_reduction_omp.c. */

struct reduction {
    double* own; /* This rank's array. */
    double* sum; /* The result, of the ranks and of the threads. */
    MPI_Comm comm;
    int rank;
    int ranks;
    /* Rank 0 alone has what follows, for as many threads as there are ranks. */
    cpu_set_t* places; /* CPUs on which each rank, and the thread of its number, may run. */
    double** rows;     /* Each thread's array. */
    double** scratch;  /* Each thread's sums in the tree. */
    struct flag* flags;
    long step;           /* The value of the flags; it only grows. */
    long omp_length_max; /* Most elements that threads' stacks hold in a reduction clause. */
    long length;         /* Elements of every array. */
};

/* Returns 0, or -1 when the ranks do not share one host, which rank 0 prints. Collective. */
int reduction_create(struct reduction* r, long length, MPI_Comm comm);
void reduction_free(struct reduction* r);

/* Return element `i` of the array of worker `worker`, and of the sum over all workers. They are
 * whole numbers, so that every order of summation gives the same result. */
double reduction_element(int worker, long i);
double reduction_expected(int workers, long i);

/* ---- array_reduction_omp.c, on rank 0 */

/* Starts the threads, places them and lets each write its array, as the ranks have written theirs.
 */
void threads_start(struct reduction* r);
void threads_free(struct reduction* r);

/* Each of these sums all rows into r->sum, `iterations` times, and returns the slowest thread's
 * mean in seconds. When one call ends, all threads may read the result. */
double run_omp_clause(struct reduction* r, long length, int iterations);
double run_omp_tree(struct reduction* r, long length, int iterations);

#endif
