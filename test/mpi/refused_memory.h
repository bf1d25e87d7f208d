/*
 * What programs share in which the component gets no memory on some rank: their start, and
 * allocations that are refused. posix_memalign() is replaced in the whole program.
 */
#ifndef UCG_TEST_MPI_REFUSED_MEMORY_H
#define UCG_TEST_MPI_REFUSED_MEMORY_H

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static int rank;
static int size;
static const char* way; /**< The program's first argument. */

static void require(int condition, const char* what, int number) {
    if (!condition) {
        fprintf(stderr, "%s %s: rank %d, number %d: %s\n", program_invocation_short_name, way, rank,
                number, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/** Starts MPI. Open MPI 4.1 hands errors of nonblocking and persistent collectives to the handler
 * of MPI_COMM_WORLD: it returns them, too. */
static void start(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    way = argc > 1 ? argv[1] : "";
}

/** Is this allocation refused? `left` counts those of the component from now on: the last one is
 * refused; 0: none is. */
static int is_refused(int* left, const void* caller) {
    Dl_info info;
    return 0 < *left && 0 != dladdr(caller, &info) &&
           NULL != strstr(info.dli_fname, "mca_coll_ucg") && 0 == --*left;
}

/** The call of posix_memalign() by the component that is refused. */
static int refused_aligned;

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
    if (is_refused(&refused_aligned, __builtin_return_address(0))) {
        return ENOMEM;
    }
    *memory = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    return NULL != *memory ? 0 : ENOMEM;
}

#endif
