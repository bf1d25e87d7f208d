/*
 * Inter-communicators and the groups that serve them.
 *
 * The group of both sides has the ranks of the first side, then those of the second; both sides
 * know alike which is the first. A collective with a root does not concern the other processes of
 * the root's side: they pass MPI_PROC_NULL and no count, and MPI lets Open MPI return without
 * calling a component. So each root has a group with the other side, in which it is rank 0. The
 * processes of one side have a group among themselves, for reductions.
 */
#ifndef MCA_COLL_UCG_INTER_H
#define MCA_COLL_UCG_INTER_H

#include "coll_ucg_edges.h"
#include "coll_ucg_request.h"
#include "coll_ucg_setup.h"

/** A group in addition to the module's. */
typedef struct {
    coll_ucg_state_t state;
    int calls_before; /**< Calls that previous modules still serve while it is fresh. */
    int pause;        /**< Number of calls between the latest tries. */
    ucg_group_h group;
    bool polled;
    uint32_t hosts; /**< Number of hosts of the group; 0: not known yet. */
} coll_ucg_part_t;

typedef struct coll_ucg_sides {
    int local_size;
    int remote_size;
    int local_first; /**< First rank of this side in the group of both. */
    int remote_first;
    coll_ucg_part_t side;        /**< This side's own; no group if it has one process. */
    coll_ucg_part_t* roots;      /**< For each root of the other side, then for this process. */
    int* numbers;                /**< 0, 1, 2, ... up to the size of both sides. */
    coll_ucg_edges_t across;     /**< Edges from and to each process of the other side. */
    uint32_t hosts;              /**< Number of hosts of both sides; 0: not known yet. */
    coll_ucg_workspace_t memory; /**< What one of several calls in a row gives the next, in a
                                      blocking function that is not nested. */
} coll_ucg_sides_t;

/** Makes what an inter-communicator needs, without groups. NULL: no memory. */
coll_ucg_sides_t* coll_ucg_make_sides(ompi_communicator_t* comm);
void coll_ucg_free_sides(coll_ucg_sides_t* sides);
/** Gives the groups of side and roots up: several of them may serve one call. Local. */
void coll_ucg_fail_sides(coll_ucg_sides_t* sides);
/** Leaves the groups of side and roots. Local. */
void coll_ucg_leave_sides(coll_ucg_sides_t* sides);

/** Returns the exchange among the processes of both sides. */
coll_ucg_exchange_t coll_ucg_exchange_of_sides(mca_coll_ucg_module_t* module);

/** Makes the group of this side, if there is none yet. Collective over the side, while the
 *  communicator has its turn. */
ucg_status_t coll_ucg_make_group_of_side(coll_ucg_exchange_t* exchange, ucg_context_h context);

/** Does what coll_ucg_enter() does, for a collective with a root: collective over the root and the
 *  other side. `root` is not MPI_PROC_NULL. */
ucg_status_t coll_ucg_enter_rooted(mca_coll_ucg_module_t* module, int root,
                                   coll_ucg_part_t** part_p);

/**
 * Does what coll_ucg_enter_nonblocking() does, for a nonblocking call with a root, but never makes
 * the group. Without a group the other components serve the call, and they number a communicator's
 * nonblocking calls on each of its processes. The other processes of the root's side do not know
 * whether libucg serves a call. So each process that does not pass a call on counts it by
 * coll_ucg_number_call().
 */
ucg_status_t coll_ucg_enter_rooted_nonblocking(mca_coll_ucg_module_t* module, int root,
                                               coll_ucg_request_t** request_p);
void coll_ucg_number_call(ompi_communicator_t* comm);

/** Returns edges from this process to `out` ranks of the other side from `to` on, and to this
 *  process from `in` ranks of it from `from` on, in a group in which the other side begins at
 *  `first`. */
coll_ucg_edges_t coll_ucg_edges_across(const coll_ucg_sides_t* sides, int first, int to, int out,
                                       int from, int in);

/** Is the group on several hosts? The same in all processes of the group. `hosts`: where their
 *  number is kept; 0 before the first call. */
bool coll_ucg_is_on_several_hosts(ucg_group_h group, uint32_t* hosts);

/** A gather or scatter as one process has it, the root or one of the others. */
typedef struct {
    enum coll_ucg_function function;
    int root;
    coll_ucg_edges_t edges;
    coll_ucg_edge_blocks_t blocks; /**< Input or output, whichever has edges. */
} coll_ucg_rooted_t;

/** Do the blocks go through the first process of the side that has no root? The same in all
 *  processes of the group. */
bool coll_ucg_goes_by_first(const coll_ucg_sides_t* sides, coll_ucg_part_t* part,
                            const coll_ucg_rooted_t* rooted);
ucg_status_t coll_ucg_run_by_first(mca_coll_ucg_module_t* module, ucg_group_h group,
                                   const coll_ucg_rooted_t* rooted);

/** What this process has to do with a reduction whose receivers combine all operands. */
typedef struct {
    const void* input;
    coll_ucg_count_t elements; /**< Elements of each operand. */
    ompi_datatype_t* type;
    ompi_op_t* op;
    int first;  /**< First rank of the other side in the call's group. */
    int others; /**< Number of ranks of the other side that take part. */
    bool sends;
    bool receives;
    coll_ucg_count_t begin; /**< First element of the result for this process. */
    coll_ucg_count_t length;
    void* target;
} coll_ucg_operands_t;

/** Are there few processes on each side, and have all operands of a side, of `bytes` bytes each,
 *  together at most `most` bytes? */
bool coll_ucg_are_few(const coll_ucg_sides_t* sides, size_t most, size_t bytes);
/** Runs such a reduction for a blocking function with this root; 0: none. `memory`: for the
 *  operands. */
ucg_status_t coll_ucg_exchange_operands(mca_coll_ucg_module_t* module, ucg_group_h group,
                                        enum coll_ucg_function function, int root,
                                        const coll_ucg_operands_t* operands,
                                        coll_ucg_scratch_t* memory);

/** Returns memory for `elements` elements, in the layout of their type. NULL: no memory. */
void* coll_ucg_elements_in(coll_ucg_scratch_t* scratch, const ompi_datatype_t* type,
                           size_t elements);

/** Opens an allgather(v) or alltoall(v,w), in any form. */
ucg_status_t coll_ucg_open_across(coll_ucg_call_t* call, enum coll_ucg_function function,
                                  const coll_ucg_arguments_t* arguments);
/** Runs an allgather whose blocks each go across once. `input` has one block (is_one). */
ucg_status_t coll_ucg_spread_across(mca_coll_ucg_module_t* module,
                                    const coll_ucg_edge_blocks_t* input,
                                    const coll_ucg_edge_blocks_t* output);

/** Every function for inter-communicators, except those for barriers, which are the same as for
 *  intra-communicators. */
#define COLL_UCG_FOR_EACH_INTER(X)                                                                 \
    X(allgather)                                                                                   \
    X(allgatherv)                                                                                  \
    X(alltoall)                                                                                    \
    X(alltoallv)                                                                                   \
    X(alltoallw)                                                                                   \
    X(allreduce)                                                                                   \
    X(bcast)                                                                                       \
    X(gather)                                                                                      \
    X(gatherv)                                                                                     \
    X(reduce)                                                                                      \
    X(reduce_scatter)                                                                              \
    X(reduce_scatter_block)                                                                        \
    X(scatter)                                                                                     \
    X(scatterv)                                                                                    \
    X(iallgather)                                                                                  \
    X(iallgatherv)                                                                                 \
    X(ialltoall)                                                                                   \
    X(ialltoallv)                                                                                  \
    X(ialltoallw)                                                                                  \
    X(iallreduce)                                                                                  \
    X(ibcast)                                                                                      \
    X(igather)                                                                                     \
    X(igatherv)                                                                                    \
    X(ireduce)                                                                                     \
    X(ireduce_scatter)                                                                             \
    X(ireduce_scatter_block)                                                                       \
    X(iscatter)                                                                                    \
    X(iscatterv)                                                                                   \
    X(allgather_init)                                                                              \
    X(allgatherv_init)                                                                             \
    X(alltoall_init)                                                                               \
    X(alltoallv_init)                                                                              \
    X(alltoallw_init)

#define COLL_UCG_DECLARE_INTER(name)                                                               \
    __typeof__(*(COLL_UCG_FUNCTION_TYPE(name))NULL) mca_coll_ucg_inter_##name;
COLL_UCG_FOR_EACH_INTER(COLL_UCG_DECLARE_INTER)
#undef COLL_UCG_DECLARE_INTER

#endif
