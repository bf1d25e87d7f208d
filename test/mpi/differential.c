/*
 * main(): makes the communicators, runs all cases on each, and writes PREFIX.<rank>.
 */
#include "differential.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE* output;

void name_case(char* name, const place_t* place, const char* format, ...) {
    va_list arguments;
    int length = snprintf(name, NAME_MAX_BYTES, "%s ", place->name);
    va_start(arguments, format);
    vsnprintf(name + length, NAME_MAX_BYTES - (size_t)length, format, arguments);
    va_end(arguments);
}

void record(const char* name, uint64_t digest) {
    fprintf(output, "%s\texact\t%016llx\n", name, (unsigned long long)digest);
}

void record_rounded(const char* name, uint64_t digest, double sum) {
    fprintf(output, "%s\trounded\t%016llx\t%.17g\n", name, (unsigned long long)digest, sum);
}

void record_verdict(const char* name, int passed) {
    fprintf(output, "%s\tverdict\t%s\n", name, passed ? "ok" : "WRONG");
}

/** Is the part among those that DIFFERENTIAL_PARTS lists? If that is not set, all parts are. */
static int is_wanted(const char* part) {
    const char* list = getenv("DIFFERENTIAL_PARTS");
    if (NULL == list) {
        return 1;
    }
    const size_t length = strlen(part);
    for (const char* at = list; NULL != at; at = strchr(at, ',')) {
        at += ',' == *at;
        if (0 == strncmp(at, part, length) && (',' == at[length] || '\0' == at[length])) {
            return 1;
        }
    }
    return 0;
}

static void run_part(const char* part, void (*run)(const place_t*), const place_t* place) {
    if (is_wanted(part)) {
        run(place);
    }
}

static void run_place(const char* name, MPI_Comm comm) {
    if (MPI_COMM_NULL == comm) {
        return;
    }
    place_t place = {.name = name, .comm = comm};
    MPI_Comm_rank(comm, &place.rank);
    MPI_Comm_size(comm, &place.size);
    forms_prepare(comm);
    run_part("moves", run_moves, &place);
    run_part("vectors", run_vectors, &place);
    run_part("reductions", run_reductions, &place);
    if (0 == strcmp(name, "world")) {
        run_part("long", run_long, &place);
        run_part("predefined", run_predefined, &place);
        run_part("mixed", run_mixed, &place);
        run_part("bottom", run_bottom, &place);
    }
}

/** Makes a communicator of all ranks but the last, in reverse order. */
static MPI_Comm make_reversed(int size) {
    MPI_Group world;
    MPI_Group reversed;
    MPI_Comm comm;
    int range[1][3] = {{size > 1 ? size - 2 : 0, 0, -1}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &reversed);
    MPI_Comm_create(MPI_COMM_WORLD, reversed, &comm);
    MPI_Group_free(&reversed);
    MPI_Group_free(&world);
    return comm;
}

static void release(MPI_Comm* comm) {
    if (MPI_COMM_NULL != *comm) {
        MPI_Comm_free(comm);
    }
}

static void run_all(int rank, int size) {
    MPI_Comm duplicate;
    MPI_Comm parity;
    MPI_Comm reversed = make_reversed(size);
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &parity);
    run_place("world", MPI_COMM_WORLD);
    run_place("dup", duplicate);
    run_place(0 == rank % 2 ? "even" : "odd", parity);
    run_place("reversed", reversed);
    release(&duplicate);
    release(&parity);
    release(&reversed);
}

int main(int argc, char** argv) {
    int rank;
    int size;
    char path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2) {
        fprintf(stderr, "usage: differential OUTPUT-PREFIX\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    snprintf(path, sizeof path, "%s.%d", argv[1], rank);
    output = fopen(path, "w");
    if (NULL == output) {
        perror(path);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    /* With this, the output of a run that crashes or hangs shows where. */
    setvbuf(output, NULL, _IOLBF, 0);
    forms_prepare(MPI_COMM_WORLD);
    layouts_make();
    run_all(rank, size);
    layouts_free();
    fprintf(output, "end\tverdict\tok\n");
    fclose(output);
    MPI_Finalize();
    return 0;
}
