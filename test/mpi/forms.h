/*
 * The forms in which programs that contain blocking collectives call them. DIFFERENTIAL_FORM says
 * which form: nonblocking (with others outstanding before and after, completed in another order
 * than they were started), or persistent.
 */
#ifndef UCG_TEST_MPI_FORMS_H
#define UCG_TEST_MPI_FORMS_H

#include <mpi.h>

typedef enum { BLOCKING, NONBLOCKING, PERSISTENT } form_t;

form_t form(void);

/** Collectives that are outstanding beside the one under test. */
typedef struct {
    MPI_Comm comm;
    MPI_Request requests[3];
    int before;
    int mine;
    int sum;
} companions_t;

void companions_begin(companions_t* companions, MPI_Comm comm);
/** Waits for all of them, with the one under test in the middle. It notes nothing: a wrong
 * result ends the run. */
void companions_end(companions_t* companions, MPI_Request* request);

/** Starts the request `count` times, waits each time, and frees it. */
void run_persistent(MPI_Request* request, int count);

#endif
