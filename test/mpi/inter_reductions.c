/*
 * Inter-communicators: reductions by a predefined operator, and by an operator of the program's
 * that does not commute.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inter.h"

/** The map x -> a x + b as a pair (a, b) of unsigned numbers. Composition of maps does not
 * commute. */
typedef struct {
    unsigned a;
    unsigned b;
} map_t;

static map_t map_of(int side, int rank, int i) {
    const map_t map = {2 * (unsigned)(side + 3 * rank + i) + 1,
                       (unsigned)(5 * rank + side + 7 * i)};
    return map;
}

static map_t composed(map_t first, map_t then) {
    const map_t map = {first.a * then.a, first.b * then.a + then.b};
    return map;
}

/** The maps of a side, composed in the order of ranks. */
static map_t expected(int side, int ranks, int i) {
    map_t map = map_of(side, 0, i);
    for (int rank = 1; rank < ranks; rank++) {
        map = composed(map, map_of(side, rank, i));
    }
    return map;
}

static MPI_Aint extent_of(MPI_Datatype type) {
    MPI_Aint lower;
    MPI_Aint extent;
    MPI_Type_get_extent(type, &lower, &extent);
    return extent;
}

static MPI_Aint true_extent_of(MPI_Datatype type) {
    MPI_Aint lower;
    MPI_Aint extent;
    MPI_Type_get_true_extent(type, &lower, &extent);
    return extent;
}

/** Where the first byte of an element lies, from its origin. */
static MPI_Aint true_lower_of(MPI_Datatype type) {
    MPI_Aint lower;
    MPI_Aint extent;
    MPI_Type_get_true_extent(type, &lower, &extent);
    return lower;
}

/** Each element has two ints, the second of which lies `distance` ints behind the first. */
static int distance_of(MPI_Datatype type) {
    return (int)(true_extent_of(type) / (MPI_Aint)sizeof(int)) - 1;
}

static map_t read_map(const void* buffer, MPI_Datatype type, int i) {
    const unsigned* at =
        (const unsigned*)((const char*)buffer + extent_of(type) * i + true_lower_of(type));
    const map_t map = {at[0], at[distance_of(type)]};
    return map;
}

static void write_map(void* buffer, MPI_Datatype type, int i, map_t map) {
    unsigned* at = (unsigned*)((char*)buffer + extent_of(type) * i + true_lower_of(type));
    at[0] = map.a;
    at[distance_of(type)] = map.b;
}

/** What precedes the first byte of an element may hold something that needs to be aligned. */
static int is_aligned(const void* elements, MPI_Datatype type) {
    return 0 == true_lower_of(type) || 0 == (uintptr_t)elements % sizeof(double);
}

static void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
    require(is_aligned(in, *type) && is_aligned(inout, *type), "aligned operands");
    for (int i = 0; i < *count; i++) {
        write_map(inout, *type, i, composed(read_map(in, *type, i), read_map(inout, *type, i)));
    }
}

/* ------------------------------------------------------------------ maps */

typedef struct {
    MPI_Datatype type;
    MPI_Op op;
    void* send;
    void* receive;
    char* memory; /**< Of both. */
} maps_t;

static maps_t begin_maps(const sides_t* sides, MPI_Datatype type, MPI_Op op, int count) {
    const MPI_Aint all = extent_of(type) * count; /* Negative if elements go down from the first. */
    const MPI_Aint below = all < 0 ? -all : 0;
    const MPI_Aint above = (all > 0 ? all : 0) + true_lower_of(type) + true_extent_of(type);
    const MPI_Aint bytes = (below + above + 63) / 64 * 64;
    char* memory = calloc(2, (size_t)bytes);
    maps_t maps = {type, op, memory + below, memory + bytes + below, memory};
    for (int i = 0; i < count; i++) {
        write_map(maps.send, type, i, map_of(sides->side, sides->rank, i));
    }
    return maps;
}

static void check_maps(const sides_t* sides, const maps_t* maps, int first, int count) {
    for (int i = 0; i < count; i++) {
        const map_t result = read_map(maps->receive, maps->type, i);
        const map_t wanted = expected(1 - sides->side, sides->remote, first + i);
        require(result.a == wanted.a && result.b == wanted.b, sides->what);
    }
}

static void end_maps(maps_t* maps) {
    free(maps->memory);
}

static void reduce_maps(sides_t* sides, MPI_Datatype type, MPI_Op op, int count) {
    sides->what = "reduce";
    for (int side = 0; side < 2; side++) {
        const int ranks = side == sides->side ? sides->size : sides->remote;
        for (int rank = 0; rank < ranks; rank++) {
            maps_t maps = begin_maps(sides, type, op, count);
            int root = rank;
            if (side == sides->side) {
                root = rank == sides->rank ? MPI_ROOT : MPI_PROC_NULL;
            }
            /* The same exception holds as for bcast. */
            const int none = MPI_PROC_NULL == root && (!sides->nonblocking || sides->counted);
            CALL(sides, Reduce, Ireduce, maps.send, maps.receive, none ? 0 : count, type, op, root);
            if (MPI_ROOT == root) {
                check_maps(sides, &maps, 0, count);
            }
            end_maps(&maps);
        }
    }
}

static void allreduce_maps(sides_t* sides, MPI_Datatype type, MPI_Op op, int count) {
    sides->what = "allreduce";
    maps_t maps = begin_maps(sides, type, op, count);
    CALL(sides, Allreduce, Iallreduce, maps.send, maps.receive, count, type, op);
    check_maps(sides, &maps, 0, count);
    end_maps(&maps);
}

/** Makes a page that is followed by one that nobody may read. */
static char* new_page(size_t bytes) {
    char* page = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(MAP_FAILED != page && 0 == mprotect(page + bytes, bytes, PROT_NONE), "a page");
    return page;
}

/** Both sides have the same number of elements; the last rank of a side gets the rest. */
static void reduce_scatter_maps(sides_t* sides, MPI_Datatype type, MPI_Op op, int count) {
    sides->what = "reduce_scatter";
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    char* page = new_page(page_bytes);
    /* The component must not read more of them than there are. */
    int* counts = (int*)(page + page_bytes) - sides->size;
    int before = 0;
    int left = count;
    for (int i = 0; i < sides->size; i++) {
        counts[i] = i == sides->size - 1 ? left : (i % 2) * (left / 2);
        left -= counts[i];
        before += i < sides->rank ? counts[i] : 0;
    }
    maps_t maps = begin_maps(sides, type, op, count);
    CALL(sides, Reduce_scatter, Ireduce_scatter, maps.send, maps.receive, counts, type, op);
    check_maps(sides, &maps, before, counts[sides->rank]);
    end_maps(&maps);
    munmap(page, 2 * page_bytes);
}

static void reduce_scatter_block_maps(sides_t* sides, MPI_Datatype type, MPI_Op op, int count) {
    sides->what = "reduce_scatter_block";
    const int block = count * sides->remote;
    maps_t maps = begin_maps(sides, type, op, block * sides->size);
    CALL(sides, Reduce_scatter_block, Ireduce_scatter_block, maps.send, maps.receive, block, type,
         op);
    check_maps(sides, &maps, block * sides->rank, block);
    end_maps(&maps);
}

/* ------------------------------------------------------------------ sums */

static void sums(sides_t* sides, int count) {
    sides->what = "sum";
    double* send = malloc(((size_t)count + 1) * sizeof *send);
    double* receive = malloc(((size_t)count + 1) * sizeof *receive);
    for (int i = 0; i < count; i++) {
        send[i] = sides->side + 2 * sides->rank + i;
        receive[i] = -1;
    }
    const int n = sides->remote;
    for (int repeated = 0; repeated < 3; repeated++) {
        CALL(sides, Allreduce, Iallreduce, send, receive, count, MPI_DOUBLE, MPI_SUM);
    }
    for (int i = 0; i < count; i++) {
        require(receive[i] == n * (1 - sides->side + i) + n * (n - 1), sides->what);
    }
    free(send);
    free(receive);
}

/** Makes columns of a matrix with two rows, so each element begins in the middle of earlier
 * ones. */
static MPI_Datatype new_column(int columns) {
    MPI_Datatype wide;
    MPI_Datatype column;
    MPI_Type_vector(INTS, 1, columns, MPI_INT, &wide);
    MPI_Type_create_resized(wide, 0, sizeof(int), &column);
    MPI_Type_commit(&column);
    MPI_Type_free(&wide);
    return column;
}

/** Makes pairs of which each lies below the one before. */
static MPI_Datatype new_backwards(MPI_Datatype pair) {
    MPI_Datatype backwards;
    MPI_Type_create_resized(pair, 0, -(MPI_Aint)(INTS * sizeof(int)), &backwards);
    MPI_Type_commit(&backwards);
    return backwards;
}

/** Makes pairs that follow something else in each element. */
static MPI_Datatype new_aside(MPI_Datatype pair) {
    const MPI_Aint displacement = sizeof(int);
    MPI_Datatype moved;
    MPI_Datatype aside;
    MPI_Type_create_hindexed_block(1, 1, &displacement, pair, &moved);
    MPI_Type_create_resized(moved, 0, 2 * sizeof(double), &aside);
    MPI_Type_commit(&aside);
    MPI_Type_free(&moved);
    return aside;
}

void test_reductions(sides_t* sides, int count) {
    MPI_Datatype strided;
    MPI_Datatype pair;
    MPI_Op op;
    MPI_Type_vector(INTS, 1, 3, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    MPI_Type_contiguous(INTS, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);
    /* It has as many columns as the longest vector has elements, which is that of
     * reduce_scatter_block. */
    MPI_Datatype column = new_column(count * sides->remote * sides->size + 1);
    MPI_Datatype backwards = new_backwards(pair);
    MPI_Datatype aside = new_aside(pair);
    const MPI_Datatype types[] = {pair, strided, column, backwards, aside};
    /* Open MPI's own fail for elements that go down, and give operators operands that are not
     * aligned. Nonblocking reductions of long vectors go to them. */
    const size_t ucg_alone = sides->plain || (sides->nonblocking && count > 100) ? 2 : 0;
    for (size_t i = 0; i < sizeof types / sizeof types[0] - ucg_alone; i++) {
        reduce_maps(sides, types[i], op, count);
        allreduce_maps(sides, types[i], op, count);
        reduce_scatter_maps(sides, types[i], op, count);
        reduce_scatter_block_maps(sides, types[i], op, count);
    }
    sums(sides, count);
    MPI_Op_free(&op);
    MPI_Type_free(&aside);
    MPI_Type_free(&backwards);
    MPI_Type_free(&column);
    MPI_Type_free(&strided);
    MPI_Type_free(&pair);
}
