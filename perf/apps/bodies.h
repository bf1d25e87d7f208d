/* The bodies of an n-body simulation, distributed over the ranks. */
#ifndef BODIES_H_
#define BODIES_H_

#include <stdint.h>

enum distribution { UNIFORM, PLUMMER };

/* This rank's share of the bodies. Owned by the caller of bodies_create, freed by bodies_free. */
struct bodies {
    long count;
    double (*position)[3];
    double mass; /* Mass of every body; all bodies together have mass 1. */
    int* node;   /* The node of the tree that holds each body. */
};

/* Returns the share of rank `rank` of `all` bodies. Which bodies exist depends on `all`, `seed`
 * and the distribution alone, not on the number of ranks. */
struct bodies bodies_create(long all, enum distribution distribution, uint64_t seed, int rank,
                            int ranks);
void bodies_free(struct bodies* b);

#endif
