/*
 * Finds the edges of a process in the topology of its communicator, along which neighbourhood
 * collectives send blocks.
 */
#include <stdlib.h>

#include "coll_ucg.h"
#include "ompi/mca/topo/topo.h"

/** One side of the edges, while they are collected. */
typedef struct {
    int* peers;
    int* blocks;
    uint32_t count;
} side_t;

static void add(side_t* side, int peer, int block) {
    if (MPI_PROC_NULL != peer) {
        side->peers[side->count] = peer;
        side->blocks[side->count] = block;
        side->count++;
    }
}

/** Takes memory for the edges of `out` blocks that go out and `in` blocks that come in. */
static ucg_status_t reserve(coll_ucg_edges_t* edges, size_t out, size_t in, side_t* to,
                            side_t* from) {
    edges->memory = malloc((2 * (out + in) + 1) * sizeof *edges->memory); /* + 1: never 0 bytes. */
    if (NULL == edges->memory) {
        return UCG_ERR_NO_MEMORY;
    }
    edges->sent_blocks = out;
    edges->received_blocks = in;
    *to = (side_t){edges->memory, edges->memory + out, 0};
    *from = (side_t){to->blocks + out, to->blocks + out + in, 0};
    return UCG_OK;
}

/**
 * Finds the edges in a Cartesian topology. Each dimension has two blocks, down and up; what a
 * neighbour sends down comes from above. In a periodic dimension of length one or two both
 * neighbours are the same process. The first block that it sends, which goes down, must then be the
 * first that is received: from above.
 */
static ucg_status_t find_in_cart(ompi_communicator_t* comm, coll_ucg_edges_t* edges, side_t* to,
                                 side_t* from) {
    const mca_topo_base_module_t* topo = comm->c_topo;
    const int dimensions = topo->mtc.cart->ndims;
    const size_t most = 2 * (size_t)dimensions;
    ucg_status_t status = reserve(edges, most, most, to, from);
    for (int i = 0; i < dimensions && UCG_OK == status; i++) {
        int below = MPI_PROC_NULL;
        int above = MPI_PROC_NULL;
        if (OMPI_SUCCESS != topo->topo.cart.cart_shift(comm, i, 1, &below, &above)) {
            return UCG_ERR_INTERNAL;
        }
        add(to, below, 2 * i);
        add(to, above, 2 * i + 1);
        add(from, above, 2 * i + 1);
        add(from, below, 2 * i);
    }
    return status;
}

static void add_all(side_t* side, const int* peers, int count) {
    for (int i = 0; i < count; i++) {
        add(side, peers[i], i);
    }
}

/** Finds the edges in a graph, where a process receives from those to which it sends. */
static ucg_status_t find_in_graph(ompi_communicator_t* comm, coll_ucg_edges_t* edges, side_t* to,
                                  side_t* from) {
    const mca_topo_base_comm_graph_t* graph = comm->c_topo->mtc.graph;
    const int rank = ompi_comm_rank(comm);
    const int first = 0 == rank ? 0 : graph->index[rank - 1];
    const int degree = graph->index[rank] - first;
    const ucg_status_t status = reserve(edges, (size_t)degree, (size_t)degree, to, from);
    if (UCG_OK == status) {
        add_all(to, graph->edges + first, degree);
        add_all(from, graph->edges + first, degree);
    }
    return status;
}

static ucg_status_t find_in_dist_graph(ompi_communicator_t* comm, coll_ucg_edges_t* edges,
                                       side_t* to, side_t* from) {
    const mca_topo_base_comm_dist_graph_t* graph = comm->c_topo->mtc.dist_graph;
    const ucg_status_t status =
        reserve(edges, (size_t)graph->outdegree, (size_t)graph->indegree, to, from);
    if (UCG_OK == status) {
        add_all(to, graph->out, graph->outdegree);
        add_all(from, graph->in, graph->indegree);
    }
    return status;
}

ucg_status_t coll_ucg_find_edges(mca_coll_ucg_module_t* module) {
    ompi_communicator_t* comm = module->comm;
    coll_ucg_edges_t* edges = &module->edges;
    side_t to = {NULL, NULL, 0};
    side_t from = {NULL, NULL, 0};
    if (NULL != edges->memory) {
        return UCG_OK;
    }
    ucg_status_t status = UCG_ERR_INVALID_PARAM; /* MPI has checked that there is a topology. */
    if (OMPI_COMM_IS_CART(comm)) {
        status = find_in_cart(comm, edges, &to, &from);
    } else if (OMPI_COMM_IS_GRAPH(comm)) {
        status = find_in_graph(comm, edges, &to, &from);
    } else if (OMPI_COMM_IS_DIST_GRAPH(comm)) {
        status = find_in_dist_graph(comm, edges, &to, &from);
    }
    if (UCG_OK != status) {
        free(edges->memory);
        edges->memory = NULL;
        return status;
    }
    edges->ends = (ucg_neighbors_t){to.peers, from.peers, to.count, from.count};
    edges->destination_blocks = to.blocks;
    edges->source_blocks = from.blocks;
    return UCG_OK;
}
