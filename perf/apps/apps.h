/*
 * What the applications share: times by phase, the report. Pure MPI, so that
 * the same program measures every library and component.
 */
#ifndef APPS_H_
#define APPS_H_

#include <stddef.h>

#include <mpi.h>

/* ---- memory: page-aligned and zeroed; ends the job when there is none. Freed by free(). */
void* allocate(size_t bytes);

/* ---- times by phase */

enum { MAX_PHASES = 64 };

/* All calls of one kind: a name (a literal, compared by content) and the bytes that each moves, 0
 * when that means nothing. */
struct phase {
    const char* name;
    long bytes;
    long calls;
    double seconds; /* On this rank. */
};

/* Every rank has the same phases in the same order. */
struct phases {
    struct phase rows[MAX_PHASES];
    int count;
};

/* Adds one call that took `seconds`. */
void phases_add(struct phases* p, const char* name, long bytes, double seconds);

/* Prints, on rank 0, the slowest rank's time of each phase as a table or as CSV with the columns
 * phase, bytes, calls, mean_us, result. `whole` is the phase that shares are of. Collective. */
void phases_print(const struct phases* p, const char* whole, int csv, int wrong, MPI_Comm comm);

/* The head of that CSV, for programs that write their rows themselves. */
extern const char csv_header[];

#endif
