/*
 * Stands in for a header of Open MPI 5.0 that <opal/mca/threads/mutex.h> includes and distribution
 * packages do not ship: mutexes and conditions of an Open MPI that was built over POSIX threads.
 * Their layout in memory is the same, since Open MPI's library makes and uses such mutexes too.
 */
#ifndef OPAL_MCA_THREADS_PTHREADS_THREADS_PTHREADS_MUTEX_H
#define OPAL_MCA_THREADS_PTHREADS_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

#include "opal/constants.h"

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER PTHREAD_COND_INITIALIZER

static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t* mutex,
                                                  bool recursive) {
    pthread_mutexattr_t attributes;
    if (0 != pthread_mutexattr_init(&attributes)) {
        return OPAL_ERR_IN_ERRNO;
    }
    int rc = pthread_mutexattr_settype(&attributes,
                                       recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_DEFAULT);
    rc = 0 == rc ? pthread_mutex_init(mutex, &attributes) : rc;
    pthread_mutexattr_destroy(&attributes);
    return 0 == rc ? OPAL_SUCCESS : OPAL_ERR_IN_ERRNO;
}

static inline void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t* mutex) {
    pthread_mutex_destroy(mutex);
}

static inline void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t* mutex) {
    pthread_mutex_lock(mutex);
}

/** Returns 0 if the calling thread has got the mutex, else 1. */
static inline int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t* mutex) {
    return 0 != pthread_mutex_trylock(mutex);
}

static inline void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t* mutex) {
    pthread_mutex_unlock(mutex);
}

static inline int opal_thread_internal_cond_init(opal_thread_internal_cond_t* cond) {
    return 0 == pthread_cond_init(cond, NULL) ? OPAL_SUCCESS : OPAL_ERR_IN_ERRNO;
}

static inline void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t* cond) {
    pthread_cond_destroy(cond);
}

static inline void opal_thread_internal_cond_wait(opal_thread_internal_cond_t* cond,
                                                  opal_thread_internal_mutex_t* mutex) {
    pthread_cond_wait(cond, mutex);
}

static inline void opal_thread_internal_cond_signal(opal_thread_internal_cond_t* cond) {
    pthread_cond_signal(cond);
}

static inline void opal_thread_internal_cond_broadcast(opal_thread_internal_cond_t* cond) {
    pthread_cond_broadcast(cond);
}

#endif
