/*
 * Stands in for a header of Open MPI 5.0 that <opal/mca/threads/threads.h> includes and
 * distribution packages do not ship: how a thread of an Open MPI that was built over POSIX threads
 * gives its processor away.
 */
#ifndef OPAL_MCA_THREADS_PTHREADS_THREADS_PTHREADS_THREADS_H
#define OPAL_MCA_THREADS_PTHREADS_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/** The function of Open MPI's library by which threads yield, as the user has chosen. */
extern void (*opal_threads_pthreads_yield_fn)(void);

#define OPAL_THREAD_YIELD_WHEN_IDLE_DEFAULT false

static inline void opal_thread_yield(void) {
    opal_threads_pthreads_yield_fn();
}

#endif
