/*
 * What the parts of the program `requests` share, and its parts about neighbourhood collectives,
 * repeated calls, vectors that change, and communicators whose first calls are nonblocking.
 */
#ifndef UCG_TEST_MPI_REQUESTS_H
#define UCG_TEST_MPI_REQUESTS_H

#include <stdint.h>

#include <mpi.h>

extern int world_rank;
extern int world_size;

void require(int condition, const char* what);
uint64_t next_random(uint64_t* state);

enum { WAYS = 4 };
/** Completes all requests in an order of the rank's own, in one of MPI's ways. */
void complete(MPI_Request* requests, int count, int way, uint64_t* random);

/** Puts the requests into another order. */
void shuffle(MPI_Request* requests, int count, uint64_t* random);

void neighbors_many(void);
void neighbors_freed(void);
void neighbors_persistent(void);

void repeated(void);
void repeated_threads(void);

void vectors(void);

void first(void);
void first_of_all(void);
void first_of_all_crossed(void);
void first_of_all_blocking(void);
void first_threads(void);

#endif
