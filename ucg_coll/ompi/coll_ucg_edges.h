/*
 * Calls that send blocks along edges between processes, for which libucg has neighbor_alltoallv.
 * The edges are those of a topology, or those between the two sides of an inter-communicator.
 */
#ifndef MCA_COLL_UCG_EDGES_H
#define MCA_COLL_UCG_EDGES_H

#include "coll_ucg_call.h"

/** The blocks of one side (input or output), as MPI's arguments describe them. */
typedef struct {
    const void* user;
    coll_ucg_count_t count;      /**< Elements of each block, if there are no `counts`. */
    ptrdiff_t stride;            /**< Bytes from one such block to the next; 0: adjacent. */
    coll_ucg_counts_t counts;    /**< Elements of each block, or NULL. */
    coll_ucg_displs_t displs;    /**< With `counts`, in extents, or bytes with `types`. */
    coll_ucg_places_t places;    /**< With `counts`, in bytes, instead of `displs`. */
    const ompi_datatype_t* type; /**< Type of all blocks, or NULL. */
    struct ompi_datatype_t* const* types; /**< Type of each block, or NULL. */
    bool is_one; /**< There is one block of `count` elements, which goes along all edges. */
} coll_ucg_edge_blocks_t;

/** Return the blocks that the arguments describe. */
static inline coll_ucg_edge_blocks_t coll_ucg_edge_input(const coll_ucg_arguments_t* arguments) {
    return (coll_ucg_edge_blocks_t){
        .user = arguments->sbuf,
        .count = arguments->scount,
        .counts = arguments->scounts,
        .displs = arguments->sdispls,
        .type = arguments->sdtype,
        .types = arguments->sdtypes,
    };
}
static inline coll_ucg_edge_blocks_t coll_ucg_edge_output(const coll_ucg_arguments_t* arguments) {
    return (coll_ucg_edge_blocks_t){
        .user = arguments->rbuf,
        .count = arguments->rcount,
        .counts = arguments->rcounts,
        .displs = arguments->rdispls,
        .type = arguments->rdtype,
        .types = arguments->rdtypes,
    };
}

/** Opens a call that sends the blocks of `input` along the edges and receives those of `output`.
 *  `edges` must live until the call has been run, or prepared. */
ucg_status_t coll_ucg_open_edges(coll_ucg_call_t* call, const coll_ucg_edges_t* edges,
                                 const coll_ucg_edge_blocks_t* input,
                                 const coll_ucg_edge_blocks_t* output);

#endif
