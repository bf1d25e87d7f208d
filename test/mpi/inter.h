/*
 * What the parts of the program inter share: two sides, and data that every process can compute.
 */
#ifndef UCG_TEST_MPI_INTER_H
#define UCG_TEST_MPI_INTER_H

#include <mpi.h>

enum { INTS = 2 }; /**< An element has two ints. */

/** How a process describes elements of two ints; all descriptions have the same signature. */
typedef struct {
    MPI_Datatype type;
    int per_element; /**< The number of elements of the type that make one element. */
} layout_t;

typedef struct {
    MPI_Comm comm;
    int side; /**< 0 or 1. */
    int rank;
    int size;
    int remote;
    layout_t layout;
    int plain;        /**< The run leaves out what Open MPI's own components do wrong. */
    int counted;      /**< The run leaves out what libucg does not serve. */
    int nonblocking;  /**< Rooted collectives and reductions are called in nonblocking form. */
    const char* what; /**< The name of what is being tested. */
} sides_t;

void require(int condition, const char* what);

/** Makes memory for elements in the layout of this process; the bytes between them have known
 * values. */
void* new_elements(const sides_t* sides, int elements);
/** Writes `elements` elements from number `first` on, with the data of a sender for a receiver. */
void fill(const sides_t* sides, void* buffer, int first, int elements, int seed);
/** Are the elements those of the sender, and is nothing else written? */
void check(const sides_t* sides, const void* buffer, int first, int elements, int seed);
/** The same for memory of so many elements, none of which was written. */
void check_untouched(const sides_t* sides, const void* buffer, int elements);

/** The seed is different for each side, sender and receiver. */
int seed_of(int side, int sender, int receiver);

void test_moves(sides_t* sides, int count);
void test_one_way(sides_t* sides, int count);
void test_forms(sides_t* sides, int count);
void test_rooted(sides_t* sides, int count);
void test_reductions(sides_t* sides, int count);

/** Runs all nonblocking rooted calls and reductions with all of them outstanding at once. */
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
