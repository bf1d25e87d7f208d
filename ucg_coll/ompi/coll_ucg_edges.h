/*
 * Calls whose blocks go along edges between processes: what libucg calls neighbor_alltoallv. The
 * edges are those of a topology, or those between the two sides of an inter-communicator.
 */
#ifndef MCA_COLL_UCG_EDGES_H
#define MCA_COLL_UCG_EDGES_H

#include "coll_ucg_call.h"

/** The blocks of one side, as MPI's arguments describe them. */
typedef struct {
    const void* user;
    coll_ucg_count_t count;               /**< Of each block; they lie one behind the other, */
    ptrdiff_t stride;                     /**< or, if it is not 0, so many bytes apart. */
    coll_ucg_counts_t counts;             /**< Of each, or NULL. */
    coll_ucg_displs_t displs;             /**< With `counts`, in extents, or bytes with `types`. */
    coll_ucg_places_t places;             /**< With `counts`, in bytes, instead of `displs`. */
    const ompi_datatype_t* type;          /**< Of all blocks, or NULL. */
    struct ompi_datatype_t* const* types; /**< Of each block, or NULL. */
    bool is_one; /**< There is one block of `count` elements, which goes along all edges. */
} coll_ucg_edge_blocks_t;

/** Opens a call that sends one side along its edges and receives the other. Edges are read while it
 *  is opened and run, or prepared. */
ucg_status_t coll_ucg_open_edges(coll_ucg_call_t* call, const coll_ucg_edges_t* edges,
                                 const coll_ucg_edge_blocks_t* input,
                                 const coll_ucg_edge_blocks_t* output);

#endif
