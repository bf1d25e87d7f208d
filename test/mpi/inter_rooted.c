/*
 * Inter-communicators: rooted collectives. Each process of both sides is the root in turn.
 */
#include <stdlib.h>

#include "inter.h"

/** A root, and its name on this process. */
typedef struct {
    int side;
    int rank;
    int name;
    int is_other; /**< This process is on the side that the root sends to, or receives from. */
} root_t;

static root_t root_of(const sides_t* sides, int side, int rank) {
    root_t root = {side, rank, rank, side != sides->side};
    if (!root.is_other) {
        root.name = rank == sides->rank ? MPI_ROOT : MPI_PROC_NULL;
    }
    return root;
}

static void bcast(sides_t* sides, const root_t* root, int count) {
    sides->what = "bcast";
    void* buffer = new_elements(sides, count);
    const int seed = seed_of(root->side, root->rank, 0);
    /* At processes beside the root the count means nothing, so each of them passes its own. But
     * Open MPI's own components go wrong after nonblocking calls in which some processes have no
     * elements. */
    const int any = !sides->nonblocking || sides->counted;
    const int mine = MPI_PROC_NULL == root->name && any ? sides->rank % 2 : count;
    if (MPI_ROOT == root->name) {
        fill(sides, buffer, 0, count, seed);
    }
    for (int i = 0; i < 3; i++) {
        CALL(sides, Bcast, Ibcast, buffer, mine * sides->layout.per_element, sides->layout.type,
             root->name);
    }
    if (MPI_PROC_NULL == root->name) {
        check_untouched(sides, buffer, count);
    } else {
        check(sides, buffer, 0, count, seed);
    }
    free(buffer);
}

static void gather(sides_t* sides, const root_t* root, int count) {
    sides->what = "gather";
    const MPI_Datatype type = sides->layout.type;
    const int n = count * sides->layout.per_element;
    void* send = new_elements(sides, count);
    void* receive = new_elements(sides, count * sides->remote);
    fill(sides, send, 0, count, seed_of(sides->side, sides->rank, 0));
    if (MPI_PROC_NULL == root->name) {
        CALL(sides, Gather, Igather, NULL, sides->rank % 2, type, NULL, 0, type, root->name);
    } else {
        CALL(sides, Gather, Igather, send, n, type, receive, n, type, root->name);
    }
    if (MPI_ROOT == root->name) {
        for (int i = 0; i < sides->remote; i++) {
            check(sides, receive, i * count, count, seed_of(1 - sides->side, i, 0));
        }
    } else {
        check_untouched(sides, receive, count * sides->remote);
    }
    free(send);
    free(receive);
}

static void scatter(sides_t* sides, const root_t* root, int count) {
    sides->what = "scatter";
    const MPI_Datatype type = sides->layout.type;
    const int n = count * sides->layout.per_element;
    void* send = new_elements(sides, count * sides->remote);
    void* receive = new_elements(sides, count);
    for (int i = 0; i < sides->remote; i++) {
        fill(sides, send, i * count, count, seed_of(sides->side, sides->rank, i));
    }
    CALL(sides, Scatter, Iscatter, send, n, type, receive, n, type, root->name);
    if (root->is_other) {
        check(sides, receive, 0, count, seed_of(root->side, root->rank, sides->rank));
    } else {
        check_untouched(sides, receive, count);
    }
    free(send);
    free(receive);
}

/** The numbers of elements of the ranks' blocks, and where they begin; the last block comes
 * first. */
static int blocks_of(const sides_t* sides, int count, int* counts, int* displs) {
    int elements = 0;
    for (int i = sides->remote - 1; i >= 0; i--) {
        const int block = count * ((i + 1) % 3);
        counts[i] = block * sides->layout.per_element;
        displs[i] = elements * sides->layout.per_element;
        elements += block + 1;
    }
    return elements;
}

static void gatherv(sides_t* sides, const root_t* root, int count) {
    sides->what = "gatherv";
    const MPI_Datatype type = sides->layout.type;
    const int mine = count * ((sides->rank + 1) % 3);
    int* counts = malloc(2 * (size_t)sides->remote * sizeof *counts);
    int* displs = counts + sides->remote;
    const int elements = blocks_of(sides, count, counts, displs);
    void* send = new_elements(sides, mine);
    void* receive = new_elements(sides, elements);
    fill(sides, send, 0, mine, seed_of(sides->side, sides->rank, 0));
    CALL(sides, Gatherv, Igatherv, send, mine * sides->layout.per_element, type, receive, counts,
         displs, type, root->name);
    for (int i = 0; i < sides->remote && MPI_ROOT == root->name; i++) {
        check(sides, receive, displs[i] / sides->layout.per_element,
              counts[i] / sides->layout.per_element, seed_of(1 - sides->side, i, 0));
    }
    free(send);
    free(receive);
    free(counts);
}

static void scatterv(sides_t* sides, const root_t* root, int count) {
    sides->what = "scatterv";
    const MPI_Datatype type = sides->layout.type;
    const int mine = count * ((sides->rank + 1) % 3);
    int* counts = malloc(2 * (size_t)sides->remote * sizeof *counts);
    int* displs = counts + sides->remote;
    const int elements = blocks_of(sides, count, counts, displs);
    void* send = new_elements(sides, elements);
    void* receive = new_elements(sides, mine);
    for (int i = 0; i < sides->remote; i++) {
        fill(sides, send, displs[i] / sides->layout.per_element,
             counts[i] / sides->layout.per_element, seed_of(sides->side, sides->rank, i));
    }
    CALL(sides, Scatterv, Iscatterv, send, counts, displs, type, receive,
         mine * sides->layout.per_element, type, root->name);
    if (root->is_other) {
        check(sides, receive, 0, mine, seed_of(root->side, root->rank, sides->rank));
    } else {
        check_untouched(sides, receive, mine);
    }
    free(send);
    free(receive);
    free(counts);
}

void test_rooted(sides_t* sides, int count) {
    for (int side = 0; side < 2; side++) {
        const int ranks = side == sides->side ? sides->size : sides->remote;
        for (int rank = 0; rank < ranks; rank++) {
            const root_t root = root_of(sides, side, rank);
            bcast(sides, &root, count);
            gather(sides, &root, count);
            scatter(sides, &root, count);
            gatherv(sides, &root, count);
            /* Open MPI 4.1 takes blocks with gaps between them for longer ones. */
            if (!sides->plain) {
                scatterv(sides, &root, count);
            }
        }
    }
}
