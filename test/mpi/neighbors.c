/*
 * Neighbourhood collectives over topologies of all kinds. The program writes PREFIX.<rank> with a
 * digest of all memory that each call might have written, and neighbors.py compares the files of
 * two runs.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "differential.h"

static FILE* output;

void record(const char* name, uint64_t digest) {
    fprintf(output, "%s\texact\t%016llx\n", name, (unsigned long long)digest);
}

void name_case(char* name, const place_t* place, const char* format, ...) {
    va_list arguments;
    int length = snprintf(name, NAME_MAX_BYTES, "%s ", place->name);
    va_start(arguments, format);
    vsnprintf(name + length, NAME_MAX_BYTES - (size_t)length, format, arguments);
    va_end(arguments);
}

/* ------------------------------------------------------------------ edges */

/** One side of a rank's blocks: the ranks at the other ends, and the numbers of elements. */
typedef struct {
    int degree;
    int* peers; /**< MPI_PROC_NULL stands for no rank. */
    int* counts;
    int* displs;      /**< In elements, with gaps; the last block comes first. */
    MPI_Aint* places; /**< The same in bytes. */
    long span;        /**< The number of elements that the blocks cover. */
} side_t;

typedef struct {
    side_t out;
    side_t in;
} edges_t;

static side_t side_make(int degree) {
    const size_t entries = (size_t)(degree > 0 ? degree : 1);
    side_t side = {.degree = degree,
                   .peers = malloc(entries * sizeof *side.peers),
                   .counts = calloc(entries, sizeof *side.counts),
                   .displs = calloc(entries, sizeof *side.displs),
                   .places = calloc(entries, sizeof *side.places)};
    return side;
}

static void side_free(side_t* side) {
    free(side->peers);
    free(side->counts);
    free(side->displs);
    free(side->places);
}

static edges_t edges_of_cart(MPI_Comm comm) {
    int dimensions;
    MPI_Cartdim_get(comm, &dimensions);
    edges_t edges = {side_make(2 * dimensions), side_make(2 * dimensions)};
    for (int i = 0; i < dimensions; i++) {
        int below;
        int above;
        MPI_Cart_shift(comm, i, 1, &below, &above);
        edges.out.peers[2 * i] = edges.in.peers[2 * i] = below;
        edges.out.peers[2 * i + 1] = edges.in.peers[2 * i + 1] = above;
    }
    return edges;
}

static edges_t edges_of(MPI_Comm comm, int rank) {
    int kind;
    int in;
    int out;
    int weighted;
    MPI_Topo_test(comm, &kind);
    if (MPI_CART == kind) {
        return edges_of_cart(comm);
    }
    if (MPI_GRAPH == kind) {
        MPI_Graph_neighbors_count(comm, rank, &out);
        edges_t edges = {side_make(out), side_make(out)};
        MPI_Graph_neighbors(comm, rank, out, edges.out.peers);
        MPI_Graph_neighbors(comm, rank, out, edges.in.peers);
        return edges;
    }
    MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    edges_t edges = {side_make(out), side_make(in)};
    /* The weights are put where the lengths will be. */
    MPI_Dist_graph_neighbors(comm, in, edges.in.peers, edges.in.counts, out, edges.out.peers,
                             edges.out.counts);
    return edges;
}

static void edges_free(edges_t* edges) {
    side_free(&edges->out);
    side_free(&edges->in);
}

/** The number of elements that `from` gives to `to` on each of their edges; on some it is 0. */
static int length(int unit, int from, int to) {
    return 0 == (from + 2 * to) % 5 ? 0 : unit * (1 + (3 * from + to) % 3);
}

static void lay_out(side_t* side, int unit, int rank, int sends, MPI_Datatype type) {
    MPI_Aint lower;
    MPI_Aint extent;
    MPI_Type_get_extent(type, &lower, &extent);
    side->span = 0;
    for (int i = side->degree - 1; i >= 0; i--) {
        const int peer = side->peers[i];
        side->counts[i] = MPI_PROC_NULL == peer ? unit
                          : sends               ? length(unit, rank, peer)
                                                : length(unit, peer, rank);
        side->displs[i] = (int)side->span;
        side->places[i] = side->span * extent;
        side->span += side->counts[i] + 1;
    }
}

/* ------------------------------------------------------------------ the collectives */

typedef struct {
    const place_t* place;
    const layout_t* layout;
    edges_t edges;
    int unit;
    char name[NAME_MAX_BYTES];
    buffer_t send;
    buffer_t receive;
} case_t;

static void open_case(case_t* c, const char* collective, long sent, long received) {
    name_case(c->name, c->place, "%s %s n=%d", collective, c->layout->name, c->unit);
    c->send = buffer_make(c->layout->type, sent, seed_of(c->name, c->place->rank));
    c->receive = buffer_make(c->layout->type, received, seed_of(c->name, -1));
}

static void close_case(case_t* c) {
    record(c->name, buffer_digest(&c->receive) ^ buffer_digest(&c->send));
    buffer_free(&c->receive);
    buffer_free(&c->send);
}

/* The second call of the same kind is prepared, and the third one repeats it. */
enum { TIMES = 3 };

static void run_equal_blocks(case_t* c) {
    const MPI_Datatype type = c->layout->type;
    const long received = (long)c->unit * c->edges.in.degree;
    for (int i = 0; i < TIMES; i++) {
        open_case(c, "neighbor_allgather", c->unit, received);
        MPI_Neighbor_allgather(c->send.data, c->unit, type, c->receive.data, c->unit, type,
                               c->place->comm);
        close_case(c);
        open_case(c, "neighbor_alltoall", (long)c->unit * c->edges.out.degree, received);
        MPI_Neighbor_alltoall(c->send.data, c->unit, type, c->receive.data, c->unit, type,
                              c->place->comm);
        close_case(c);
    }
}

/** In an allgatherv the sender chooses the length of its block. */
static void run_allgatherv(case_t* c) {
    const MPI_Datatype type = c->layout->type;
    side_t in = side_make(c->edges.in.degree);
    for (int i = in.degree - 1; i >= 0; i--) {
        /* MPI_PROC_NULL gets a length as well. */
        in.counts[i] = c->unit * ((c->edges.in.peers[i] + 3) % 3);
        in.displs[i] = (int)in.span;
        in.span += in.counts[i] + 1;
    }
    const int own = c->unit * (c->place->rank % 3);
    for (int i = 0; i < TIMES; i++) {
        open_case(c, "neighbor_allgatherv", own, in.span);
        MPI_Neighbor_allgatherv(c->send.data, own, type, c->receive.data, in.counts, in.displs,
                                type, c->place->comm);
        close_case(c);
    }
    side_free(&in);
}

static void run_vectors_of(case_t* c) {
    const MPI_Datatype type = c->layout->type;
    side_t* out = &c->edges.out;
    side_t* in = &c->edges.in;
    lay_out(out, c->unit, c->place->rank, 1, type);
    lay_out(in, c->unit, c->place->rank, 0, type);
    for (int i = 0; i < TIMES; i++) {
        open_case(c, "neighbor_alltoallv", out->span, in->span);
        MPI_Neighbor_alltoallv(c->send.data, out->counts, out->displs, type, c->receive.data,
                               in->counts, in->displs, type, c->place->comm);
        close_case(c);
    }
}

static MPI_Datatype* repeat_type(MPI_Datatype type, int count) {
    MPI_Datatype* types = malloc((size_t)(count > 0 ? count : 1) * sizeof(MPI_Datatype));
    for (int i = 0; i < count; i++) {
        types[i] = type;
    }
    return types;
}

/** The displacements are relative to `origin`, which may be MPI_BOTTOM. */
static void run_alltoallw(case_t* c, int absolute) {
    side_t* out = &c->edges.out;
    side_t* in = &c->edges.in;
    MPI_Datatype* sent = repeat_type(c->layout->type, out->degree);
    MPI_Datatype* received = repeat_type(c->layout->type, in->degree);
    MPI_Aint send_origin = 0;
    MPI_Aint receive_origin = 0;
    lay_out(out, c->unit, c->place->rank, 1, c->layout->type);
    lay_out(in, c->unit, c->place->rank, 0, c->layout->type);
    open_case(c, absolute ? "neighbor_alltoallw absolute" : "neighbor_alltoallw", out->span,
              in->span);
    if (absolute) {
        MPI_Get_address(c->send.data, &send_origin);
        MPI_Get_address(c->receive.data, &receive_origin);
    }
    for (int i = 0; i < out->degree; i++) {
        out->places[i] += send_origin;
    }
    for (int i = 0; i < in->degree; i++) {
        in->places[i] += receive_origin;
    }
    MPI_Neighbor_alltoallw(absolute ? MPI_BOTTOM : c->send.data, out->counts, out->places, sent,
                           absolute ? MPI_BOTTOM : c->receive.data, in->counts, in->places,
                           received, c->place->comm);
    close_case(c);
    free(sent);
    free(received);
}

static void run_layout(case_t* c, const layout_t* layout) {
    static const int units[] = {1, 0, 5, 3000};
    const long edges_max = 4L * c->place->size;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        c->layout = layout;
        c->unit = units[i];
        if ((3L * c->unit + 1) * edges_max <= layout->elements_max) {
            run_equal_blocks(c);
            run_allgatherv(c);
            run_vectors_of(c);
            for (int j = 0; j < 2 * TIMES; j++) {
                run_alltoallw(c, j >= TIMES);
            }
        }
    }
}

static void run_place(const char* name, MPI_Comm comm) {
    static const layout_t predefined = {"predefined", MPI_INT, 1, 1 << 30};
    if (MPI_COMM_NULL == comm) {
        return;
    }
    place_t place = {.name = name, .comm = comm};
    MPI_Comm_rank(comm, &place.rank);
    MPI_Comm_size(comm, &place.size);
    forms_prepare(comm);
    case_t c = {.place = &place, .edges = edges_of(comm, place.rank)};
    run_layout(&c, &predefined);
    for (int i = 0; i < LAYOUT_COUNT; i++) {
        run_layout(&c, &layouts[i]);
    }
    edges_free(&c.edges);
    MPI_Comm_free(&comm);
}

/* ------------------------------------------------------------------ topologies */

static void run_cart(int count, const int* dims, int periods) {
    char name[64];
    int periodic[3];
    MPI_Comm comm;
    for (int i = 0; i < count; i++) {
        periodic[i] = periods >> i & 1;
    }
    snprintf(name, sizeof name, "cart%d_%dx%dx%d_%d", count, count > 0 ? dims[0] : 0,
             count > 1 ? dims[1] : 0, count > 2 ? dims[2] : 0, periods);
    MPI_Cart_create(MPI_COMM_WORLD, count, dims, periodic, 0, &comm);
    run_place(name, comm);
}

/** Runs over all grids of one to three dimensions whose sizes are factors of the number of
 * ranks, periodic or not. */
static void run_carts(int size) {
    const int line[] = {size};
    for (int periods = 0; periods < 2; periods++) {
        run_cart(1, line, periods);
    }
    for (int first = 1; first <= size; first++) {
        if (0 != size % first) {
            continue;
        }
        const int plane[] = {first, size / first};
        for (int periods = 0; periods < 4; periods++) {
            run_cart(2, plane, periods);
        }
        for (int second = 1; second <= size / first; second++) {
            if (0 == size / first % second) {
                const int cube[] = {first, second, size / first / second};
                run_cart(3, cube, 7);
                run_cart(3, cube, 2);
            }
        }
    }
}

/** How many edges lead from one rank to another. All ranks compute the same number. */
static int edges_between(int seed, int from, int to, int size) {
    uint64_t state = (uint64_t)((seed * size + from) * size + to);
    return (int)(next_random(&state) % 7) - 3; /* Many pairs have no edge. */
}

static void run_dist_graph(int seed, int rank, int size) {
    char name[32];
    int* out = malloc(4 * (size_t)size * sizeof *out);
    int* in = malloc(4 * (size_t)size * sizeof *in);
    int* weights = calloc(4 * (size_t)size, sizeof *weights);
    int degrees[2] = {0, 0};
    uint64_t state = seed_of("shuffle", rank) + (uint64_t)seed;
    MPI_Comm comm;
    for (int peer = 0; peer < size; peer++) {
        for (int i = 0; i < edges_between(seed, rank, peer, size); i++) {
            out[degrees[0]++] = peer;
        }
        for (int i = 0; i < edges_between(seed, peer, rank, size); i++) {
            in[degrees[1]++] = peer;
        }
    }
    /* Each rank names its edges in an order of its own. */
    for (int i = degrees[0] - 1; i > 0; i--) {
        const int other = (int)(next_random(&state) % (uint64_t)(i + 1));
        const int kept = out[i];
        out[i] = out[other];
        out[other] = kept;
    }
    snprintf(name, sizeof name, "dist_graph%d", seed);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degrees[1], in, weights, degrees[0], out,
                                   weights, MPI_INFO_NULL, 0, &comm);
    run_place(name, comm);
    free(weights);
    free(in);
    free(out);
}

/** The graph is symmetric, as neighbourhood collectives require; some pairs have several edges,
 * and some edges lead from a rank to itself. */
static void run_graph(int seed, int size) {
    char name[32];
    int* index = malloc((size_t)size * sizeof *index);
    int* peers = malloc(4 * (size_t)size * (size_t)size * sizeof *peers);
    int count = 0;
    MPI_Comm comm;
    for (int rank = 0; rank < size; rank++) {
        for (int peer = 0; peer < size; peer++) {
            const int low = rank < peer ? rank : peer;
            const int edges = edges_between(seed, low, rank + peer - low, size);
            for (int i = 0; i < edges; i++) {
                peers[count++] = peer;
            }
        }
        index[rank] = count;
    }
    snprintf(name, sizeof name, "graph%d", seed);
    MPI_Graph_create(MPI_COMM_WORLD, size, index, peers, 0, &comm);
    run_place(name, comm);
    free(peers);
    free(index);
}

/** A ring of all processes but the last one, which has no neighbours: it passes counts of zero,
 * and MPI lets Open MPI return from some functions without calling a component. */
static void run_ring_beside(int rank, int size) {
    enum { ROUNDS = 3 };
    const int ring = size - 1;
    const int degree = rank < ring ? 1 : 0;
    const int before = degree > 0 ? (rank + ring - 1) % ring : 0;
    const int after = degree > 0 ? (rank + 1) % ring : 0;
    const int weight = 1;
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, &before, &weight, degree, &after,
                                   &weight, MPI_INFO_NULL, 0, &comm);
    forms_prepare(comm);
    for (int i = 0; i < ROUNDS; i++) {
        const int mine = 100 * i + rank;
        int taken[3] = {-1, -1, -1};
        MPI_Neighbor_alltoall(&mine, degree, MPI_INT, &taken[0], degree, MPI_INT, comm);
        MPI_Neighbor_allgather(&mine, degree, MPI_INT, &taken[1], degree, MPI_INT, comm);
        MPI_Allreduce(&mine, &taken[2], 1, MPI_INT, MPI_SUM, comm);
        record("a ring, and a process beside it", (uint64_t)(uint32_t)taken[0] << 40 ^
                                                      (uint64_t)(uint32_t)taken[1] << 20 ^
                                                      (uint64_t)(uint32_t)taken[2]);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
    int rank;
    int size;
    char path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2) {
        fprintf(stderr, "usage: neighbors OUTPUT-PREFIX\n");
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
    layouts_make();
    run_carts(size);
    for (int seed = 0; seed < 6; seed++) {
        run_dist_graph(seed, rank, size);
        run_graph(seed, size);
    }
    if (size > 1) {
        run_ring_beside(rank, size);
    }
    layouts_free();
    fclose(output);
    MPI_Finalize();
    return 0;
}
