/*
 * Calls that repeat the one before except for their buffers, and calls that differ from it in one
 * argument: a seeded random walk through the blocking and nonblocking collectives that have blocks
 * for each rank, or for each neighbor on a ring. Every result is checked, and so is the memory
 * around it. Prints "walk ok" from rank 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum {
    RANKS_MAX = 8,
    /* The number of ints of a block; it is always even. */
    COUNT_MAX = 6,
    SPACE = 2 * (RANKS_MAX * (COUNT_MAX + 1) + 2), /* In ints: for wide blocks with gaps of one. */
    STEPS = 10000,
    SIDES = 2, /* A ring's neighbors: below and above. */
    UNTOUCHED = -1,
};

/** The arguments of a call, which are the same on all ranks. */
typedef struct {
    int function;
    int root;
    int in_place;
    int backwards; /* Blocks lie in descending order of ranks. */
    int unlike;    /* The part of rank `root` is of another type: pairs, or ints with gaps. */
    int counts[RANKS_MAX]; /* Where there are no vectors, the first one is that of all ranks. */
} arguments_t;

typedef struct {
    MPI_Comm comm;
    MPI_Comm ring;
    int rank;
    int size;
    int step;
    int nonblocking; /* Whether the call of this step is nonblocking. */
    MPI_Datatype pair;
    MPI_Datatype wide; /* An int and room for another one. */
} walk_t;

enum {
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHERV,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    NEIGHBOR_ALLGATHER,
    NEIGHBOR_ALLGATHERV,
    NEIGHBOR_ALLTOALL,
    NEIGHBOR_ALLTOALLV,
    NEIGHBOR_ALLTOALLW,
    ALLTOALLV,
    ALLTOALLW,
    KINDS
};

static void require(const walk_t* walk, int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "repetitions: rank %d: step %d: wrong: %s\n", walk->rank, walk->step, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* ------------------------------------------------------------------ data */

/** The blocks of a call. */
typedef struct {
    int counts[RANKS_MAX];
    int displs[RANKS_MAX];
    int total;
} blocks_t;

static int has_vectors(int function) {
    return GATHERV == function || SCATTERV == function || ALLGATHERV == function ||
           REDUCE_SCATTER == function || NEIGHBOR_ALLGATHERV == function ||
           NEIGHBOR_ALLTOALLV <= function;
}

/** Without vectors, and in reductions, the blocks follow one another without gaps. */
static blocks_t lay_out(const arguments_t* arguments, int size) {
    const int vectors = has_vectors(arguments->function);
    const int dense = !vectors || REDUCE_SCATTER == arguments->function;
    blocks_t blocks = {.total = 0};
    int end = dense ? 0 : 1;
    for (int i = 0; i < size; i++) {
        const int rank = !dense && arguments->backwards ? size - 1 - i : i;
        blocks.counts[rank] = arguments->counts[vectors ? rank : 0];
        blocks.displs[rank] = end;
        end += blocks.counts[rank] + (dense ? 0 : 1);
        blocks.total += blocks.counts[rank];
    }
    return blocks;
}

/** The number that `rank` contributes, or gets, at `i` of its block. */
static int number(const walk_t* walk, int rank, int i) {
    return 10000 * rank + 10 * walk->step + i;
}

static void fill(int* space, int value) {
    for (int i = 0; i < SPACE; i++) {
        space[i] = value;
    }
}

/** Writes the numbers of rank `rank`. */
static void write_block(const walk_t* walk, int* target, int rank, int count) {
    for (int i = 0; i < count; i++) {
        target[i] = number(walk, rank, i);
    }
}

static void write_blocks(const walk_t* walk, int* space, const blocks_t* blocks) {
    fill(space, UNTOUCHED);
    for (int rank = 0; rank < walk->size; rank++) {
        write_block(walk, space + blocks->displs[rank], rank, blocks->counts[rank]);
    }
}

static void require_same(const walk_t* walk, const int* space, const int* expected,
                         const char* what) {
    require(walk, 0 == memcmp(space, expected, SPACE * sizeof *space), what);
}

/* ------------------------------------------------------------------ calls */

/** Calls the blocking or the nonblocking function of MPI with these arguments. */
#define CALL(walk, blocking, nonblocking_, ...)                                                    \
    do {                                                                                           \
        if ((walk)->nonblocking) {                                                                 \
            MPI_Request request;                                                                   \
            MPI_##nonblocking_(__VA_ARGS__, &request);                                             \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                                 \
        } else {                                                                                   \
            MPI_##blocking(__VA_ARGS__);                                                           \
        }                                                                                          \
    } while (0)

/** This rank's part of a gather or scatter as it is passed to MPI. */
typedef struct {
    int count;
    MPI_Datatype type;
} part_t;

static part_t part_of(const walk_t* walk, const arguments_t* arguments, int count) {
    const int paired = arguments->unlike && walk->rank == arguments->root;
    return (part_t){paired ? count / 2 : count, paired ? walk->pair : MPI_INT};
}

static void gather(const walk_t* walk, const arguments_t* arguments, int* mine, int* all) {
    const blocks_t blocks = lay_out(arguments, walk->size);
    const int count = blocks.counts[walk->rank];
    const int everybody = ALLGATHERV == arguments->function;
    const int receives = everybody || walk->rank == arguments->root;
    const int in_place = arguments->in_place && receives;
    const part_t part = part_of(walk, arguments, count);
    int expected[SPACE];
    fill(all, UNTOUCHED);
    write_block(walk, in_place ? all + blocks.displs[walk->rank] : mine, walk->rank, count);
    const void* send = in_place ? MPI_IN_PLACE : mine;
    switch (arguments->function) {
    case GATHER:
        CALL(walk, Gather, Igather, send, part.count, part.type, all, count, MPI_INT,
             arguments->root, walk->comm);
        break;
    case GATHERV:
        CALL(walk, Gatherv, Igatherv, send, part.count, part.type, all, blocks.counts,
             blocks.displs, MPI_INT, arguments->root, walk->comm);
        break;
    default:
        CALL(walk, Allgatherv, Iallgatherv, send, part.count, part.type, all, blocks.counts,
             blocks.displs, MPI_INT, walk->comm);
    }
    fill(expected, UNTOUCHED);
    if (receives) {
        write_blocks(walk, expected, &blocks);
    }
    require_same(walk, all, expected, "what was gathered");
}

static void scatter(const walk_t* walk, const arguments_t* arguments, int* mine, int* all) {
    const blocks_t blocks = lay_out(arguments, walk->size);
    const int count = blocks.counts[walk->rank];
    const int in_place = arguments->in_place && walk->rank == arguments->root;
    const part_t part = part_of(walk, arguments, count);
    int expected[SPACE];
    fill(mine, UNTOUCHED);
    fill(all, UNTOUCHED);
    if (walk->rank == arguments->root) {
        write_blocks(walk, all, &blocks);
    }
    void* receive = in_place ? MPI_IN_PLACE : mine;
    if (SCATTER == arguments->function) {
        CALL(walk, Scatter, Iscatter, all, count, MPI_INT, receive, part.count, part.type,
             arguments->root, walk->comm);
    } else {
        CALL(walk, Scatterv, Iscatterv, all, blocks.counts, blocks.displs, MPI_INT, receive,
             part.count, part.type, arguments->root, walk->comm);
    }
    fill(expected, UNTOUCHED);
    if (!in_place) {
        write_block(walk, expected, walk->rank, count);
    }
    require_same(walk, mine, expected, "what was scattered");
}

static void reduce_scatter(const walk_t* walk, const arguments_t* arguments, int* mine, int* all) {
    const blocks_t blocks = lay_out(arguments, walk->size);
    const int count = blocks.counts[walk->rank];
    int* result = arguments->in_place ? all : mine;
    const void* send = arguments->in_place ? MPI_IN_PLACE : all;
    fill(mine, UNTOUCHED);
    write_blocks(walk, all, &blocks);
    for (int i = 0; i < blocks.total; i++) {
        all[i] += walk->rank;
    }
    if (REDUCE_SCATTER == arguments->function) {
        CALL(walk, Reduce_scatter, Ireduce_scatter, send, result, blocks.counts, MPI_INT, MPI_SUM,
             walk->comm);
    } else {
        CALL(walk, Reduce_scatter_block, Ireduce_scatter_block, send, result, count, MPI_INT,
             MPI_SUM, walk->comm);
    }
    for (int i = 0; i < count; i++) {
        const int sum =
            walk->size * number(walk, walk->rank, i) + walk->size * (walk->size - 1) / 2;
        require(walk, result[i] == sum, "a sum");
    }
    require(walk, arguments->in_place || result[count] == UNTOUCHED, "what lies behind the sums");
}

/** The blocks of both neighbors. */
typedef struct {
    int counts[SIDES];
    int displs[SIDES];
    MPI_Aint places[SIDES];
    MPI_Datatype types[SIDES];
} sides_t;

static sides_t lay_out_sides(const arguments_t* arguments, int below, int above,
                             MPI_Datatype type) {
    const int gap = has_vectors(arguments->function) ? 1 : 0;
    sides_t sides = {.counts = {below, above}, .types = {type, type}};
    int end = gap;
    for (int i = 0; i < SIDES; i++) {
        const int side = 0 != gap && arguments->backwards ? 1 - i : i;
        sides.displs[side] = end;
        sides.places[side] = 2 * (MPI_Aint)sizeof(int) * end; /* Wide blocks have room as well. */
        end += sides.counts[side] + gap;
    }
    return sides;
}

/** Writes the numbers of the block on that side, at the place that a call has for it. */
static void write_side(const walk_t* walk, const arguments_t* arguments, int* space,
                       const sides_t* sides, int side, int sender) {
    const int stride = sides->types[side] == walk->wide ? 2 : 1;
    int* block = space + (NEIGHBOR_ALLTOALLW == arguments->function
                              ? sides->places[side] / (MPI_Aint)sizeof(int)
                              : sides->displs[side] * stride);
    for (int i = 0; i < sides->counts[side]; i++) {
        block[i * stride] = number(walk, sender, i);
    }
}

static int neighbor(const walk_t* walk, int side) {
    return (walk->rank + (0 == side ? walk->size - 1 : 1)) % walk->size;
}

static int count_of(const arguments_t* arguments, int rank) {
    return arguments->counts[has_vectors(arguments->function) ? rank : 0];
}

static void call_neighbors(const walk_t* walk, int function, const part_t* part, const int* mine,
                           const sides_t* out, int* all, const sides_t* in) {
    switch (function) {
    case NEIGHBOR_ALLGATHER:
        CALL(walk, Neighbor_allgather, Ineighbor_allgather, mine, part->count, part->type, all,
             in->counts[0], MPI_INT, walk->ring);
        break;
    case NEIGHBOR_ALLGATHERV:
        CALL(walk, Neighbor_allgatherv, Ineighbor_allgatherv, mine, part->count, part->type, all,
             in->counts, in->displs, MPI_INT, walk->ring);
        break;
    case NEIGHBOR_ALLTOALL:
        CALL(walk, Neighbor_alltoall, Ineighbor_alltoall, mine, part->count, part->type, all,
             in->counts[0], MPI_INT, walk->ring);
        break;
    case NEIGHBOR_ALLTOALLV:
        CALL(walk, Neighbor_alltoallv, Ineighbor_alltoallv, mine, out->counts, out->displs,
             part->type, all, in->counts, in->displs, MPI_INT, walk->ring);
        break;
    default:
        CALL(walk, Neighbor_alltoallw, Ineighbor_alltoallw, mine, out->counts, out->places,
             out->types, all, in->counts, in->places, in->types, walk->ring);
    }
}

/** Each rank gives the same number to both neighbors. What comes from below was sent up there. */
static void exchange(const walk_t* walk, const arguments_t* arguments, int* mine, int* all) {
    const int gathers = arguments->function <= NEIGHBOR_ALLGATHERV;
    const int count = count_of(arguments, walk->rank);
    const int unlike = arguments->unlike && walk->rank == arguments->root;
    const part_t part = {count, unlike ? walk->wide : MPI_INT};
    const sides_t out = lay_out_sides(arguments, count, count, part.type);
    const sides_t one = {.counts = {count}, .types = {part.type}};
    const sides_t in = lay_out_sides(arguments, count_of(arguments, neighbor(walk, 0)),
                                     count_of(arguments, neighbor(walk, 1)), MPI_INT);
    int expected[SPACE];
    fill(mine, UNTOUCHED);
    fill(all, UNTOUCHED);
    fill(expected, UNTOUCHED);
    for (int side = 0; side < (gathers ? 1 : SIDES); side++) {
        write_side(walk, arguments, mine, gathers ? &one : &out, side, SIDES * walk->rank + side);
    }
    for (int side = 0; side < SIDES; side++) {
        const int given = gathers ? 0 : 1 - side;
        write_side(walk, arguments, expected, &in, side, SIDES * neighbor(walk, side) + given);
    }
    call_neighbors(walk, arguments->function, &part, mine, &out, all, &in);
    require_same(walk, all, expected, "what came from neighbors");
}

/** The number of elements that one rank sends to another. */
static int between(int sender, int receiver) {
    return RANKS_MAX * sender + receiver;
}

/** The displacements of a rank's blocks in bytes, and one type for all blocks. */
typedef struct {
    int bytes[RANKS_MAX];
    MPI_Datatype types[RANKS_MAX];
} described_t;

static described_t describe(const blocks_t* blocks, int size, MPI_Datatype type, int extent) {
    described_t described;
    for (int rank = 0; rank < size; rank++) {
        described.bytes[rank] = blocks->displs[rank] * extent;
        described.types[rank] = type;
    }
    return described;
}

static void call_all(const walk_t* walk, int function, const void* send, const blocks_t* blocks,
                     MPI_Datatype type, int* all) {
    const int extent = (int)sizeof(int) * (type == walk->wide ? 2 : 1);
    const described_t out = describe(blocks, walk->size, type, extent);
    const described_t in = describe(blocks, walk->size, MPI_INT, (int)sizeof(int));
    if (ALLTOALLV == function) {
        CALL(walk, Alltoallv, Ialltoallv, send, blocks->counts, blocks->displs, type, all,
             blocks->counts, blocks->displs, MPI_INT, walk->comm);
    } else {
        CALL(walk, Alltoallw, Ialltoallw, send, blocks->counts, out.bytes, out.types, all,
             blocks->counts, in.bytes, in.types, walk->comm);
    }
}

/** The two blocks between two ranks have the same length, as MPI_IN_PLACE requires. */
static void exchange_all(const walk_t* walk, const arguments_t* arguments, int* mine, int* all) {
    const int unlike = arguments->unlike && walk->rank == arguments->root;
    const int stride = unlike && !arguments->in_place ? 2 : 1;
    arguments_t own = *arguments;
    int expected[SPACE];
    for (int peer = 0; peer < walk->size; peer++) {
        own.counts[peer] = arguments->counts[(walk->rank + peer) % walk->size];
    }
    const blocks_t blocks = lay_out(&own, walk->size);
    fill(mine, UNTOUCHED);
    fill(all, UNTOUCHED);
    fill(expected, UNTOUCHED);
    for (int peer = 0; peer < walk->size; peer++) {
        int* block = (arguments->in_place ? all : mine) + stride * blocks.displs[peer];
        for (int i = 0; i < blocks.counts[peer]; i++) {
            block[stride * i] = number(walk, between(walk->rank, peer), i);
        }
        write_block(walk, expected + blocks.displs[peer], between(peer, walk->rank),
                    blocks.counts[peer]);
    }
    call_all(walk, arguments->function, arguments->in_place ? MPI_IN_PLACE : mine, &blocks,
             2 == stride ? walk->wide : MPI_INT, all);
    require_same(walk, all, expected, "what came from all ranks");
}

static void call(const walk_t* walk, const arguments_t* arguments, int* mine, int* all) {
    switch (arguments->function) {
    case GATHER:
    case GATHERV:
    case ALLGATHERV: gather(walk, arguments, mine, all); break;
    case SCATTER:
    case SCATTERV: scatter(walk, arguments, mine, all); break;
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK: reduce_scatter(walk, arguments, mine, all); break;
    case ALLTOALLV:
    case ALLTOALLW: exchange_all(walk, arguments, mine, all); break;
    default: exchange(walk, arguments, mine, all);
    }
}

/* ------------------------------------------------------------------ the walk */

/** A number below `limit`, the same on all ranks. */
static int draw(int limit) {
    static unsigned short state[3] = {2026, 11, 24};
    return (int)(nrand48(state) % limit);
}

/** The first calls of a communicator are Open MPI's own. Those of 4.1 that are nonblocking mix
 * up the edges of a ring on which both neighbors are the same rank. */
static int may_be_nonblocking(const walk_t* walk, int function) {
    return walk->size > SIDES || function < NEIGHBOR_ALLGATHER || function > NEIGHBOR_ALLTOALLW;
}

/** Changes one argument, alike on all ranks. */
static void change_one(arguments_t* arguments, int size) {
    switch (draw(6)) {
    case 0: arguments->function = draw(KINDS); break;
    case 1: arguments->root = draw(size); break;
    case 2: arguments->in_place = !arguments->in_place; break;
    case 3: arguments->backwards = !arguments->backwards; break;
    case 4: arguments->unlike = !arguments->unlike; break;
    default: arguments->counts[draw(size)] = 2 * draw(COUNT_MAX / 2 + 1);
    }
}

int main(int argc, char** argv) {
    static int mine[2][SPACE];
    static int all[2][SPACE];
    arguments_t arguments = {.function = GATHERV, .counts = {2, 2, 2, 2, 2, 2, 2, 2}};
    const int periodic = 1;
    walk_t walk = {.comm = MPI_COMM_WORLD};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(walk.comm, &walk.rank);
    MPI_Comm_size(walk.comm, &walk.size);
    require(&walk, walk.size <= RANKS_MAX, "the number of ranks");
    MPI_Type_contiguous(2, MPI_INT, &walk.pair);
    MPI_Type_commit(&walk.pair);
    MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &walk.wide);
    MPI_Type_commit(&walk.wide);
    MPI_Cart_create(walk.comm, 1, &walk.size, &periodic, 0, &walk.ring);
    for (; walk.step < STEPS; walk.step++) {
        if (0 == draw(4)) {
            change_one(&arguments, walk.size);
        }
        const int buffers = draw(2);
        walk.nonblocking = draw(2) && may_be_nonblocking(&walk, arguments.function);
        call(&walk, &arguments, mine[buffers], all[buffers]);
    }
    MPI_Comm_free(&walk.ring);
    MPI_Type_free(&walk.wide);
    MPI_Type_free(&walk.pair);
    if (0 == walk.rank) {
        printf("walk ok\n");
    }
    MPI_Finalize();
    return 0;
}
