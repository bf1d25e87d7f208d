/* The top of a Barnes-Hut tree, built by all ranks together. */
#ifndef TREE_H_
#define TREE_H_

#include <stdint.h>

#include "apps.h"
#include "bodies.h"

/* Halving a cube this often uses up the digits of a double. Bodies that are then still in one
 * cube are at the same place, and their leaf stays above the limit. */
enum { MAX_DEPTH = 50 };

struct node {
    double centre[3]; /* Centre of the cube. */
    double half;      /* Half the length of its edge. */
    double cost;      /* Bodies in the cube, of all ranks. */
    double moment[4]; /* Mass, and mass times position. */
    int children;     /* Index of the first of eight; 0 for a leaf. */
    int depth;
};

/* A tree whose parents come before their children. */
struct tree {
    struct node* nodes;
    int count;
    int capacity;
};

/* Splits the cube around all bodies until no subspace has more than `leaf` bodies, then sums masses
 * upwards. Collective. The tree is the same on all ranks. Sets the node of every body. Times go
 * into `phases`: "allreduce" by length, "allreduces" all of one build, "local" the rest of it. */
void tree_build(struct tree* t, struct bodies* b, double leaf, struct phases* phases,
                MPI_Comm comm);
void tree_free(struct tree* t);

/* What the check of the results and the report need. */
struct tree_facts {
    int leaves;
    int depth;
    int over_full;  /* Leaves above the limit, because of MAX_DEPTH. */
    double bodies;  /* The sum over all leaves. */
    uint64_t shape; /* Hash of the nodes and costs: the same for any number of ranks. */
    uint64_t all;   /* Hash with the masses, bit by bit: the same on all ranks. */
};
struct tree_facts tree_examine(const struct tree* t, double leaf);

/* Returns the leaf whose cube holds the position, by walking down from the root. */
int tree_find(const struct tree* t, const double* position);

#endif
