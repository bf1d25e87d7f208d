/*
 * barnes_hut: how the tree of the Barnes-Hut method is built in parallel.
 *
 * Section 3.7 of Li, Hoefler, Snir, "NUMA-aware shared-memory collective communication for MPI":
 * ranks compute the local costs of subspaces, an allreduce makes them global, and the subspaces
 * that are fat are split, until none is: allreduces of many lengths. See tree.h.
 */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps.h"
#include "perf/option_value.h"
#include "tree.h"

struct options {
    long bodies;
    long leaf;
    long builds;
    int warmup; /* Builds that precede those that are timed. */
    long seed;
    enum distribution distribution;
    int csv;
};

static const char usage[] =
    "Usage: mpirun ... barnes_hut [options]\n"
    "  -n, --bodies N             of all ranks together (default 64k)\n"
    "  -d, --distribution NAME    plummer (default) or uniform\n"
    "  -l, --leaf N               a subspace with more bodies is fat and is split (default 32)\n"
    "  -i, --iterations N         builds of the tree (default 10)\n"
    "  -w, --no-warmup            time the first build too, in which libraries set things up\n"
    "  -s, --seed N               of the bodies (default 1)\n"
    "      --csv                  comma-separated, for perf/apps/run\n"
    "      --smoke                few bodies, two builds\n"
    "  -h, --help\n"
    "Rows \"allreduce\" are by length: from that many bytes to below twice that. Times are the "
    "slowest\n"
    "rank's. Exit status: 0 the tree is right, 1 it is wrong, 2 wrong usage.\n";

static int parse_distribution(struct options* o, const char* name) {
    o->distribution = strcmp(name, "uniform") == 0 ? UNIFORM : PLUMMER;
    return strcmp(name, "uniform") != 0 && strcmp(name, "plummer") != 0;
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char** argv, struct options* o, int rank) {
    static const struct option longs[] = {
        {"bodies", 1, NULL, 'n'},    {"distribution", 1, NULL, 'd'},
        {"leaf", 1, NULL, 'l'},      {"iterations", 1, NULL, 'i'},
        {"seed", 1, NULL, 's'},      {"csv", 0, NULL, 'v'},
        {"no-warmup", 0, NULL, 'w'}, {"smoke", 0, NULL, 'k'},
        {"help", 0, NULL, 'h'},      {NULL, 0, NULL, 0}};
    int c;
    int bad = 0;

    opterr = rank == 0;
    while ((c = getopt_long(argc, argv, "n:d:l:i:s:wh", longs, NULL)) != -1) {
        switch (c) {
        case 'n': o->bodies = option_size("--bodies", optarg, 1, 1L << 30, rank == 0); break;
        case 'd': bad |= parse_distribution(o, optarg); break;
        case 'l': o->leaf = option_size("--leaf", optarg, 1, 1L << 30, rank == 0); break;
        case 'i': o->builds = option_size("--iterations", optarg, 1, 1L << 30, rank == 0); break;
        case 's': o->seed = option_size("--seed", optarg, 1, 1L << 40, rank == 0); break;
        case 'w': o->warmup = 0; break;
        case 'v': o->csv = 1; break;
        case 'k':
            o->bodies = 3001;
            o->builds = 2;
            break;
        case 'h':
            if (rank == 0) {
                fputs(usage, stdout);
            }
            return 0;
        default: bad = 1;
        }
    }
    if (bad || optind < argc || o->bodies < 0 || o->leaf < 0 || o->builds < 0 || o->seed < 0) {
        if (rank == 0) {
            fputs(usage, stderr);
        }
        return 2;
    }
    return -1;
}

static int same_on_all(uint64_t value, MPI_Comm comm) {
    uint64_t least, most;

    MPI_Allreduce(&value, &least, 1, MPI_UINT64_T, MPI_MIN, comm);
    MPI_Allreduce(&value, &most, 1, MPI_UINT64_T, MPI_MAX, comm);
    return least == most;
}

static int inside(const struct node* n, const double* position) {
    int axis;

    for (axis = 0; axis < 3; ++axis) {
        /* Centres are rounded once per level. */
        if (fabs(position[axis] - n->centre[axis]) > n->half * (1 + 0x1p-20)) {
            return 0;
        }
    }
    return 1;
}

static int complain(const char* what, int rank) {
    fprintf(stderr, "barnes_hut: rank %d: %s\n", rank, what);
    return 1;
}

/* Returns whether the tree is wrong. Every body must be in the leaf that its position leads to,
 * the leaves together must hold all bodies and all mass, and all ranks must have the same tree.
 * Collective; the result is the same on all ranks. */
static int is_wrong(const struct tree* t, const struct bodies* b, const struct options* o,
                    const struct tree_facts* facts, MPI_Comm comm) {
    int wrong = 0;
    int rank;
    long i;

    MPI_Comm_rank(comm, &rank);
    for (i = 0; i < b->count && !wrong; ++i) {
        const struct node* n = &t->nodes[b->node[i]];
        if (b->node[i] != tree_find(t, b->position[i]) || !inside(n, b->position[i])) {
            wrong = complain("a body is not in its leaf", rank);
        }
    }
    if (facts->bodies != (double)o->bodies) {
        wrong = complain("the leaves do not hold every body exactly once", rank);
    }
    if (fabs(t->nodes[0].moment[0] - 1) > 1e-12 * (double)o->bodies) {
        wrong = complain("masses do not sum to the whole", rank);
    }
    if (!same_on_all(facts->all, comm)) {
        wrong = complain("the tree is not the same on all ranks", rank);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, comm);
    return wrong;
}

static int run(const struct options* o, MPI_Comm comm) {
    struct phases phases = {0};
    struct tree tree = {0};
    struct tree_facts facts;
    struct bodies bodies;
    int rank, ranks, wrong;
    long i;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    bodies = bodies_create(o->bodies, o->distribution, (uint64_t)o->seed, rank, ranks);
    for (i = -o->warmup; i < o->builds; ++i) {
        if (i == 0) {
            phases.count = 0;
        }
        MPI_Barrier(comm);
        tree_build(&tree, &bodies, (double)o->leaf, &phases, comm);
    }
    facts = tree_examine(&tree, (double)o->leaf);
    wrong = is_wrong(&tree, &bodies, o, &facts, comm);
    if (rank == 0) {
        printf("# barnes_hut: %ld bodies (%s), %d ranks, %ld builds\n"
               "# tree: %d nodes, %d leaves, depth %d, %d leaves over %ld bodies, shape %016" PRIx64
               "\n",
               o->bodies, o->distribution == UNIFORM ? "uniform" : "plummer", ranks, o->builds,
               tree.count, facts.leaves, facts.depth, facts.over_full, o->leaf, facts.shape);
    }
    phases_print(&phases, "build", o->csv, wrong, comm);
    tree_free(&tree);
    bodies_free(&bodies);
    return wrong;
}

int main(int argc, char** argv) {
    struct options o = {64L << 10, 32, 10, 1, 1, PLUMMER, 0};
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
