/*
 * The Open MPI collective component over libucg: what its files share.
 *
 * Every collective function of the component gathers its arguments (coll_ucg_arguments.h) and has
 * the same frame (coll_ucg_forms.h): coll_ucg_enter(), or its like for nonblocking and persistent
 * calls, decides whether libucg serves the communicator (a blocking one makes the group), a
 * function of the collective opens the call (coll_ucg_call.h), and coll_ucg_leave() gives the
 * status back to Open MPI or, when nothing was started, the call to the module that was there
 * before. What is passed on depends only on facts that are equal on all ranks of the communicator.
 */
#ifndef MCA_COLL_UCG_H
#define MCA_COLL_UCG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucg/ucg.h>

#include "coll_ucg_compat.h"
#include "mpi.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/op/op.h"
#include "opal/class/opal_list.h"

/** Every function that the component serves, by the name that Open MPI gives it. Those of the three
 *  forms are in one order. */
#define COLL_UCG_FOR_EACH_COLLECTIVE(FORM, X)                                                      \
    FORM(X, allgather)                                                                             \
    FORM(X, allgatherv)                                                                            \
    FORM(X, allreduce)                                                                             \
    FORM(X, alltoall)                                                                              \
    FORM(X, alltoallv)                                                                             \
    FORM(X, alltoallw)                                                                             \
    FORM(X, barrier)                                                                               \
    FORM(X, bcast)                                                                                 \
    FORM(X, exscan)                                                                                \
    FORM(X, gather)                                                                                \
    FORM(X, gatherv)                                                                               \
    FORM(X, neighbor_allgather)                                                                    \
    FORM(X, neighbor_allgatherv)                                                                   \
    FORM(X, neighbor_alltoall)                                                                     \
    FORM(X, neighbor_alltoallv)                                                                    \
    FORM(X, neighbor_alltoallw)                                                                    \
    FORM(X, reduce)                                                                                \
    FORM(X, reduce_scatter)                                                                        \
    FORM(X, reduce_scatter_block)                                                                  \
    FORM(X, scan)                                                                                  \
    FORM(X, scatter)                                                                               \
    FORM(X, scatterv)
#define COLL_UCG_BLOCKING(X, name) X(name)
#define COLL_UCG_NONBLOCKING(X, name) X(i##name)
#define COLL_UCG_PERSISTENT(X, name) X(name##_init)
#define COLL_UCG_FOR_EACH_BLOCKING(X) COLL_UCG_FOR_EACH_COLLECTIVE(COLL_UCG_BLOCKING, X)
#define COLL_UCG_FOR_EACH_NONBLOCKING(X) COLL_UCG_FOR_EACH_COLLECTIVE(COLL_UCG_NONBLOCKING, X)
#define COLL_UCG_FOR_EACH_PERSISTENT(X) COLL_UCG_FOR_EACH_COLLECTIVE(COLL_UCG_PERSISTENT, X)
#define COLL_UCG_FOR_EACH(X)                                                                       \
    COLL_UCG_FOR_EACH_BLOCKING(X)                                                                  \
    COLL_UCG_FOR_EACH_NONBLOCKING(X)                                                               \
    COLL_UCG_FOR_EACH_PERSISTENT(X)

enum coll_ucg_function {
#define COLL_UCG_ENUMERATOR(name) COLL_UCG_FN_##name,
    COLL_UCG_FOR_EACH(COLL_UCG_ENUMERATOR)
#undef COLL_UCG_ENUMERATOR
        COLL_UCG_FN_COUNT,
    COLL_UCG_FN_BLOCKING_COUNT = COLL_UCG_FN_iallgather,
    COLL_UCG_FN_NONBLOCKING_COUNT = COLL_UCG_FN_allgather_init - COLL_UCG_FN_iallgather
};

/** Returns the blocking function of the same collective. */
static inline enum coll_ucg_function coll_ucg_collective_of(enum coll_ucg_function function) {
    return (enum coll_ucg_function)(function % COLL_UCG_FN_BLOCKING_COUNT);
}

/** The configuration variables of libucg that have an MCA parameter of their own. */
enum { COLL_UCG_SETTING_COUNT = 16 };

/* ------------------------------------------------------------------ component */

typedef struct {
    uint64_t taken[COLL_UCG_FN_COUNT];  /**< Calls that libucg served. */
    uint64_t passed[COLL_UCG_FN_COUNT]; /**< Calls that went to the previous module. */
} coll_ucg_counters_t;

/** Why a communicator goes without libucg. The user is told of each once. */
typedef enum {
    COLL_UCG_FOR_ABSENCE, /**< A process has no component of this version. */
    COLL_UCG_FOR_CHOICE,  /**< One chooses components in another way. */
    COLL_UCG_FOR_NO_GROUP /**< libucg could not make the group. */
} coll_ucg_reason_t;

typedef struct {
    mca_coll_base_component_t super;

    int priority;
    int verbose;
    int setup_after;   /**< The parameter. */
    int calls_before;  /**< Collectives that a communicator calls before it gets a group. */
    bool assume_alike; /**< The processes of this job are not asked whether they are alike. */
    bool enabled[COLL_UCG_FN_COUNT];
    char* settings[COLL_UCG_SETTING_COUNT]; /**< Values for ucg_config_modify(); NULL: not given. */
    char* algorithms[COLL_UCG_FN_BLOCKING_COUNT]; /**< Likewise; nonblocking calls use them too. */

    int output; /**< Stream for opal_output(). */

    opal_mutex_t lock; /**< Guards everything below. */
    ucg_context_h context;
    ucg_status_t
        context_status; /**< Why there is no context; UCG_INPROGRESS before the first try. */
    opal_list_t enabled_modules;  /**< All modules that have been enabled. */
    opal_list_t waiting;          /**< Modules whose ranks are all ready to make their group. */
    bool turn_taken;              /**< This process has let one of them make its group. */
    bool polled;                  /**< opal_progress() drives libucg. */
    coll_ucg_counters_t counters; /**< Sums of the counters of modules that are gone. */
    atomic_uint told; /**< A bit for each coll_ucg_reason_t that the user was told of. Any thread,
                           without the lock. */
} mca_coll_ucg_component_t;

OMPI_DECLSPEC extern mca_coll_ucg_component_t mca_coll_ucg_component;

/** Makes the process's context at the first call; `comm` is the communicator that needs it. Errors
 *  in settings are reported by the communicator's rank 0 and by processes whose settings differ
 *  from its. Later calls return the same status. Thread-safe. */
ucg_status_t coll_ucg_context(ompi_communicator_t* comm, ucg_context_h* context_p);

/* ------------------------------------------------------------------ peers */

/** Publishes what other processes must know of this one. To be called while the component is
 *  opened: later is too late, because Open MPI then tells all processes what each has published. */
void coll_ucg_open_peers(void);
void coll_ucg_close_peers(void);

/**
 * Do all processes of the communicator have this component, and choose it for the same
 * communicators as this process does? The result is the same on all of them. Where it is false, one
 * of them says so. Asks PMIx about processes that are not known yet; for one that has published
 * nothing that may take seconds, once. Ends the job where PMIx gives no answer, since it may have
 * given one to others. Thread-safe.
 */
bool coll_ucg_all_alike(ompi_communicator_t* comm);

/** Is rank 0 of this side of the communicator another process, with the same settings for libucg as
 *  this one? REQUIRES: all processes are alike. Thread-safe. */
bool coll_ucg_first_is_set_alike(ompi_communicator_t* comm);

/** Was the user told before that a communicator goes without libucg for this reason? To be called
 * by all of its ranks, because any may be the first of a communicator that is made from these. */
static inline bool coll_ucg_was_told(coll_ucg_reason_t reason) {
    return 0 != (atomic_fetch_or(&mca_coll_ucg_component.told, 1U << reason) & 1U << reason);
}

/** Prints to the component's stream when coll_ucg_verbose is at least `level`. */
#define COLL_UCG_VERBOSE(level, ...)                                                               \
    do {                                                                                           \
        if (mca_coll_ucg_component.verbose >= (level)) {                                           \
            opal_output(mca_coll_ucg_component.output, __VA_ARGS__);                               \
        }                                                                                          \
    } while (0)

/* ------------------------------------------------------------------ module */

/** Memory that grows as needed and is kept between calls, so that calls of usual size do not
 *  allocate. */
typedef struct {
    unsigned char* base; /**< Aligned to a cache line. */
    size_t capacity;
} coll_ucg_scratch_t;

/** The memory that a call uses beside the program's own. */
typedef struct {
    coll_ucg_scratch_t send;    /**< Packed send buffer. */
    coll_ucg_scratch_t receive; /**< Packed receive buffer. */
    coll_ucg_scratch_t left;    /**< Left operands, in the layout of their datatype. */
    coll_ucg_scratch_t right;   /**< Right operands. */
    coll_ucg_scratch_t vectors; /**< 64-bit counts and displacements, and datatypes. */
    size_t kept;                /**< How many of its bytes are counted as kept between calls. */
} coll_ucg_workspace_t;

typedef enum {
    COLL_UCG_FRESH, /**< No group yet: the previous modules serve the first calls. */
    /** Of inter-communicators: the group is being made, and the previous modules serve meanwhile.
     */
    COLL_UCG_SETTING_UP,
    /** Of others: it is being made, and calls wait (coll_ucg_background.h). */
    COLL_UCG_FORMING,
    COLL_UCG_READY,
    COLL_UCG_OFF /**< All ranks agreed to use the previous modules for good. */
} coll_ucg_state_t;

/** The type of a pointer to a collective function. */
#define COLL_UCG_FUNCTION_TYPE(name) __typeof__(((mca_coll_base_comm_coll_t*)NULL)->coll_##name)

typedef struct {
#define COLL_UCG_PREVIOUS_FIELD(name)                                                              \
    struct {                                                                                       \
        COLL_UCG_FUNCTION_TYPE(name) function;                                                     \
        mca_coll_base_module_t* module; /**< Retained. */                                          \
    } name;
    COLL_UCG_FOR_EACH(COLL_UCG_PREVIOUS_FIELD)
#undef COLL_UCG_PREVIOUS_FIELD
} coll_ucg_previous_t;

/** The latest operator and datatype that libucg combines itself; null before the first. Both are
 *  predefined, so that neither is ever freed and another made at its address. */
typedef struct {
    const ompi_op_t* op;
    const ompi_datatype_t* type;
    ucg_op_t native_op;
    ucg_datatype_t native_type;
} coll_ucg_known_reduction_t;

/** An argument that is a vector of counts, displacements or datatypes. */
typedef struct {
    const void* data;
    size_t bytes;
} coll_ucg_vector_t;

/** The arguments of the latest call of a function, except its buffers. Calls with the same
 *  arguments are repetitions, for which libucg has a shorter path (coll_ucg_repeat.h). */
typedef struct {
    ucg_coll_h coll; /**< NULL until the call came twice in a row, and may be repeated. */
    const ompi_datatype_t* type;
    const ompi_datatype_t* prepared_type; /**< `type` if there is `coll`, else NULL: one comparison
                                               tells both. */
    const ompi_op_t* op;                  /**< NULL: no reduction. */
    coll_ucg_count_t count;
    int root; /**< 0 where there is none. */
    bool in_place;
    int vector_count;
    const coll_ucg_vector_t* vectors; /**< Those of the module's `latest` are copies. */
} coll_ucg_latest_t;

/** A rank's edges in the topology of its communicator, in an order in which the k-th edge from one
 *  rank to another is the k-th at both ends. Edges to MPI_PROC_NULL are left out. */
typedef struct {
    ucg_neighbors_t ends;
    int* destination_blocks; /**< For each edge: which of the program's blocks goes there. */
    int* source_blocks;
    size_t sent_blocks; /**< Blocks of the program, including those for MPI_PROC_NULL. */
    size_t received_blocks;
    int* memory; /**< Holds all four lists; NULL until they are known. */
} coll_ucg_edges_t;

typedef struct {
    mca_coll_base_module_t super;
    opal_list_item_t enabled; /**< In the component's `enabled_modules`. */
    opal_list_item_t waiting; /**< In the component's `waiting` until it may make its group. */

    _Atomic(coll_ucg_state_t) state; /**< Written by the thread that ends the making of a group. */
    int calls_before_group; /**< Calls that previous modules still serve while it is fresh. */
    int pause;              /**< Number of calls between the latest tries. */
    struct coll_ucg_background* background; /**< The making of its group, while forming. */
    bool lacks_call; /**< A call failed here, alone, that was to wait for the group. */
    bool retired;    /**< It serves no calls any more. */
    bool is_side; /**< Of the communicator that Open MPI keeps for a side of an inter-communicator,
                   *   of which the program knows nothing: what it passes on is not counted. */
    ompi_communicator_t* comm;
    ucg_group_h group;
    coll_ucg_previous_t previous;
    coll_ucg_counters_t
        counters; /**< MPI lets one thread at a time call a communicator's collectives. A thread
                       that repeats calls that have waited may lose a count. */

    coll_ucg_known_reduction_t reduction;
    coll_ucg_latest_t latest[COLL_UCG_FN_BLOCKING_COUNT];
    struct coll_ucg_restartable* restartable; /**< The latest nonblocking calls. */
    coll_ucg_workspace_t workspace;           /**< Memory of blocking calls that are not nested. */
    coll_ucg_edges_t edges;
    struct coll_ucg_pool* pool;   /**< Groups of persistent requests, or NULL: coll_ucg_pool.h. */
    struct coll_ucg_sides* sides; /**< For an inter-communicator, else NULL: coll_ucg_inter.h. */
} mca_coll_ucg_module_t;

OBJ_CLASS_DECLARATION(mca_coll_ucg_module_t);

/** Returns the module of an item of the component's `enabled_modules`. */
static inline mca_coll_ucg_module_t* coll_ucg_module_of(opal_list_item_t* enabled) {
    return (mca_coll_ucg_module_t*)((char*)enabled - offsetof(mca_coll_ucg_module_t, enabled));
}

void coll_ucg_workspace_free(coll_ucg_workspace_t* workspace);

/** Finds the module's edges at the first call, because a communicator gets its topology after its
 *  modules. Later calls return UCG_OK. */
ucg_status_t coll_ucg_find_edges(mca_coll_ucg_module_t* module);

void coll_ucg_add_counters(coll_ucg_counters_t* sum, const coll_ucg_counters_t* counters);

/** Makes progress in Open MPI when libucg calls it; returns how many events it handled. */
unsigned coll_ucg_progress_host(void* unused, unsigned flags);
/** To be called after a nonblocking call that has ended at once. One in every so many calls of this
 *  function makes progress in Open MPI, since a program may make no other calls, and messages have
 *  to advance. Does nothing in a call that is made again (coll_ucg_is_making_again()). Returns
 *  OMPI_SUCCESS: a function that ends with this call need not keep what it is to return. */
int coll_ucg_serve_host(void);
/** Is this thread inside libucg? The variable is in the
 * thread-local memory that every program reserves for libraries that are loaded later, so that
 * reading it takes no call. */
extern _Thread_local bool coll_ucg_inside_library
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
/** Does this call come from a callback of the program that runs while a blocking call of the same
 *  thread waits in libucg? Both may be calls of one communicator. */
static inline bool coll_ucg_is_nested(void) {
    return OPAL_UNLIKELY(coll_ucg_inside_library);
}
/** Finds the functions by which coll_ucg_progress_host() drives messages. Called once, after
 *  MPI_Init has chosen its transports. */
void coll_ucg_find_host_progress(void);
/** Makes opal_progress() drive libucg from now on, if UCX serves the group. The caller does not
 *  hold the component's lock. */
void coll_ucg_poll_library_for(ucg_group_h group);
/** Ends what coll_ucg_poll_library_for() has begun. To be called before the context is
 *  destroyed. */
void coll_ucg_stop_polling(void);

/** The component's comm_query: returns a module, or NULL for a communicator that other components
 *  serve. */
mca_coll_base_module_t* mca_coll_ucg_comm_query(ompi_communicator_t* comm, int* priority);

/** Decides whether libucg serves a blocking call: continues coll_ucg_enter(). Makes the group of an
 *  inter-communicator once it has called as many collectives as required, which is collective over
 *  its ranks. UCG_ERR_UNSUPPORTED before. */
ucg_status_t coll_ucg_set_up(mca_coll_ucg_module_t* module);
/** Counts a collective that the previous module serves towards the required number. */
void coll_ucg_count_call(mca_coll_ucg_module_t* module);
/** Does the component serve all nonblocking functions? */
bool coll_ucg_serves_all_nonblocking(void);
/** Do communicators get their groups at their first calls, whatever that costs?
 *  (coll_ucg_setup_after is 0.) */
bool coll_ucg_passes_none_on(void);
/** Leaves the group, if there is one, and frees what belongs to it. Local. */
void coll_ucg_tear_down(mca_coll_ucg_module_t* module);

/** Begins a blocking call. UCG_OK: go on with libucg. UCG_ERR_UNSUPPORTED: call the previous
 *  module. UCG_INPROGRESS, of intra-communicators alone: the group is to be made, or is being made
 *  (coll_ucg_wait_in_order()). Else an error. */
static inline ucg_status_t coll_ucg_enter(mca_coll_ucg_module_t* module) {
    if (OPAL_LIKELY(COLL_UCG_READY == module->state)) {
        return UCG_OK;
    }
    return coll_ucg_set_up(module);
}

/** Returns the error code for a status of libucg; the only such conversion. */
int coll_ucg_error(ucg_status_t status);

/**
 * Ends a function whose call has failed, and returns what the function is to return. Most failures
 * are of this rank alone, and the others may have started the collective. They would take this
 * rank's next one for it, so the groups that may serve such a call are given up. A persistent
 * request has a group of its own, which is given up where the request fails.
 */
int coll_ucg_leave_failed(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                          ucg_status_t status);

/* ------------------------------------------------------------------ the functions */

/** Declares each function with the type that Open MPI has for it. */
#define COLL_UCG_DECLARE(name) __typeof__(*(COLL_UCG_FUNCTION_TYPE(name))NULL) mca_coll_ucg_##name;
COLL_UCG_FOR_EACH(COLL_UCG_DECLARE)
#undef COLL_UCG_DECLARE

#endif
