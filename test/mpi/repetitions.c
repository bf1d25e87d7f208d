/*
 * Calls that repeat the one before but for their buffers, and calls that differ from it in one
 * argument: a walk of seeded steps through the collectives that have blocks for each rank. Every
 * result is checked, and so is the memory around it. Prints "walk ok" from rank 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum {
    RANKS_MAX = 8,
    COUNT_MAX = 6,                           /* Of ints to a block; always even. */
    SPACE = RANKS_MAX * (COUNT_MAX + 1) + 2, /* Of ints: blocks, and gaps of one int. */
    STEPS = 6000,
    UNTOUCHED = -1,
};

/** The arguments of a call, which are the same on all ranks. */
typedef struct {
    int function;
    int root;
    int in_place;
    int backwards;         /* Blocks lie in descending order of ranks. */
    int paired;            /* This rank's part is of pairs of ints, if it is that of `root`. */
    int counts[RANKS_MAX]; /* The first one is that of all where there are no vectors. */
} arguments_t;

typedef struct {
    MPI_Comm comm;
    int rank;
    int size;
    int step;
    MPI_Datatype pair;
} walk_t;

enum {
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHERV,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
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
           REDUCE_SCATTER == function;
}

/** Without vectors, and in reductions, one block follows the other. */
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

/** What rank `rank` has, or gets, at `i` of its block. */
static int number(const walk_t* walk, int rank, int i) {
    return 10000 * rank + 10 * walk->step + i;
}

static void fill(int* space, int value) {
    for (int i = 0; i < SPACE; i++) {
        space[i] = value;
    }
}

/** Writes the numbers of that rank. */
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

/** This rank's part of a gather or scatter, as its arguments say it. */
typedef struct {
    int count;
    MPI_Datatype type;
} part_t;

static part_t part_of(const walk_t* walk, const arguments_t* arguments, int count) {
    const int paired = arguments->paired && walk->rank == arguments->root;
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
        MPI_Gather(send, part.count, part.type, all, count, MPI_INT, arguments->root, walk->comm);
        break;
    case GATHERV:
        MPI_Gatherv(send, part.count, part.type, all, blocks.counts, blocks.displs, MPI_INT,
                    arguments->root, walk->comm);
        break;
    default:
        MPI_Allgatherv(send, part.count, part.type, all, blocks.counts, blocks.displs, MPI_INT,
                       walk->comm);
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
        MPI_Scatter(all, count, MPI_INT, receive, part.count, part.type, arguments->root,
                    walk->comm);
    } else {
        MPI_Scatterv(all, blocks.counts, blocks.displs, MPI_INT, receive, part.count, part.type,
                     arguments->root, walk->comm);
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
        MPI_Reduce_scatter(send, result, blocks.counts, MPI_INT, MPI_SUM, walk->comm);
    } else {
        MPI_Reduce_scatter_block(send, result, count, MPI_INT, MPI_SUM, walk->comm);
    }
    for (int i = 0; i < count; i++) {
        const int sum =
            walk->size * number(walk, walk->rank, i) + walk->size * (walk->size - 1) / 2;
        require(walk, result[i] == sum, "a sum");
    }
    require(walk, arguments->in_place || result[count] == UNTOUCHED, "what lies behind the sums");
}

static void call(const walk_t* walk, const arguments_t* arguments, int* mine, int* all) {
    switch (arguments->function) {
    case GATHER:
    case GATHERV:
    case ALLGATHERV: gather(walk, arguments, mine, all); break;
    case SCATTER:
    case SCATTERV: scatter(walk, arguments, mine, all); break;
    default: reduce_scatter(walk, arguments, mine, all);
    }
}

/* ------------------------------------------------------------------ the walk */

/** Below `limit`, the same on all ranks. */
static int draw(int limit) {
    static unsigned short state[3] = {2026, 11, 24};
    return (int)(nrand48(state) % limit);
}

/** Changes one argument, alike on all ranks. */
static void change_one(arguments_t* arguments, int size) {
    switch (draw(6)) {
    case 0: arguments->function = draw(KINDS); break;
    case 1: arguments->root = draw(size); break;
    case 2: arguments->in_place = !arguments->in_place; break;
    case 3: arguments->backwards = !arguments->backwards; break;
    case 4: arguments->paired = !arguments->paired; break;
    default: arguments->counts[draw(size)] = 2 * draw(COUNT_MAX / 2 + 1);
    }
}

int main(int argc, char** argv) {
    static int mine[2][SPACE];
    static int all[2][SPACE];
    arguments_t arguments = {.function = GATHERV, .counts = {2, 2, 2, 2, 2, 2, 2, 2}};
    walk_t walk = {.comm = MPI_COMM_WORLD};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(walk.comm, &walk.rank);
    MPI_Comm_size(walk.comm, &walk.size);
    require(&walk, walk.size <= RANKS_MAX, "the number of ranks");
    MPI_Type_contiguous(2, MPI_INT, &walk.pair);
    MPI_Type_commit(&walk.pair);
    for (; walk.step < STEPS; walk.step++) {
        if (0 == draw(4)) {
            change_one(&arguments, walk.size);
        }
        const int buffers = draw(2);
        call(&walk, &arguments, mine[buffers], all[buffers]);
    }
    MPI_Type_free(&walk.pair);
    if (0 == walk.rank) {
        printf("walk ok\n");
    }
    MPI_Finalize();
    return 0;
}
