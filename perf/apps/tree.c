#include "tree.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most nodes: MPI counts the moments of all leaves, four each, in an int. */
enum { MAX_NODES = INT_MAX / 4 };

/* One build of the tree, with the seconds of its allreduces so far. */
struct build {
    struct tree* tree;
    struct bodies* bodies;
    struct phases* phases;
    double allreduces;
    MPI_Comm comm;
};

/* Returns the length rounded down to a power of two of bytes, under which it is counted. */
static long length_class(long bytes) {
    long from = 8;

    while (from * 2 <= bytes) {
        from *= 2;
    }
    return from;
}

static void allreduce(struct build* b, double* values, int count, MPI_Op op) {
    double start = MPI_Wtime();
    double seconds;

    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, op, b->comm);
    seconds = MPI_Wtime() - start;
    b->allreduces += seconds;
    phases_add(b->phases, "allreduce", length_class(count * (long)sizeof(double)), seconds);
}

static int add_nodes(struct tree* t, int count) {
    int first = t->count;

    if (t->count > MAX_NODES - count) {
        fprintf(stderr, "the tree has more than %d nodes: allow more bodies per leaf\n", MAX_NODES);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (t->count + count > t->capacity) {
        t->capacity = 2 * (t->count + count);
        t->nodes = realloc(t->nodes, sizeof(*t->nodes) * (size_t)t->capacity);
        if (t->nodes == NULL) {
            fprintf(stderr, "no memory for %d nodes\n", t->capacity);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    t->count += count;
    memset(t->nodes + first, 0, sizeof(*t->nodes) * (size_t)count);
    return first;
}

static void add_root(struct build* b) {
    double extent[6] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
    double cost = (double)b->bodies->count;
    int index = add_nodes(b->tree, 1);
    struct node* root = &b->tree->nodes[index];
    long i;
    int axis;

    for (i = 0; i < b->bodies->count; ++i) {
        for (axis = 0; axis < 3; ++axis) {
            extent[axis] = fmax(extent[axis], b->bodies->position[i][axis]);
            extent[axis + 3] = fmax(extent[axis + 3], -b->bodies->position[i][axis]);
        }
        b->bodies->node[i] = 0;
    }
    allreduce(b, extent, 6, MPI_MAX);
    allreduce(b, &cost, 1, MPI_SUM);
    root->cost = cost;
    for (axis = 0; axis < 3; ++axis) {
        root->centre[axis] = (extent[axis] - extent[axis + 3]) / 2;
        root->half = fmax(root->half, (extent[axis] + extent[axis + 3]) / 2);
    }
    /* Rounding of the centre may place a body outside by the last digit. */
    root->half *= 1 + 0x1p-40;
}

static int octant(const struct node* n, const double* position) {
    return (position[0] >= n->centre[0]) + 2 * (position[1] >= n->centre[1]) +
           4 * (position[2] >= n->centre[2]);
}

static void split(struct tree* t, int parent) {
    int first = add_nodes(t, 8);
    int i, axis;

    t->nodes[parent].children = first;
    for (i = 0; i < 8; ++i) {
        const struct node* from = &t->nodes[parent];
        struct node* child = &t->nodes[first + i];
        child->depth = from->depth + 1;
        child->half = from->half / 2;
        for (axis = 0; axis < 3; ++axis) {
            child->centre[axis] =
                from->centre[axis] + ((i >> axis & 1) != 0 ? child->half : -child->half);
        }
    }
}

/* The nodes from `level` on are the newest level. Splits those of them that are too large, gives
 * the new nodes their global costs, and returns how many were split. */
static int split_level(struct build* b, int level, double leaf) {
    struct tree* t = b->tree;
    int end = t->count;
    double* costs;
    long k;
    int i;

    for (i = level; i < end; ++i) {
        if (t->nodes[i].cost > leaf && t->nodes[i].depth < MAX_DEPTH) {
            split(t, i);
        }
    }
    if (t->count == end) {
        return 0;
    }
    costs = allocate(sizeof(*costs) * (size_t)(t->count - end));
    for (k = 0; k < b->bodies->count; ++k) {
        int* node = &b->bodies->node[k];
        const struct node* n = &t->nodes[*node];
        if (n->children != 0) {
            *node = n->children + octant(n, b->bodies->position[k]);
            costs[*node - end] += 1;
        }
    }
    /* Whole numbers: the sums, and so the tree, are equal on all ranks in any order of summation.
     */
    allreduce(b, costs, t->count - end, MPI_SUM);
    for (i = end; i < t->count; ++i) {
        t->nodes[i].cost = costs[i - end];
    }
    free(costs);
    return (t->count - end) / 8;
}

/* Sums the masses of the leaves over all ranks, then those of their ancestors over the children. */
static void sum_masses(struct build* b) {
    struct tree* t = b->tree;
    int* slot = allocate(sizeof(*slot) * (size_t)t->count);
    double(*moments)[4];
    int leaves = 0;
    long k;
    int i, j;

    for (i = 0; i < t->count; ++i) {
        slot[i] = t->nodes[i].children == 0 ? leaves++ : -1;
    }
    moments = allocate(sizeof(*moments) * (size_t)leaves);
    for (k = 0; k < b->bodies->count; ++k) {
        double* m = moments[slot[b->bodies->node[k]]];
        m[0] += b->bodies->mass;
        for (j = 0; j < 3; ++j) {
            m[j + 1] += b->bodies->mass * b->bodies->position[k][j];
        }
    }
    allreduce(b, moments[0], 4 * leaves, MPI_SUM);
    for (i = t->count - 1; i >= 0; --i) {
        struct node* n = &t->nodes[i];
        for (j = 0; j < 32 && n->children != 0; ++j) {
            n->moment[j % 4] += t->nodes[n->children + j / 4].moment[j % 4];
        }
        if (n->children == 0) {
            memcpy(n->moment, moments[slot[i]], sizeof(n->moment));
        }
    }
    free(moments);
    free(slot);
}

void tree_build(struct tree* t, struct bodies* bodies, double leaf, struct phases* phases,
                MPI_Comm comm) {
    struct build b = {t, bodies, phases, 0, comm};
    double start = MPI_Wtime();
    double seconds;
    int level = 0;

    t->count = 0;
    add_root(&b);
    for (;;) {
        int end = t->count;
        if (split_level(&b, level, leaf) == 0) {
            break;
        }
        level = end;
    }
    sum_masses(&b);
    seconds = MPI_Wtime() - start;
    phases_add(phases, "allreduces", 0, b.allreduces);
    phases_add(phases, "local", 0, seconds - b.allreduces);
    phases_add(phases, "build", 0, seconds);
}

void tree_free(struct tree* t) {
    free(t->nodes);
    memset(t, 0, sizeof(*t));
}

/* Continues an FNV-1a hash with these bytes. */
static uint64_t mix(uint64_t hash, const void* data, size_t bytes) {
    const unsigned char* at = data;
    size_t i;

    for (i = 0; i < bytes; ++i) {
        hash = (hash ^ at[i]) * 0x100000001b3U;
    }
    return hash;
}

struct tree_facts tree_examine(const struct tree* t, double leaf) {
    struct tree_facts f = {0, 0, 0, 0, 0xcbf29ce484222325U, 0xcbf29ce484222325U};
    int i;

    for (i = 0; i < t->count; ++i) {
        const struct node* n = &t->nodes[i];
        f.shape = mix(f.shape, &n->children, sizeof(n->children));
        f.shape = mix(f.shape, &n->cost, sizeof(n->cost));
        f.all = mix(f.all, n->moment, sizeof(n->moment));
        f.depth = n->depth > f.depth ? n->depth : f.depth;
        if (n->children == 0) {
            ++f.leaves;
            f.over_full += n->cost > leaf;
            f.bodies += n->cost;
        }
    }
    f.all ^= f.shape;
    return f;
}

int tree_find(const struct tree* t, const double* position) {
    int at = 0;

    while (t->nodes[at].children != 0) {
        at = t->nodes[at].children + octant(&t->nodes[at], position);
    }
    return at;
}
