/*
 * The Open MPI collective component over libucg: what its files share.
 *
 * Every collective function of the component has the same frame: coll_ucg_enter() decides whether
 * libucg serves the communicator (and makes the group at the first call), a static function
 * translates the arguments, and COLL_UCG_LEAVE gives the status back to Open MPI or, when nothing
 * was started, the call to the module that was there before. What is passed on depends only on
 * facts that are equal on all ranks of the communicator.
 */
#ifndef MCA_COLL_UCG_H
#define MCA_COLL_UCG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucg/ucg.h>

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/op/op.h"
#include "ompi_config.h"
#include "opal/class/opal_list.h"
#include "opal/threads/mutex.h"

#if OMPI_MAJOR_VERSION != 4 || OMPI_MINOR_VERSION != 1
#error "This folder is the component for Open MPI 4.1; other series have other module structures."
#endif

/** Every collective that the component serves, by the name that Open MPI gives it. */
#define COLL_UCG_FOR_EACH(X)                                                                       \
    X(allgather)                                                                                   \
    X(allgatherv)                                                                                  \
    X(allreduce)                                                                                   \
    X(alltoall)                                                                                    \
    X(alltoallv)                                                                                   \
    X(alltoallw)                                                                                   \
    X(barrier)                                                                                     \
    X(bcast)                                                                                       \
    X(exscan)                                                                                      \
    X(gather)                                                                                      \
    X(gatherv)                                                                                     \
    X(reduce)                                                                                      \
    X(reduce_scatter)                                                                              \
    X(reduce_scatter_block)                                                                        \
    X(scan)                                                                                        \
    X(scatter)                                                                                     \
    X(scatterv)

enum coll_ucg_function {
#define COLL_UCG_ENUMERATOR(name) COLL_UCG_FN_##name,
    COLL_UCG_FOR_EACH(COLL_UCG_ENUMERATOR)
#undef COLL_UCG_ENUMERATOR
        COLL_UCG_FN_COUNT
};

/** The configuration variables of libucg that have an MCA parameter of their own. */
enum { COLL_UCG_SETTING_COUNT = 13 };

/* ------------------------------------------------------------------ component */

typedef struct {
    uint64_t taken[COLL_UCG_FN_COUNT];  /**< Calls that libucg served. */
    uint64_t passed[COLL_UCG_FN_COUNT]; /**< Calls that went to the previous module. */
} coll_ucg_counters_t;

typedef struct {
    mca_coll_base_component_t super;

    int priority;
    int verbose;
    int setup_after; /**< Collectives that a communicator calls before it gets a group. */
    bool enabled[COLL_UCG_FN_COUNT];
    char* settings[COLL_UCG_SETTING_COUNT]; /**< Values for ucg_config_modify(); NULL: not given. */
    char* algorithms[COLL_UCG_FN_COUNT];    /**< The same. */

    bool threads; /**< Was MPI_THREAD_MULTIPLE granted? */
    int output;   /**< Stream for opal_output(). */

    opal_mutex_t lock; /**< Guards everything below. */
    ucg_context_h context;
    ucg_status_t
        context_status;  /**< Why there is no context; UCG_INPROGRESS before the first try. */
    opal_list_t modules; /**< Modules with a group, for the counters. */
    opal_list_t waiting; /**< Modules whose ranks are all ready to make their group. */
    bool turn_taken;     /**< One of them has this process's turn. */
    int polled_groups;   /**< Groups that UCX serves: they need opal_progress(). */
    coll_ucg_counters_t counters; /**< Of modules that are gone. */
    atomic_bool told; /**< Was the user told that a communicator goes without libucg? Any thread,
                           without the lock. */
} mca_coll_ucg_component_t;

OMPI_MODULE_DECLSPEC extern mca_coll_ucg_component_t mca_coll_ucg_component;

/** Makes the process's context at the first call. Returns the same status ever after. Thread-safe.
 */
ucg_status_t coll_ucg_context(ucg_context_h* context_p);

/* ------------------------------------------------------------------ peers */

/** Publishes what other processes must know of this one. While the component is opened: later is
 *  too late, for Open MPI then tells all processes what each has published. */
void coll_ucg_open_peers(void);
void coll_ucg_close_peers(void);

/**
 * Do all processes of the communicator have this component, and choose it where this one does? The
 * same on all of them. Where it is not, one of them says so. `threads`: do some of them have
 * several threads that call MPI? Asks PMIx about processes that it does not know; that may take two
 * seconds for one that has not published anything, once. Thread-safe.
 */
bool coll_ucg_all_alike(ompi_communicator_t* comm, bool* threads);

/** Prints to the component's stream when coll_ucg_verbose is at least `level`. */
#define COLL_UCG_VERBOSE(level, ...)                                                               \
    do {                                                                                           \
        if (mca_coll_ucg_component.verbose >= (level)) {                                           \
            opal_output(mca_coll_ucg_component.output, __VA_ARGS__);                               \
        }                                                                                          \
    } while (0)

/* ------------------------------------------------------------------ module */

/** Memory that grows and is kept between calls, so that calls of usual size do not allocate. */
typedef struct {
    unsigned char* base; /**< Aligned to a cache line. */
    size_t capacity;
} coll_ucg_scratch_t;

typedef enum {
    COLL_UCG_FRESH,      /**< It has no group yet: the previous modules serve its first calls. */
    COLL_UCG_SETTING_UP, /**< The group is being made; the previous modules serve meanwhile. */
    COLL_UCG_READY,
    COLL_UCG_OFF /**< All ranks agreed to use the previous modules for good. */
} coll_ucg_state_t;

typedef struct {
#define COLL_UCG_PREVIOUS_FIELD(name)                                                              \
    struct {                                                                                       \
        mca_coll_base_module_##name##_fn_t function;                                               \
        mca_coll_base_module_t* module; /**< Retained. */                                          \
    } name;
    COLL_UCG_FOR_EACH(COLL_UCG_PREVIOUS_FIELD)
#undef COLL_UCG_PREVIOUS_FIELD
} coll_ucg_previous_t;

/** The latest operator and datatype that libucg combines itself; null before the first. Predefined
 *  both, so neither is ever freed and made anew as another one. */
typedef struct {
    const ompi_op_t* op;
    const ompi_datatype_t* type;
    ucg_op_t native_op;
    ucg_datatype_t native_type;
} coll_ucg_known_reduction_t;

/** The latest call of a function, of predefined datatype and operator: calls that differ from it in
 *  their buffers alone are repetitions, for which libucg has a shorter path. */
typedef struct {
    ucg_coll_h coll; /**< NULL until it has come twice in a row. */
    const ompi_datatype_t* type;
    const ompi_op_t* op; /**< NULL: none. */
    size_t count;
    int root;
    bool in_place;
} coll_ucg_latest_t;

typedef struct {
    mca_coll_base_module_t super;
    opal_list_item_t link;    /**< In the component's `modules` while the module has a group. */
    opal_list_item_t waiting; /**< In the component's `waiting` while it asks for its turn. */

    coll_ucg_state_t state;
    int calls_before_group; /**< That the previous modules still serve while it is fresh. */
    bool polled;            /**< Counted in polled_groups. */
    bool takes_turns;       /**< Some of its processes have threads: see coll_ucg_setup.c. */
    ompi_communicator_t* comm;
    ucg_group_h group;
    coll_ucg_previous_t previous;
    coll_ucg_counters_t
        counters; /**< MPI lets one thread at a time call a communicator's collectives. */

    coll_ucg_known_reduction_t reduction;
    coll_ucg_latest_t latest[COLL_UCG_FN_COUNT];
    coll_ucg_scratch_t send;    /**< Packed send buffer. */
    coll_ucg_scratch_t receive; /**< Packed receive buffer. */
    coll_ucg_scratch_t left;    /**< Left operands, in the layout of their datatype. */
    coll_ucg_scratch_t right;   /**< Right operands. */
    coll_ucg_scratch_t vectors; /**< 64-bit counts and displacements. */
} mca_coll_ucg_module_t;

OBJ_CLASS_DECLARATION(mca_coll_ucg_module_t);

static inline mca_coll_ucg_module_t* coll_ucg_module_of(opal_list_item_t* link) {
    return (mca_coll_ucg_module_t*)((char*)link - offsetof(mca_coll_ucg_module_t, link));
}

void coll_ucg_add_counters(coll_ucg_counters_t* sum, const coll_ucg_counters_t* counters);

/** Open MPI's progress, for libucg to call: returns how many messages moved. */
unsigned coll_ucg_progress_host(void* unused, unsigned flags);
/** Looks for what tells it that. Once, after MPI_Init has chosen its transports. */
void coll_ucg_find_host_progress(void);
/** Has opal_progress() drive libucg for a group that UCX serves; once for each module. The caller
 *  holds the component's lock, here and below. */
void coll_ucg_start_polling(mca_coll_ucg_module_t* module);
/** Nothing for a module that does not poll. */
void coll_ucg_stop_polling(mca_coll_ucg_module_t* module);

/** comm_query of the component: a module, or NULL for a communicator that stays with others. */
mca_coll_base_module_t* mca_coll_ucg_comm_query(ompi_communicator_t* comm, int* priority);

/** Sets the communicator up once it has called as many collectives as it has to: collective over
 *  its ranks. UCG_ERR_UNSUPPORTED before. */
ucg_status_t coll_ucg_set_up(mca_coll_ucg_module_t* module, ompi_communicator_t* comm);
/** Leaves the group, if there is one. Local. */
void coll_ucg_tear_down(mca_coll_ucg_module_t* module);

/** UCG_OK: go on with libucg. UCG_ERR_UNSUPPORTED: call the previous module. Else an error. */
static inline ucg_status_t coll_ucg_enter(mca_coll_ucg_module_t* module,
                                          ompi_communicator_t* comm) {
    if (OPAL_LIKELY(COLL_UCG_READY == module->state)) {
        return UCG_OK;
    }
    return coll_ucg_set_up(module, comm);
}

/** The one place where a status of libucg becomes an error code of MPI. */
int coll_ucg_error(ucg_status_t status);

/** Ends a collective function: counts the call and returns from it. The arguments after `status`
 * are those of the function without its module. */
#define COLL_UCG_LEAVE(ucg, name, status, ...)                                                     \
    do {                                                                                           \
        if (OPAL_UNLIKELY(UCG_ERR_UNSUPPORTED == (status))) {                                      \
            (ucg)->counters.passed[COLL_UCG_FN_##name]++;                                          \
            return (ucg)->previous.name.function(__VA_ARGS__, (ucg)->previous.name.module);        \
        }                                                                                          \
        (ucg)->counters.taken[COLL_UCG_FN_##name]++;                                               \
        coll_ucg_trim(ucg);                                                                        \
        return OPAL_LIKELY(UCG_OK == (status)) ? OMPI_SUCCESS : coll_ucg_error(status);            \
    } while (0)

/* ------------------------------------------------------------------ repetitions */

/** Does a call with these arguments repeat the latest, so that coll_ucg_repeat() may run it? */
static inline bool coll_ucg_repeats(const coll_ucg_latest_t* latest, const ompi_datatype_t* type,
                                    const ompi_op_t* op, int count, int root, bool in_place) {
    return NULL != latest->coll && latest->type == type && latest->op == op &&
           latest->count == (size_t)count && latest->root == root && latest->in_place == in_place;
}

/** Runs it with its buffers, as libucg has them. Returns what the collective function returns. */
static inline int coll_ucg_repeat(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                                  const void* send, void* receive) {
    module->counters.taken[function]++;
    const ucg_status_t status = ucg_coll_repeat(module->latest[function].coll, send, receive);
    return OPAL_LIKELY(UCG_OK == status) ? OMPI_SUCCESS : coll_ucg_error(status);
}

/** Of what follows where nothing is repeated: so that the short path saves no registers for it. */
#define COLL_UCG_APART __attribute__((noinline))

/** After libucg has run a call: prepares it for repetitions if it came twice in a row and has them,
 *  that is, nothing of it is packed and its arguments always mean the same. */
void coll_ucg_remember(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                       const coll_ucg_latest_t* call, const ucg_coll_params_t* params);
/** Before the group is left. */
void coll_ucg_forget(mca_coll_ucg_module_t* module);

/* ------------------------------------------------------------------ datatypes and buffers */

/** At least `bytes` bytes, contents undefined; NULL when memory is exhausted. */
void* coll_ucg_scratch_get(coll_ucg_scratch_t* scratch, size_t bytes);
void coll_ucg_scratch_free(coll_ucg_scratch_t* scratch);

/** Scratch of more bytes than this is given back when its call ends. */
enum { COLL_UCG_SCRATCH_KEPT = 1 << 18 };
/** Gives scratch of unusual size back. */
void coll_ucg_scratch_trim(mca_coll_ucg_module_t* module);
static inline void coll_ucg_trim(mca_coll_ucg_module_t* module) {
    if (OPAL_UNLIKELY(module->send.capacity > COLL_UCG_SCRATCH_KEPT ||
                      module->receive.capacity > COLL_UCG_SCRATCH_KEPT ||
                      module->right.capacity > COLL_UCG_SCRATCH_KEPT)) {
        coll_ucg_scratch_trim(module);
    }
}

/** Bytes of `count` elements as a message carries them. Equal on all ranks whose signatures match.
 */
static inline size_t coll_ucg_packed_bytes(const ompi_datatype_t* type, size_t count) {
    return type->super.size * count;
}

/** Do `count` elements lie in memory as a message carries them? */
static inline bool coll_ucg_is_dense(const ompi_datatype_t* type, size_t count) {
    const uint16_t flags = type->super.flags;
    return OPAL_LIKELY(0 != (flags & OPAL_DATATYPE_FLAG_NO_GAPS)) || 0 == count ||
           0 == type->super.size || (1 == count && 0 != (flags & OPAL_DATATYPE_FLAG_CONTIGUOUS));
}

static inline ptrdiff_t coll_ucg_extent(const ompi_datatype_t* type) {
    return type->super.ub - type->super.lb;
}

/** Do displacements in extents count the bytes that messages carry? */
static inline bool coll_ucg_is_gapless(const ompi_datatype_t* type) {
    return 0 != (type->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS) && 0 < type->super.size &&
           coll_ucg_extent(type) == (ptrdiff_t)type->super.size;
}

/** The element at `index` of a buffer. */
static inline void* coll_ucg_at(const void* buffer, const ompi_datatype_t* type, ptrdiff_t index) {
    return (unsigned char*)buffer + index * coll_ucg_extent(type);
}

ucg_status_t coll_ucg_pack(const void* buffer, size_t count, const ompi_datatype_t* type,
                           void* packed);
ucg_status_t coll_ucg_unpack(void* buffer, size_t count, const ompi_datatype_t* type,
                             const void* packed);

/** A user's buffer and the place where its bytes lie as a message carries them. */
typedef struct {
    void* user;
    size_t count;
    const ompi_datatype_t* type;
    unsigned char* packed; /**< User's memory when `direct`, else scratch. */
    bool direct;
} coll_ucg_buffer_t;

/** The three below, for buffers that are not direct. */
ucg_status_t coll_ucg_load_packed(const coll_ucg_buffer_t* buffer, size_t first, size_t count);
ucg_status_t coll_ucg_store_packed(const coll_ucg_buffer_t* buffer);
ucg_status_t coll_ucg_open_packed(coll_ucg_buffer_t* buffer, coll_ucg_scratch_t* scratch);

/** Makes a receive buffer writable. Its contents are not carried into scratch. */
static inline ucg_status_t coll_ucg_open_receive(coll_ucg_buffer_t* buffer,
                                                 coll_ucg_scratch_t* scratch, void* user,
                                                 size_t count, const ompi_datatype_t* type) {
    buffer->user = user;
    buffer->count = count;
    buffer->type = type;
    buffer->direct = coll_ucg_is_dense(type, count);
    buffer->packed = (unsigned char*)user + type->super.true_lb;
    return OPAL_LIKELY(buffer->direct) ? UCG_OK : coll_ucg_open_packed(buffer, scratch);
}

/** Carries elements [first, first + count) of the user's memory to scratch, for MPI_IN_PLACE. */
static inline ucg_status_t coll_ucg_load(const coll_ucg_buffer_t* buffer, size_t first,
                                         size_t count) {
    return OPAL_LIKELY(buffer->direct) ? UCG_OK : coll_ucg_load_packed(buffer, first, count);
}

/** Makes a send buffer readable: the user's own memory, or a packed copy in `scratch`. */
static inline ucg_status_t coll_ucg_open_send(coll_ucg_buffer_t* buffer,
                                              coll_ucg_scratch_t* scratch, const void* user,
                                              size_t count, const ompi_datatype_t* type) {
    ucg_status_t status = coll_ucg_open_receive(buffer, scratch, (void*)user, count, type);
    return UCG_OK == status ? coll_ucg_load(buffer, 0, count) : status;
}

/** Carries a received buffer to the user. Bytes between the datatype's pieces are never written. */
static inline ucg_status_t coll_ucg_store(const coll_ucg_buffer_t* buffer) {
    return OPAL_LIKELY(buffer->direct) ? UCG_OK : coll_ucg_store_packed(buffer);
}

/** The blocks of a v- or w-collective, one for each rank, of sizes of their own. */
typedef struct {
    void* user;
    const int* counts;
    const int* displs;                    /**< In extents, or in bytes with `types`. */
    const ompi_datatype_t* type;          /**< Of all blocks, or NULL. */
    struct ompi_datatype_t* const* types; /**< Of each block, or NULL. */
    int size;                             /**< Number of blocks. */
    unsigned char* packed;
    bool direct;
    /* Where the vectors are in bytes: */
    uint64_t* bytes;  /**< Length of each block. */
    int64_t* offsets; /**< Where it begins, from `packed`. */
} coll_ucg_blocks_t;

/**
 * Says in what elements a call counts its blocks and its own part, before the blocks are opened:
 * libucg reads the program's own vectors where blocks and part are of gapless elements of one
 * size; else it gets vectors in bytes. `part`: the type of what is not in blocks.
 */
static inline void coll_ucg_choose_vectors(ucg_coll_params_t* params,
                                           const coll_ucg_blocks_t* blocks,
                                           const ompi_datatype_t* part) {
    const ompi_datatype_t* type = blocks->type;
    const bool plain =
        NULL != type && coll_ucg_is_gapless(type) &&
        (part == type || (coll_ucg_is_gapless(part) && part->super.size == type->super.size));
    params->field_mask =
        OPAL_LIKELY(plain) ? UCG_COLL_PARAM_FIELD_INT_VECTORS : UCG_COLL_PARAM_FIELD_VECTORS;
    params->element_bytes = OPAL_LIKELY(plain) ? type->super.size : 1;
}

static inline bool coll_ucg_has_own_vectors(const ucg_coll_params_t* params) {
    return OPAL_LIKELY(UCG_COLL_PARAM_FIELD_INT_VECTORS == params->field_mask);
}

/** The part of `count` elements in the elements of the call. */
static inline size_t coll_ucg_part(const ucg_coll_params_t* params, const ompi_datatype_t* type,
                                   size_t count) {
    return coll_ucg_has_own_vectors(params) ? count : coll_ucg_packed_bytes(type, count);
}

/** The length of an opened block in the elements of the call. */
static inline size_t coll_ucg_block_length(const ucg_coll_params_t* params,
                                           const coll_ucg_blocks_t* blocks, int index) {
    return coll_ucg_has_own_vectors(params) ? (size_t)blocks->counts[index]
                                            : (size_t)blocks->bytes[index];
}

/** Describe blocks to libucg, in `params`, by vectors as chosen. */
ucg_status_t coll_ucg_open_send_blocks(coll_ucg_blocks_t* blocks, mca_coll_ucg_module_t* module,
                                       ucg_coll_params_t* params);
ucg_status_t coll_ucg_open_receive_blocks(coll_ucg_blocks_t* blocks, mca_coll_ucg_module_t* module,
                                          ucg_coll_params_t* params);

/** The three below, for blocks that are not direct. */
ucg_status_t coll_ucg_load_packed_block(coll_ucg_blocks_t* blocks, int index);
ucg_status_t coll_ucg_load_packed_blocks(coll_ucg_blocks_t* blocks);
ucg_status_t coll_ucg_store_packed_blocks(coll_ucg_blocks_t* blocks);

/** Carries a block, or all, of the user's memory to scratch; for MPI_IN_PLACE those received. */
static inline ucg_status_t coll_ucg_load_block(coll_ucg_blocks_t* blocks, int index) {
    return OPAL_LIKELY(blocks->direct) ? UCG_OK : coll_ucg_load_packed_block(blocks, index);
}
static inline ucg_status_t coll_ucg_load_blocks(coll_ucg_blocks_t* blocks) {
    return OPAL_LIKELY(blocks->direct) ? UCG_OK : coll_ucg_load_packed_blocks(blocks);
}
/** Carries received blocks to the user. */
static inline ucg_status_t coll_ucg_store_blocks(coll_ucg_blocks_t* blocks) {
    return OPAL_LIKELY(blocks->direct) ? UCG_OK : coll_ucg_store_packed_blocks(blocks);
}

/* ------------------------------------------------------------------ operators */

/** An MPI operator on a datatype, as libucg calls it. Lives as long as the collective. */
typedef struct {
    mca_coll_ucg_module_t* module;
    ompi_op_t* op;
    ompi_datatype_t* type;
    size_t batch; /**< Elements that the operator's scratch holds. */
} coll_ucg_reduction_t;

/** The below, for another operator or datatype than the latest of libucg's own. */
ucg_status_t coll_ucg_open_other_reduction(coll_ucg_reduction_t* reduction,
                                           mca_coll_ucg_module_t* module, ompi_op_t* op,
                                           ompi_datatype_t* type, ucg_coll_params_t* params);
/**
 * Fills the reduction fields of `params`: libucg's own operator where it has one, else a callback
 * to Open MPI's or the user's. Messages carry packed elements, so layouts may differ between ranks.
 */
static inline ucg_status_t coll_ucg_open_reduction(coll_ucg_reduction_t* reduction,
                                                   mca_coll_ucg_module_t* module, ompi_op_t* op,
                                                   ompi_datatype_t* type,
                                                   ucg_coll_params_t* params) {
    const coll_ucg_known_reduction_t* known = &module->reduction;
    params->field_mask |= UCG_COLL_PARAM_FIELD_REDUCE;
    params->element_bytes = type->super.size;
    if (OPAL_LIKELY(op == known->op && type == known->type)) {
        params->datatype = known->native_type;
        params->op = known->native_op;
        return UCG_OK;
    }
    return coll_ucg_open_other_reduction(reduction, module, op, type, params);
}

/* ------------------------------------------------------------------ the collectives */

int mca_coll_ucg_allgather(const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf,
                           int rcount, struct ompi_datatype_t* rdtype,
                           struct ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_ucg_allgatherv(const void* sbuf, int scount, struct ompi_datatype_t* sdtype,
                            void* rbuf, const int* rcounts, const int* displs,
                            struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                            mca_coll_base_module_t* module);
int mca_coll_ucg_allreduce(const void* sbuf, void* rbuf, int count, struct ompi_datatype_t* dtype,
                           struct ompi_op_t* op, struct ompi_communicator_t* comm,
                           mca_coll_base_module_t* module);
int mca_coll_ucg_alltoall(const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf,
                          int rcount, struct ompi_datatype_t* rdtype,
                          struct ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_ucg_alltoallv(const void* sbuf, const int* scounts, const int* sdispls,
                           struct ompi_datatype_t* sdtype, void* rbuf, const int* rcounts,
                           const int* rdispls, struct ompi_datatype_t* rdtype,
                           struct ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_ucg_alltoallw(const void* sbuf, const int* scounts, const int* sdispls,
                           struct ompi_datatype_t* const* sdtypes, void* rbuf, const int* rcounts,
                           const int* rdispls, struct ompi_datatype_t* const* rdtypes,
                           struct ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_ucg_barrier(struct ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_ucg_bcast(void* buffer, int count, struct ompi_datatype_t* dtype, int root,
                       struct ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_ucg_exscan(const void* sbuf, void* rbuf, int count, struct ompi_datatype_t* dtype,
                        struct ompi_op_t* op, struct ompi_communicator_t* comm,
                        mca_coll_base_module_t* module);
int mca_coll_ucg_gather(const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf,
                        int rcount, struct ompi_datatype_t* rdtype, int root,
                        struct ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_ucg_gatherv(const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf,
                         const int* rcounts, const int* displs, struct ompi_datatype_t* rdtype,
                         int root, struct ompi_communicator_t* comm,
                         mca_coll_base_module_t* module);
int mca_coll_ucg_reduce(const void* sbuf, void* rbuf, int count, struct ompi_datatype_t* dtype,
                        struct ompi_op_t* op, int root, struct ompi_communicator_t* comm,
                        mca_coll_base_module_t* module);
int mca_coll_ucg_reduce_scatter(const void* sbuf, void* rbuf, const int* rcounts,
                                struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                struct ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_ucg_reduce_scatter_block(const void* sbuf, void* rbuf, int rcount,
                                      struct ompi_datatype_t* dtype, struct ompi_op_t* op,
                                      struct ompi_communicator_t* comm,
                                      mca_coll_base_module_t* module);
int mca_coll_ucg_scan(const void* sbuf, void* rbuf, int count, struct ompi_datatype_t* dtype,
                      struct ompi_op_t* op, struct ompi_communicator_t* comm,
                      mca_coll_base_module_t* module);
int mca_coll_ucg_scatter(const void* sbuf, int scount, struct ompi_datatype_t* sdtype, void* rbuf,
                         int rcount, struct ompi_datatype_t* rdtype, int root,
                         struct ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_ucg_scatterv(const void* sbuf, const int* scounts, const int* displs,
                          struct ompi_datatype_t* sdtype, void* rbuf, int rcount,
                          struct ompi_datatype_t* rdtype, int root,
                          struct ompi_communicator_t* comm, mca_coll_base_module_t* module);

#endif
