/*
 * Datatypes, memory and numbers for the cases.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "differential.h"

/* ------------------------------------------------------------------ numbers */

uint64_t next_random(uint64_t* state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t fnv(uint64_t hash, const void* bytes, size_t count) {
    const unsigned char* p = bytes;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ p[i]) * 0x100000001b3u;
    }
    return hash;
}

uint64_t seed_of(const char* name, int rank) {
    return fnv(fnv(0xcbf29ce484222325u, name, strlen(name)), &rank, sizeof rank);
}

/* ------------------------------------------------------------------ memory */

enum { ROOM = 64 };

void span_of(MPI_Datatype type, long count, MPI_Aint* low, MPI_Aint* high) {
    MPI_Aint lower_bound;
    MPI_Aint extent;
    MPI_Aint true_lower_bound;
    MPI_Aint true_extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    MPI_Type_get_true_extent(type, &true_lower_bound, &true_extent);
    const MPI_Aint last = count > 0 ? (count - 1) * extent : 0;
    *low = true_lower_bound + (last < 0 ? last : 0);
    *high = true_lower_bound + true_extent + (last > 0 ? last : 0);
    if (0 == count) {
        *low = *high = 0;
    }
}

static void* take_memory(size_t bytes, int mapped) {
    void* memory = NULL;
    if (mapped) {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory = MAP_FAILED == memory ? NULL : memory;
    } else if (0 != posix_memalign(&memory, ROOM, bytes)) {
        memory = NULL;
    }
    if (NULL == memory) {
        fprintf(stderr, "differential: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

buffer_t buffer_make(MPI_Datatype type, long count, uint64_t seed) {
    MPI_Aint low;
    MPI_Aint high;
    buffer_t buffer;
    span_of(type, count, &low, &high);
    /* The offset keeps the data at the alignment that its displacement requires. */
    const size_t shift = (size_t)((-low % ROOM + ROOM) % ROOM);
    buffer.bytes = (size_t)(high - low) + 3 * ROOM;
    uint64_t coin = seed;
    buffer.mapped = NULL != getenv("DIFFERENTIAL_MAPPED") && next_random(&coin) % 2 == 0;
    buffer.memory = take_memory(buffer.bytes, buffer.mapped);
    buffer.data = buffer.memory + ROOM + ((ROOM - shift) % ROOM) - low;
    for (size_t i = 0; i < buffer.bytes; i += sizeof seed) {
        const uint64_t word = next_random(&seed);
        const size_t left = buffer.bytes - i;
        memcpy(buffer.memory + i, &word, left < sizeof word ? left : sizeof word);
    }
    return buffer;
}

/** It digests eight bytes at a time, since most of the program's time would be spent here. */
uint64_t buffer_digest(const buffer_t* buffer) {
    uint64_t hash = 0xcbf29ce484222325u;
    size_t i = 0;
    for (; i + sizeof hash <= buffer->bytes; i += sizeof hash) {
        uint64_t word;
        memcpy(&word, buffer->memory + i, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return fnv(hash, buffer->memory + i, buffer->bytes - i);
}

void buffer_free(buffer_t* buffer) {
    if (buffer->mapped) {
        munmap(buffer->memory, buffer->bytes);
    } else {
        free(buffer->memory);
    }
    buffer->memory = NULL;
}

/* ------------------------------------------------------------------ sizes */

long bytes_limit(const place_t* place) {
    return place->size <= 3 ? 1L << 20 : place->size <= 8 ? 1L << 18 : 1L << 17;
}

const long* element_counts(MPI_Datatype type) {
    static long counts[8];
    int bytes;
    MPI_Type_size(type, &bytes);
    const long chosen[] = {0, 1, 7, 8, 4096 / bytes, 65537 / bytes, (1L << 20) / bytes, -1};
    memcpy(counts, chosen, sizeof chosen);
    return counts;
}

/* ------------------------------------------------------------------ layouts */

layout_t layouts[LAYOUT_COUNT];

static MPI_Datatype resized(MPI_Datatype type, MPI_Aint lower_bound, MPI_Aint extent) {
    MPI_Datatype result;
    MPI_Type_create_resized(type, lower_bound, extent, &result);
    MPI_Type_commit(&result);
    return result;
}

/** An element is three pairs of ints with a gap after each. */
static MPI_Datatype make_gaps(void) {
    MPI_Datatype vector;
    MPI_Type_vector(3, 2, 4, MPI_INT, &vector);
    MPI_Datatype type = resized(vector, 0, 12 * (MPI_Aint)sizeof(int));
    MPI_Type_free(&vector);
    return type;
}

/** An element is two ints, the first of which lies before the address that is passed to MPI. */
static MPI_Datatype make_before(void) {
    const int lengths[] = {1, 1};
    const MPI_Aint displacements[] = {-8, 4};
    MPI_Datatype type;
    MPI_Type_create_hindexed(2, lengths, displacements, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

/** An element is a column of a matrix, so elements lie inside one another. */
static MPI_Datatype make_column(int rows) {
    MPI_Datatype vector;
    MPI_Type_vector(2, 1, rows, MPI_INT, &vector);
    MPI_Datatype type = resized(vector, 0, sizeof(int));
    MPI_Type_free(&vector);
    return type;
}

static MPI_Datatype make_record(void) {
    struct record {
        int number;
        double value;
        char tag[3];
    };
    const int lengths[] = {1, 1, 3};
    const MPI_Aint displacements[] = {offsetof(struct record, number),
                                      offsetof(struct record, value), offsetof(struct record, tag)};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    MPI_Datatype type;
    MPI_Datatype result;
    MPI_Type_create_struct(3, lengths, displacements, types, &type);
    result = resized(type, 0, sizeof(struct record));
    MPI_Type_free(&type);
    return result;
}

void layouts_make(void) {
    const int rows = 1 << 16;
    MPI_Datatype flat;
    MPI_Type_dup(MPI_INT, &flat);
    layouts[0] = (layout_t){"int", flat, 1, 1 << 30};
    layouts[1] = (layout_t){"gaps", make_gaps(), 6, 1 << 30};
    layouts[2] = (layout_t){"before", make_before(), 2, 1 << 30};
    layouts[3] = (layout_t){"column", make_column(rows), 2, rows};
    layouts[4] = (layout_t){"backwards", resized(MPI_INT, 0, -8), 1, 1 << 30};
    layouts[5] = (layout_t){"record", make_record(), 0, 1 << 30};
}

void layouts_free(void) {
    for (int i = 0; i < LAYOUT_COUNT; i++) {
        MPI_Type_free(&layouts[i].type);
    }
}
