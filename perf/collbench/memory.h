/*
 * What memory the ranks of MPI_COMM_WORLD hold.
 */
#ifndef UCG_PERF_COLLBENCH_MEMORY_H
#define UCG_PERF_COLLBENCH_MEMORY_H

/* Bytes of anonymous shared files (memfd), of private memory and of page tables. */
enum { MEMORY_KINDS = 3 };

/* Of all ranks together. Collective. */
void measure_memory(double sums[MEMORY_KINDS]);

#endif
