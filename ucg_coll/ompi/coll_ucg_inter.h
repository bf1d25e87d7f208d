/*
 * Inter-communicators: the groups that serve them.
 *
 * The group of both sides has the ranks of the first side, then those of the second. Which is the
 * first both sides know alike. A collective with a root is none of the processes beside it: they
 * pass MPI_PROC_NULL and no count, and MPI lets Open MPI leave without calling a component. So each
 * root has a group with the other side, in which it is rank 0. The processes of one side have a
 * group among themselves, for reductions.
 */
#ifndef MCA_COLL_UCG_INTER_H
#define MCA_COLL_UCG_INTER_H

#include "coll_ucg_edges.h"
#include "coll_ucg_request.h"
#include "coll_ucg_setup.h"

/** A group beside the module's. */
typedef struct {
    coll_ucg_state_t state;
    int calls_before; /**< That the previous modules still serve while it is fresh. */
    int pause;        /**< So many were between the latest tries. */
    ucg_group_h group;
    bool polled;
    uint32_t hosts; /**< That the group is on; 0: not known yet. */
} coll_ucg_part_t;

typedef struct coll_ucg_sides {
    int local_size;
    int remote_size;
    int local_first; /**< Where the side's ranks begin in the group of both. */
    int remote_first;
    coll_ucg_part_t side;        /**< This side; no group where it has one process. */
    coll_ucg_part_t* roots;      /**< Of each root of the other side, and then of this process. */
    int* numbers;                /**< 0, 1, 2, ... up to the size of both sides. */
    coll_ucg_edges_t across;     /**< From and to each process of the other side. */
    uint32_t hosts;              /**< That both sides together are on; 0: not known yet. */
    coll_ucg_workspace_t memory; /**< Of calls that consist of several: what one gives the next. */
} coll_ucg_sides_t;

/** NULL: no memory. */
coll_ucg_sides_t* coll_ucg_make_sides(ompi_communicator_t* comm);
void coll_ucg_free_sides(coll_ucg_sides_t* sides);
/** Leaves the groups. Local. */
void coll_ucg_leave_sides(coll_ucg_sides_t* sides);

/** The processes of both sides. */
coll_ucg_exchange_t coll_ucg_exchange_of_sides(mca_coll_ucg_module_t* module);

/** Makes the group of this side, if there is none yet: collective over it, at its turn. */
ucg_status_t coll_ucg_make_group_of_side(coll_ucg_exchange_t* exchange, ucg_context_h context);

/** What coll_ucg_enter() is, for a collective with a root: collective over the root and the other
 *  side. `root` is not MPI_PROC_NULL. */
ucg_status_t coll_ucg_enter_rooted(mca_coll_ucg_module_t* module, int root,
                                   coll_ucg_part_t** part_p);

/**
 * What coll_ucg_enter_nonblocking() is, for a nonblocking call with a root; it never makes the
 * group. Then the other components serve the call, which number a communicator's nonblocking calls
 * on each of its processes. Whether libucg serves one, a process beside the root does not know. So
 * who does not pass a call on counts it by coll_ucg_number_call().
 */
ucg_status_t coll_ucg_enter_rooted_nonblocking(mca_coll_ucg_module_t* module, int root,
                                               coll_ucg_request_t** request_p);
void coll_ucg_number_call(ompi_communicator_t* comm);

/** Edges from this process to `out` ranks of the other side from `to` on, and to it from `in` of
 *  them from `from` on, in a group that begins the other side at `first`. */
coll_ucg_edges_t coll_ucg_edges_across(const coll_ucg_sides_t* sides, int first, int to, int out,
                                       int from, int in);

/** The same in all processes of the group. `hosts`: where that is kept; 0 before the first call. */
bool coll_ucg_is_on_several_hosts(ucg_group_h group, uint32_t* hosts);

/** What a gather or scatter is at its root or at one of the others. */
typedef struct {
    enum coll_ucg_function function;
    int root;
    coll_ucg_edges_t edges;
    coll_ucg_edge_blocks_t blocks; /**< Of the side that has edges. */
} coll_ucg_rooted_t;

/** Do its blocks go through the first process of the side that has no root? The same in all
 *  processes of the group. */
bool coll_ucg_goes_by_first(const coll_ucg_sides_t* sides, coll_ucg_part_t* part,
                            const coll_ucg_rooted_t* rooted);
ucg_status_t coll_ucg_run_by_first(mca_coll_ucg_module_t* module, ucg_group_h group,
                                   const coll_ucg_rooted_t* rooted);

/** What this process has to do with a reduction whose receivers combine all operands. */
typedef struct {
    const void* input;
    coll_ucg_count_t elements; /**< Of each operand. */
    ompi_datatype_t* type;
    ompi_op_t* op;
    int first;  /**< Of the other side, in the group of the call. */
    int others; /**< How many of them take part. */
    bool sends;
    bool receives;
    coll_ucg_count_t begin; /**< What this process wants of the result. */
    coll_ucg_count_t length;
    void* target;
} coll_ucg_operands_t;

/** Are there few processes on each side, and of all of a side `most` bytes? */
bool coll_ucg_are_few(const coll_ucg_sides_t* sides, size_t most, size_t bytes);
/** Runs it for a blocking function, which has that root; 0: none. */
ucg_status_t coll_ucg_exchange_operands(mca_coll_ucg_module_t* module, ucg_group_h group,
                                        enum coll_ucg_function function, int root,
                                        const coll_ucg_operands_t* operands);

/** Memory for so many elements, in the layout of their type. NULL: there is none. */
void* coll_ucg_elements_in(coll_ucg_scratch_t* scratch, const ompi_datatype_t* type,
                           size_t elements);

/** An allgather whose blocks go across once each. `input` is one. */
ucg_status_t coll_ucg_spread_across(mca_coll_ucg_module_t* module,
                                    const coll_ucg_edge_blocks_t* input,
                                    const coll_ucg_edge_blocks_t* output);

/** Every function for inter-communicators, beside those for barriers, which are the same. */
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
