/*
 * What the parts of the program inter share: two sides, and data that every process knows.
 */
#ifndef UCG_TEST_MPI_INTER_H
#define UCG_TEST_MPI_INTER_H

#include <mpi.h>

enum { INTS = 2 }; /**< Of each element. */

/** How a process describes elements of two ints: all have one signature. */
typedef struct {
    MPI_Datatype type;
    int per_element; /**< Of the type, to an element. */
} layout_t;

typedef struct {
    MPI_Comm comm;
    int side; /**< 0 or 1. */
    int rank;
    int size;
    int remote;
    layout_t layout;
    int plain;        /**< Leaves out what Open MPI's own components do wrong. */
    int counted;      /**< Leaves out what libucg does not serve. */
    int nonblocking;  /**< The form of collectives with a root and of reductions. */
    const char* what; /**< Is being tested. */
} sides_t;

void require(int condition, const char* what);

/** Memory for elements, in the layout of this process; what lies between them is known. */
void* new_elements(const sides_t* sides, int elements);
/** Writes `elements` of them from element `first` on: those of a sender for a receiver. */
void fill(const sides_t* sides, void* buffer, int first, int elements, int seed);
/** Are they what the sender filled in, and is nothing else written? */
void check(const sides_t* sides, const void* buffer, int first, int elements, int seed);
/** The same of memory of so many elements none of which was written. */
void check_untouched(const sides_t* sides, const void* buffer, int elements);

/** Different for each side, sender and receiver. */
int seed_of(int side, int sender, int receiver);

void test_moves(sides_t* sides, int count);
void test_one_way(sides_t* sides, int count);
void test_forms(sides_t* sides, int count);
void test_rooted(sides_t* sides, int count);
void test_reductions(sides_t* sides, int count);

/** All nonblocking calls with a root, and reductions, outstanding at once. */
void test_started(sides_t* sides, int count);

/** Calls a function in the form that is being tested. */
#define CALL(sides, blocking, nonblocking_, ...)                                                   \
    do {                                                                                           \
        if ((sides)->nonblocking) {                                                                \
            MPI_Request request_;                                                                  \
            MPI_##nonblocking_(__VA_ARGS__, (sides)->comm, &request_);                             \
            MPI_Wait(&request_, MPI_STATUS_IGNORE);                                                \
        } else {                                                                                   \
            MPI_##blocking(__VA_ARGS__, (sides)->comm);                                            \
        }                                                                                          \
    } while (0)

#endif
