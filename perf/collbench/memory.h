/* The memory that the ranks of MPI_COMM_WORLD hold. */
#ifndef UCG_PERF_COLLBENCH_MEMORY_H
#define UCG_PERF_COLLBENCH_MEMORY_H

/* The kinds of memory: anonymous shared files (memfd), private memory and page tables. */
enum { MEMORY_KINDS = 3 };

/* Sets `sums` to the bytes of each kind, of all ranks together. Collective. */
void measure_memory(double sums[MEMORY_KINDS]);

#endif
