#include "bodies.h"

#include <math.h>
#include <stdlib.h>

#include "apps.h"

/* The random numbers of one body: splitmix64 (Steele, Lea, Flood 2014) with a state per body, so
 * that any rank can make any body. */
struct random {
    uint64_t state;
};

static uint64_t next_bits(struct random* r) {
    uint64_t z = (r->state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* Returns a number in [0, 1). */
static double next_double(struct random* r) {
    return (double)(next_bits(r) >> 11) * 0x1p-53;
}

static void place_uniform(struct random* r, double* position) {
    int axis;

    for (axis = 0; axis < 3; ++axis) {
        position[axis] = next_double(r);
    }
}

/* Places a body in Plummer's sphere by the inverse of its enclosed mass (Aarseth, Henon, Wielen
 * 1974). The outermost thousandth of the mass is left out, since it extends to infinity. */
static void place_plummer(struct random* r, double* position) {
    double enclosed = 0.999 * (1 - next_double(r));
    double radius = 1 / sqrt(pow(enclosed, -2.0 / 3.0) - 1);
    double z = 2 * next_double(r) - 1;
    double angle = 2 * M_PI * next_double(r);
    double across = sqrt(1 - z * z);

    position[0] = radius * across * cos(angle);
    position[1] = radius * across * sin(angle);
    position[2] = radius * z;
}

struct bodies bodies_create(long all, enum distribution distribution, uint64_t seed, int rank,
                            int ranks) {
    long first = all * rank / ranks;
    struct bodies b = {all * (rank + 1) / ranks - first, NULL, 1.0 / (double)all, NULL};
    struct random seeds = {seed};
    uint64_t base = next_bits(&seeds);
    long i;

    b.position = allocate(sizeof(*b.position) * (size_t)b.count);
    b.node = allocate(sizeof(*b.node) * (size_t)b.count);
    for (i = 0; i < b.count; ++i) {
        struct random r = {base ^ (uint64_t)(first + i)};
        r.state = next_bits(&r); /* Neighbouring states would give overlapping sequences. */
        if (distribution == PLUMMER) {
            place_plummer(&r, b.position[i]);
        } else {
            place_uniform(&r, b.position[i]);
        }
    }
    return b;
}

void bodies_free(struct bodies* b) {
    free(b->position);
    free(b->node);
}
