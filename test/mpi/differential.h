/*
 * A program that calls every collective in many ways and writes down, for each call and
 * rank, a digest of all memory that the call might have written. It knows MPI only: the same binary
 * runs with any collectives, and differential.py compares what two runs wrote.
 */
#ifndef UCG_TEST_DIFFERENTIAL_H
#define UCG_TEST_DIFFERENTIAL_H

#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

/** A communicator under test. */
typedef struct {
    const char* name;
    MPI_Comm comm;
    int rank;
    int size;
} place_t;

/** How elements lie in memory. Each element consists of `ints` ints; 0 means that it does not
 * consist of ints. */
typedef struct {
    const char* name;
    MPI_Datatype type;
    int ints;
    int elements_max; /**< More elements would overlap. */
} layout_t;

enum { LAYOUT_BACKWARDS = 4, LAYOUT_COUNT = 6 };
extern layout_t layouts[LAYOUT_COUNT];
void layouts_make(void);
void layouts_free(void);

/** Memory for elements, with room around it that nobody may write. */
typedef struct {
    unsigned char* memory;
    size_t bytes;
    void* data; /**< The address that is passed to MPI. */
    int mapped; /**< The memory is from mmap, not from malloc. */
} buffer_t;

/**
 * Makes memory for elements [0, count) of a type, filled with bytes that depend on `seed` alone.
 * Where DIFFERENTIAL_MAPPED is set, the seed also decides whether the memory is from malloc, so
 * that some of the buffers of a call are in a heap that other ranks map, and others are not.
 */
buffer_t buffer_make(MPI_Datatype type, long count, uint64_t seed);
uint64_t buffer_digest(const buffer_t* buffer);
void buffer_free(buffer_t* buffer);

/** Where `count` elements lie, as offsets from the address that is passed to MPI. */
void span_of(MPI_Datatype type, long count, MPI_Aint* low, MPI_Aint* high);

/** A pseudo-random number that is the same everywhere: a step of splitmix64. */
uint64_t next_random(uint64_t* state);
/** Derives a seed from the name of a case and a rank. */
uint64_t seed_of(const char* name, int rank);

enum { NAME_MAX_BYTES = 160 };
/** Writes the name of a case, for example "bcast comm=dup int n=7 root=1". */
void name_case(char* name, const place_t* place, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
/** Notes the outcome of a case on this rank. */
void record(const char* name, uint64_t digest);
/** The same for floating-point results that are rounded: the digest is compared between ranks
 * and runs, and `sum` with the other implementation's up to rounding. */
void record_rounded(const char* name, uint64_t digest, double sum);
/** Notes the outcome of a case that checks itself and needs no other run. */
void record_verdict(const char* name, int passed);

/** The most bytes of a vector that a run of this many ranks should use. */
long bytes_limit(const place_t* place);
/** Numbers of elements of `type` to try; ends with -1. */
const long* element_counts(MPI_Datatype type);

/** Must run before the cases of a communicator, since only a blocking call makes UCG serve it. */
void forms_prepare(MPI_Comm comm);

void run_moves(const place_t* place);
void run_vectors(const place_t* place);
void run_reductions(const place_t* place);
void run_long(const place_t* place);
void run_predefined(const place_t* place);
void run_mixed(const place_t* place);
void run_bottom(const place_t* place);

#endif
