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

/* The calls of one kind: their name, a literal that is compared by content, and the bytes that
 * each call moves, 0 where that has no meaning. */
struct phase {
    const char* name;
    long bytes;
    long calls;
    double seconds; /* The sum over the calls on this rank. */
};

/* The phases of a program. Every rank has the same ones in the same order. */
struct phases {
    struct phase rows[MAX_PHASES];
    int count;
};

/* Adds one call that took `seconds`. */
void phases_add(struct phases* p, const char* name, long bytes, double seconds);

/* Prints, on rank 0, the slowest rank's time of each phase as a table or as CSV with the columns
 * phase, bytes, calls, mean_us, result. Shares are fractions of the phase `whole`. Collective. */
void phases_print(const struct phases* p, const char* whole, int csv, int wrong, MPI_Comm comm);

/* The header line of that CSV, for programs that write their rows themselves. */
extern const char csv_header[];

#endif
