/*
 * stencil: every point of a periodic grid becomes the mean of the 27 points around it and its own.
 * Each rank has a cube, and gets the faces, edges and corners around it from its 26 neighbors by
 * one MPI_Neighbor_alltoallv for each step.
 *
 * A plane wave stays one: each step multiplies it by the same factor, which every point is checked
 * by after the last step.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps.h"
#include "perf/option_value.h"

enum { AXES = 3, NEIGHBORS = 26, POINTS = 27, OWN = 13 /* Of the 27 directions: none. */ };

struct options {
    long size;
    long iterations;
    int csv;
};

static const char usage[] =
    "Usage: mpirun ... stencil [options]\n"
    "  -n, --size N         points along each edge of a rank's cube (default 16)\n"
    "  -i, --iterations N   steps (default 500), of which the first tenth is not timed\n"
    "      --csv            comma-separated, for perf/apps/run\n"
    "      --smoke          a small cube, a few steps\n"
    "  -h, --help\n"
    "Times are the slowest rank's. Exit status: 0 the result is right, 1 it is wrong, 2 wrong "
    "usage.\n";

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char** argv, struct options* o, int rank) {
    static const struct option longs[] = {{"size", 1, NULL, 'n'}, {"iterations", 1, NULL, 'i'},
                                          {"csv", 0, NULL, 'v'},  {"smoke", 0, NULL, 'k'},
                                          {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
    int c;
    int bad = 0;

    opterr = rank == 0;
    while ((c = getopt_long(argc, argv, "n:i:h", longs, NULL)) != -1) {
        switch (c) {
        case 'n': o->size = option_size("--size", optarg, 1, 1024, rank == 0); break;
        case 'i':
            o->iterations = option_size("--iterations", optarg, 1, 1L << 30, rank == 0);
            break;
        case 'v': o->csv = 1; break;
        case 'k':
            o->size = 5;
            o->iterations = 7;
            break;
        case 'h':
            if (rank == 0) {
                fputs(usage, stdout);
            }
            return 0;
        default: bad = 1;
        }
    }
    if (bad || optind < argc || o->size < 0 || o->iterations < 0) {
        if (rank == 0) {
            fputs(usage, stderr);
        }
        return 2;
    }
    return -1;
}

/* ------------------------------------------------------------------ the cube of a rank */

/* The points of a part of the cube: the first and the last along each axis. */
struct box {
    long first[AXES];
    long last[AXES];
};

struct grid {
    long n;      /* Points along an edge of the cube; the halo around it is one point thick. */
    double* now; /* Cube and halo. */
    double* next;
    double* sent; /* The blocks to send, one after the other. */
    double* received;
    struct box inner[NEIGHBORS]; /* Points that are sent in each direction. */
    struct box outer[NEIGHBORS]; /* Halo points where blocks sent in that direction arrive. */
    int counts[NEIGHBORS];
    int displs[NEIGHBORS];
    int total;
    int ranks[AXES];
    int place[AXES];
    MPI_Comm comm; /* A communicator with the 26 neighbors as its topology. */
};

static long at(const struct grid* g, long x, long y, long z) {
    return (x * (g->n + 2) + y) * (g->n + 2) + z;
}

/* Returns a component, which is -1, 0 or 1, of the direction with this number among 27. */
static int step(int direction, int axis) {
    static const int power[AXES] = {9, 3, 1};
    return direction / power[axis] % 3 - 1;
}

static void describe_block(struct grid* g, int block, int direction) {
    int axis;

    g->counts[block] = 1;
    for (axis = 0; axis < AXES; ++axis) {
        const int s = step(direction, axis);
        g->inner[block].first[axis] = s > 0 ? g->n : 1;
        g->inner[block].last[axis] = s < 0 ? 1 : g->n;
        g->outer[block].first[axis] = s < 0 ? g->n + 1 : s > 0 ? 0 : 1;
        g->outer[block].last[axis] = s < 0 ? g->n + 1 : s > 0 ? 0 : g->n;
        g->counts[block] *= s == 0 ? (int)g->n : 1;
    }
    g->displs[block] = g->total;
    g->total += g->counts[block];
}

/* Finds the ranks of the neighbors. What is sent one way arrives from the other. Where two
 * directions lead to one rank, or to this one, sources and destinations list them in one order. */
static void find_neighbors(struct grid* g, MPI_Comm world) {
    const int periodic[AXES] = {1, 1, 1};
    int to[NEIGHBORS];
    int from[NEIGHBORS];
    int rank, size, direction, axis, block = 0;
    MPI_Comm cart;

    MPI_Comm_size(world, &size);
    MPI_Dims_create(size, AXES, g->ranks);
    MPI_Cart_create(world, AXES, g->ranks, periodic, 0, &cart);
    MPI_Comm_rank(cart, &rank);
    MPI_Cart_coords(cart, rank, AXES, g->place);
    for (direction = 0; direction < POINTS; ++direction) {
        int up[AXES];
        int down[AXES];
        if (direction == OWN) {
            continue;
        }
        for (axis = 0; axis < AXES; ++axis) {
            up[axis] = g->place[axis] + step(direction, axis);
            down[axis] = g->place[axis] - step(direction, axis);
        }
        MPI_Cart_rank(cart, up, &to[block]);
        MPI_Cart_rank(cart, down, &from[block]);
        describe_block(g, block++, direction);
    }
    MPI_Dist_graph_create_adjacent(cart, NEIGHBORS, from, g->counts, NEIGHBORS, to, g->counts,
                                   MPI_INFO_NULL, 0, &g->comm);
    MPI_Comm_free(&cart);
}

/* Returns the value of a plane wave, with one period along each axis, so that opposite sides
 * match. */
static double wave(const struct grid* g, long x, long y, long z) {
    const long point[AXES] = {x, y, z};
    double angle = 0;
    int axis;

    for (axis = 0; axis < AXES; ++axis) {
        angle +=
            (double)(g->place[axis] * g->n + point[axis] - 1) / (double)(g->ranks[axis] * g->n);
    }
    return cos(2 * M_PI * angle);
}

/* Returns the factor by which a step multiplies the wave. */
static double factor(const struct grid* g) {
    double product = 1;
    int axis;

    for (axis = 0; axis < AXES; ++axis) {
        product *= (1 + 2 * cos(2 * M_PI / (double)(g->ranks[axis] * g->n))) / 3;
    }
    return product;
}

static void create(struct grid* g, long n, MPI_Comm world) {
    const size_t points = (size_t)((n + 2) * (n + 2) * (n + 2));
    long x, y, z;

    g->n = n;
    find_neighbors(g, world);
    g->now = allocate(points * sizeof(double));
    g->next = allocate(points * sizeof(double));
    g->sent = allocate((size_t)g->total * sizeof(double));
    g->received = allocate((size_t)g->total * sizeof(double));
    for (x = 1; x <= n; ++x) {
        for (y = 1; y <= n; ++y) {
            for (z = 1; z <= n; ++z) {
                g->now[at(g, x, y, z)] = wave(g, x, y, z);
            }
        }
    }
}

static void destroy(struct grid* g) {
    MPI_Comm_free(&g->comm);
    free(g->now);
    free(g->next);
    free(g->sent);
    free(g->received);
}

/* ------------------------------------------------------------------ steps */

/* Copies the points of a box to a block, or from it. */
static void copy_box(const struct grid* g, const struct box* box, double* block, int to_block) {
    long x, y, z;

    for (x = box->first[0]; x <= box->last[0]; ++x) {
        for (y = box->first[1]; y <= box->last[1]; ++y) {
            double* row = g->now + at(g, x, y, 0);
            for (z = box->first[2]; z <= box->last[2]; ++z) {
                if (to_block) {
                    *block++ = row[z];
                } else {
                    row[z] = *block++;
                }
            }
        }
    }
}

static double sum_around(const struct grid* g, long x, long y, long z) {
    double sum = 0;
    long i, j;

    for (i = x - 1; i <= x + 1; ++i) {
        for (j = y - 1; j <= y + 1; ++j) {
            const double* row = g->now + at(g, i, j, z);
            sum += row[-1] + row[0] + row[1];
        }
    }
    return sum;
}

static void compute(struct grid* g) {
    double* const done = g->next;
    long x, y, z;

    for (x = 1; x <= g->n; ++x) {
        for (y = 1; y <= g->n; ++y) {
            for (z = 1; z <= g->n; ++z) {
                done[at(g, x, y, z)] = sum_around(g, x, y, z) / POINTS;
            }
        }
    }
    g->next = g->now;
    g->now = done;
}

static void iterate(struct grid* g, struct phases* phases) {
    const double start = MPI_Wtime();
    double packed, exchanged, unpacked;
    int i;

    for (i = 0; i < NEIGHBORS; ++i) {
        copy_box(g, &g->inner[i], g->sent + g->displs[i], 1);
    }
    packed = MPI_Wtime();
    MPI_Neighbor_alltoallv(g->sent, g->counts, g->displs, MPI_DOUBLE, g->received, g->counts,
                           g->displs, MPI_DOUBLE, g->comm);
    exchanged = MPI_Wtime();
    for (i = 0; i < NEIGHBORS; ++i) {
        copy_box(g, &g->outer[i], g->received + g->displs[i], 0);
    }
    unpacked = MPI_Wtime();
    compute(g);
    phases_add(phases, "exchange", g->total * (long)sizeof(double), exchanged - packed);
    phases_add(phases, "pack", 0, packed - start + unpacked - exchanged);
    phases_add(phases, "compute", 0, MPI_Wtime() - unpacked);
}

/* Returns whether a point of this rank is wrong by more than rounding. */
static int is_wrong(const struct grid* g, long steps) {
    const double scale = pow(factor(g), (double)steps);
    int wrong = 0;
    long x, y, z;

    for (x = 1; x <= g->n; ++x) {
        for (y = 1; y <= g->n; ++y) {
            for (z = 1; z <= g->n; ++z) {
                const double expected = scale * wave(g, x, y, z);
                wrong |= !(fabs(g->now[at(g, x, y, z)] - expected) <= 1e-9);
            }
        }
    }
    return wrong;
}

static int run(const struct options* o, MPI_Comm world) {
    struct grid g = {0};
    struct phases phases = {.count = 0};
    struct phases untimed = {.count = 0};
    int rank, wrong;
    double start;
    long i;

    create(&g, o->size, world);
    MPI_Comm_rank(g.comm, &rank);
    if (rank == 0) {
        printf("# stencil: %d x %d x %d ranks, each with %ld points along an edge, %ld steps\n",
               g.ranks[0], g.ranks[1], g.ranks[2], g.n, o->iterations);
    }
    for (i = 0; i < o->iterations / 10; ++i) {
        iterate(&g, &untimed);
    }
    MPI_Barrier(g.comm);
    start = MPI_Wtime();
    for (; i < o->iterations; ++i) {
        iterate(&g, &phases);
    }
    phases_add(&phases, "total", 0, MPI_Wtime() - start);
    wrong = is_wrong(&g, o->iterations);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, g.comm);
    phases_print(&phases, "total", o->csv, wrong, g.comm);
    destroy(&g);
    return wrong;
}

int main(int argc, char** argv) {
    struct options o = {16, 500, 0};
    int rank, status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    status = parse_options(argc, argv, &o, rank);
    if (status < 0) {
        status = run(&o, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return status;
}
